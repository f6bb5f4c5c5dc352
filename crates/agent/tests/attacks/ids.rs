//! Ids of calls that a provider repeats.

use crate::bed::{Bed, all, result_text, results, run};
use crate::fixtures::{begins, check_history, resumed_agent, sessions};
use crate::scripted::{Scripted, calls, text};
use serde_json::json;

fn reads(path: &str) -> crate::scripted::Next {
    calls([("call_0", "read", json!({ "path": path }))])
}

#[tokio::test]
async fn an_id_used_before_compaction_is_not_reused() {
    let bed = Bed::new();
    bed.file("a", "first")
        .file("b", "second")
        .file("c", "third");
    let sessions = sessions(&bed);
    let model = Scripted::new([reads("a"), text("One."), text("A summary.")]);
    let agent = begins(&bed, &sessions, &model);
    run(&agent, "Read a").await;
    all(agent.compact().await.unwrap()).await;
    model.also([reads("b"), text("Two.")]);
    let events = run(&agent, "Read b").await;
    assert_eq!(events.last().unwrap()["reason"], "done", "{events:#?}");
    assert_eq!(result_text(&results(&model.last())[0]), "second");
    check_history(&model.last());

    // Another process knows the used ids too.
    model.also([text("A summary.")]);
    all(agent.compact().await.unwrap()).await;
    drop(agent);
    model.also([reads("c"), text("Three.")]);
    let agent = resumed_agent(&bed, &sessions, &model);
    let events = run(&agent, "Read c").await;
    assert_eq!(events.last().unwrap()["reason"], "done", "{events:#?}");
    assert_eq!(result_text(&results(&model.last())[0]), "third");
}
