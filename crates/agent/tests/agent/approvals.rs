//! Calls that wait for a person, and are answered later.

use crate::bed::{Bed, all, kinds, of, results, run, said};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{Answer, Approver, Question};
use haft_agent::{Agent, Resumed};
use serde_json::json;
use std::sync::Arc;

/// Nobody is there now.
struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Later
    }
}

fn agent(bed: &Bed, model: &Arc<Scripted>) -> Agent {
    let runtime = bed.runtime(|builder| builder.approver(Arc::new(Away)).interrupt_on(["write"]));
    Agent::new(model.clone(), runtime)
}

#[tokio::test]
async fn a_call_waits_and_is_made_when_it_is_answered() {
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let write = |path: &str| json!({ "path": path, "content": "new" });
    let model = Scripted::new([
        calls([
            ("r", "read", json!({ "path": "a.txt" })),
            ("w1", "write", write("one")),
            ("w2", "write", write("two")),
            ("w3", "write", write("three")),
        ]),
        text("Done."),
    ]);
    let agent = agent(&bed, &model);
    let events = run(&agent, "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "approval");
    assert_eq!(of(&events, "approval_needed").len(), 3);
    assert_eq!(of(&events, "tool_denied").len(), 0);
    assert!(!bed.folder.path().join("one").exists());

    // Answered in part: those are made, the rest waits on.
    let resumed = Resumed {
        answers: vec![
            ("w1".to_owned(), Answer::Approve),
            (
                "w2".to_owned(),
                Answer::Reject {
                    reason: Some("not that".to_owned()),
                },
            ),
        ],
        prompt: None,
    };
    let events = all(agent.resume(resumed).await.unwrap()).await;
    assert_eq!(
        events.last().unwrap()["reason"],
        "approval",
        "{:?}",
        kinds(&events)
    );
    assert_eq!(bed.read("one"), "new");
    assert_eq!(model.requests(), 1);

    let changed = Answer::ApproveWith {
        arguments: json!({ "content": "mine" }),
    };
    let resumed = Resumed {
        answers: vec![("w3".to_owned(), changed)],
        prompt: None,
    };
    let events = all(agent.resume(resumed).await.unwrap()).await;
    assert_eq!(events.last().unwrap()["text"], "Done.");
    assert_eq!(bed.read("three"), "mine");
    assert!(!bed.folder.path().join("two").exists());
    let results = results(&model.last());
    let ids: Vec<_> = results
        .iter()
        .map(|result| result.call_id.as_str())
        .collect();
    assert_eq!(ids, ["r", "w1", "w2", "w3"]);
    assert!(said(&results[2]).contains("not that"));
    assert!(said(&results[3]).contains("changed arguments"));
}
