//! Ids of calls, as a provider likes to make them.

use crate::bed::{Bed, all, results, run, said};
use crate::kept::{begins, check_history, goes_on, sessions};
use crate::scripted::{Scripted, calls, text};
use serde_json::json;

fn reads(path: &str) -> crate::scripted::Next {
    calls([("call_0", "read", json!({ "path": path }))])
}

#[tokio::test]
async fn an_id_from_before_a_summary_is_not_taken_for_a_new_one() {
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
    assert_eq!(said(&results(&model.last())[0]), "second");
    check_history(&model.last());

    // Another process knows of them too.
    model.also([text("A summary.")]);
    all(agent.compact().await.unwrap()).await;
    drop(agent);
    model.also([reads("c"), text("Three.")]);
    let agent = goes_on(&bed, &sessions, &model);
    let events = run(&agent, "Read c").await;
    assert_eq!(events.last().unwrap()["reason"], "done", "{events:#?}");
    assert_eq!(said(&results(&model.last())[0]), "third");
}
