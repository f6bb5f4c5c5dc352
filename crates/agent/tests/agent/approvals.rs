//! Calls that wait for approval and are answered later.

use crate::bed::{Bed, all, kinds, of_type, result_text, results, run};
use crate::scripted::{Scripted, calls, text};
use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Question};
use haft_agent::{Agent, Resumed};
use serde_json::json;
use std::sync::Arc;

/// An approver that postpones every answer.
struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        ApprovalAnswer::Later
    }
}

fn agent(bed: &Bed, model: &Arc<Scripted>) -> Agent {
    let runtime = bed.runtime(|builder| builder.approver(Arc::new(Away)).interrupt_on(["write"]));
    Agent::new(model.clone(), runtime)
}

#[tokio::test]
async fn a_call_waits_and_runs_when_it_is_approved() {
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
    assert_eq!(of_type(&events, "approval_needed").len(), 3);
    assert_eq!(of_type(&events, "tool_denied").len(), 0);
    assert!(!bed.folder.path().join("one").exists());

    // Answered calls run; the others keep waiting.
    let resumed = Resumed {
        answers: vec![
            ("w1".to_owned(), ApprovalAnswer::Approve),
            (
                "w2".to_owned(),
                ApprovalAnswer::Reject {
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

    let changed = ApprovalAnswer::ApproveWith {
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
    assert!(result_text(&results[2]).contains("not that"));
    assert!(result_text(&results[3]).contains("changed arguments"));
}
