//! Undoing turns and whole sessions of agents, and the note to the model.

use crate::bed::Bed;
use haft_testing::model::{ModelReply, Turn};
use serde_json::json;

fn bash(line: &str) -> serde_json::Value {
    json!({ "command": line })
}

/// One turn with a call, one with two calls, an end; then an answer to another prompt.
fn script() -> Vec<Turn> {
    let second = ModelReply::calling("b2", "bash", &bash("echo 2 > two")).call(
        "w3",
        "write",
        &json!({ "path": "three", "content": "3" }),
    );
    vec![
        ModelReply::calling("b1", "bash", &bash("rm victim; echo 1 > one")).into(),
        second.into(),
        Turn::text("Done."),
        Turn::text("I see."),
    ]
}

fn ran() -> (Bed, String) {
    let bed = Bed::with_model(script(), "");
    bed.put("victim", "alive\n");
    let ended = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    (bed, ended.out)
}

#[test]
fn events_count_changes_and_a_turn_is_undone_as_a_whole() {
    let (bed, events) = ran();
    let events = crate::bed::lines(&events);
    let end = |id: &str| {
        let mut all = events.iter();
        let found = all.find(|event| event["type"] == "tool_end" && event["call_id"] == id);
        found.unwrap()["details"]["effects"].clone()
    };
    assert_eq!(
        (&end("b1")["deleted"], &end("b1")["created"]),
        (&1.into(), &1.into())
    );
    assert_eq!(end("w3")["created"], 1);
    let ids: Vec<_> = bed
        .changes(&[])
        .iter()
        .map(|set| set["call_id"].clone())
        .collect();
    assert_eq!(ids, ["b1", "b2", "w3"]);
    bed.says(&["undo", "--turn"]);
    assert_eq!((bed.read("two"), bed.read("three")), (None, None));
    assert_eq!(bed.read("one").unwrap(), "1\n");
    bed.says(&["undo", "--turn"]);
    assert_eq!(
        (bed.read("one"), bed.read("victim").unwrap()),
        (None, "alive\n".to_owned())
    );
    assert_eq!(bed.haft(&["undo", "--turn"]).code, Some(1));
}

#[test]
fn a_session_is_undone_as_a_whole() {
    let (bed, _) = ran();
    let session = bed.changes(&[])[0]["session"].as_str().unwrap().to_owned();
    bed.says(&["undo", "--session", &session]);
    let names: Vec<String> = bed.tree().into_keys().collect();
    assert_eq!(names, ["victim"]);
    let unknown = bed.haft(&["undo", "--session", "nosuchsession"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn the_model_is_told_what_the_user_undid() {
    let (bed, _) = ran();
    bed.says(&["undo", "b1"]);
    assert_eq!(bed.read("victim").unwrap(), "alive\n");
    bed.says(&["resume", "Go on"]);
    let server = bed.server.as_ref().unwrap();
    let sent = server.received().last().unwrap().json().to_string();
    assert!(sent.contains("the user undid b1: 2 files"), "{sent}");
    // The note is sent once.
    assert_eq!(sent.matches("the user undid").count(), 1, "{sent}");
}

#[test]
fn a_session_shows_what_its_calls_changed() {
    let (bed, _) = ran();
    let session = bed.changes(&[])[0]["session"].as_str().unwrap().to_owned();
    let shown = bed.says(&["sessions", "show", &session]);
    assert!(shown.contains("Δ 1 deleted, 1 created"), "{shown}");
    assert!(shown.contains("deleted    victim"), "{shown}");
    for format in ["html", "md"] {
        let page = bed.says(&["sessions", "export", &session, "--format", format]);
        assert!(page.contains("1 deleted, 1 created"), "{format}: {page}");
    }
    bed.says(&["sessions", "delete", &session, "--yes"]);
    assert_eq!(bed.changes(&[]).len(), 0);
}

#[test]
fn a_fork_takes_the_files_along() {
    let (bed, _) = ran();
    let session = bed.changes(&[])[0]["session"].as_str().unwrap().to_owned();
    let folder = bed.path("copy");
    let into = folder.to_str().unwrap();
    let fork = ["sessions", "fork", &session, "--at", "b1", "--files", into];
    let id = bed.says(&fork);
    assert_ne!(id.trim(), session);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["one"]);
    // The same after the call was undone.
    bed.says(&["undo", "b1"]);
    let undone = bed.path("undone");
    let undone = undone.to_str().unwrap();
    bed.says(&[
        "sessions", "fork", &session, "--at", "b1", "--files", undone,
    ]);
    assert!(bed.path("undone/one").exists() && !bed.path("undone/victim").exists());
    // The work folder stays as it is.
    assert_eq!(bed.read("three").unwrap(), "3");
    let again = bed.haft(&fork);
    assert_ne!(again.code, Some(0), "the folder exists: {again:?}");
}

/// A sub-agent that deletes one file and writes another, then a call of the agent itself.
fn with_a_sub_agent() -> Bed {
    let go = json!({ "request": "Go" });
    let script: Vec<Turn> = vec![
        ModelReply::calling("p1", "worker", &go).into(),
        ModelReply::calling("s1", "execute", &bash("rm victim")).into(),
        ModelReply::calling(
            "s2",
            "write_file",
            &json!({ "file_path": "/new", "content": "n" }),
        )
        .into(),
        Turn::text("Spoiled."),
        ModelReply::calling("b2", "execute", &bash("echo 2 > two")).into(),
        Turn::text("Done."),
        Turn::text("I see."),
    ];
    let worker = "{ name: worker, description: Works., tools: [execute, write_file] }";
    let settings = format!("tools: {{ toolset: deepagents }}\nsubagents: [{worker}]\n");
    let bed = Bed::with_model(script, &settings);
    bed.put("victim", "alive\n");
    let ended = bed.haft(&["run", "Go", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(bed.read("victim"), None, "{ended:?}");
    bed
}

#[test]
fn what_a_sub_agent_changed_belongs_to_the_call_that_started_it() {
    let bed = with_a_sub_agent();
    let ids = |more: &[&str]| -> Vec<serde_json::Value> {
        let sets = bed.changes(more);
        sets.iter().map(|set| set["call_id"].clone()).collect()
    };
    assert_eq!(ids(&[]), ["s1", "s2", "b2"]);
    assert_eq!(ids(&["p1"]), ["s1", "s2"]);
    assert_eq!(ids(&["s1"]), ["s1"]);
    bed.says(&["undo", "p1"]);
    assert_eq!(bed.read("victim").unwrap(), "alive\n");
    assert_eq!(
        (bed.read("new"), bed.read("two").unwrap()),
        (None, "2\n".to_owned())
    );
    let again = bed.haft(&["undo", "p1"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("already undone: p1"), "{again:?}");
    // The agent's model learns of it, although the sub-agent made the changes.
    bed.says(&["resume", "Go on"]);
    let server = bed.server.as_ref().unwrap();
    let sent = server.received().last().unwrap().json()["messages"].to_string();
    assert!(sent.contains("the user undid s1, s2 of task "), "{sent}");
}

#[test]
fn turns_and_sessions_contain_what_sub_agents_changed() {
    let bed = with_a_sub_agent();
    bed.says(&["undo", "--turn"]);
    assert_eq!((bed.read("two"), bed.read("victim")), (None, None));
    bed.says(&["undo", "--turn"]);
    assert_eq!(bed.read("victim").unwrap(), "alive\n");
    let bed = with_a_sub_agent();
    bed.says(&["undo", "--session"]);
    let names: Vec<String> = bed.tree().into_keys().collect();
    assert_eq!(names, ["victim"]);
    // One redo takes back all parts of one undo.
    bed.says(&["redo"]);
    let names: Vec<String> = bed.tree().into_keys().collect();
    assert_eq!(names, ["new", "two"]);
    assert_eq!(bed.haft(&["redo"]).code, Some(1));
    bed.says(&["undo", "--session"]);
    let names: Vec<String> = bed.tree().into_keys().collect();
    assert_eq!(names, ["victim"]);
}
