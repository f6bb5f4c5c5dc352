//! Files stored in a session survive, however it ended.

use crate::bed::{Bed, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const STATE: &str = "tools:\n  toolset: deepagents\nbackend: state\n";
const ROUTED: &str = "tools:\n  toolset: deepagents\nbackend:\n  routes:\n    /notes: state\n    \
                      /: filesystem\n";

fn write(id: &str, path: &str, content: &str) -> Turn {
    let arguments = json!({ "file_path": path, "content": content });
    ModelReply::calling(id, "write_file", &arguments).into()
}

fn read(id: &str, path: &str) -> Turn {
    ModelReply::calling(id, "read_file", &json!({ "file_path": path })).into()
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> Turn {
    let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
    ModelReply::calling(id, "edit_file", &arguments).into()
}

/// Result of a call in the latest session.
fn result(bed: &Bed, id: &str) -> Value {
    let results = results(&bed.messages());
    let (_, text) = results.into_iter().find(|(call, _)| call == id).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn goes_on(bed: &Bed) {
    let ended = bed.haft(&["run", "Go on", "--continue"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn files_are_restored_on_resume() {
    for (lines, path) in [(STATE, "/p.md"), (ROUTED, "/notes/p.md")] {
        let bed = Bed::new(vec![
            write("c1", path, "plan\n"),
            Turn::text("Written."),
            edit("c2", path, "plan", "PLAN"),
            Turn::text("Changed."),
            read("c3", path),
            Turn::text("Read."),
        ])
        .and(lines);
        assert_eq!(bed.run(&[]).code, Some(0));
        assert!(!bed.work("p.md").exists() && !bed.work("notes").exists());
        goes_on(&bed);
        goes_on(&bed);
        assert_eq!(result(&bed, "c3")["content"], "     1\tPLAN", "{lines}");
        // Another session has its own files.
        let fresh = Bed::new(vec![read("c1", path), Turn::text("Read.")]).and(lines);
        assert_eq!(fresh.run(&[]).code, Some(0));
        assert_eq!(result(&fresh, "c1")["status"], "error");
    }
}

#[test]
fn files_are_restored_after_a_late_approval() {
    let bed = Bed::new(vec![
        write("c1", "/q.md", "plan"),
        edit("c2", "/q.md", "plan", "PLAN"),
        read("c3", "/q.md"),
        Turn::text("Done."),
    ])
    .and("tools:\n  toolset: deepagents\n  interrupt_on: { edit_file: true }\nbackend: state\n");
    assert_eq!(bed.run(&[]).code, Some(3));
    let done = bed.resume(&["--answer", "c2=approve"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(result(&bed, "c3")["content"], "     1\tPLAN");
}

#[test]
fn a_fork_has_the_files_of_that_time() {
    let bed = Bed::new(vec![
        write("c1", "/p.md", "first"),
        Turn::text("Written."),
        edit("c2", "/p.md", "first", "changed"),
        Turn::text("Changed."),
        read("c3", "/p.md"),
        Turn::text("Read."),
    ])
    .and(STATE);
    assert_eq!(bed.run(&[]).code, Some(0));
    let exported = bed.exported();
    let last = exported.iter().rev().find(|line| line["type"] == "message");
    let at = last.unwrap()["id"].to_string();
    goes_on(&bed);
    let session = bed.newest();
    let printed = bed.says(&["sessions", "fork", &session, "--at", &at]);
    let fork = printed.split_whitespace().next().unwrap();
    let ended = bed.haft(&["run", "Look", "--resume", fork]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let heard = &bed.last_request()["messages"];
    let last = heard.as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(last.contains("first"), "{last}");
}

/// Kills a run as soon as it has reported the end of a call.
fn killed_after(bed: &Bed, call: &str) {
    let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_end = |line: &String| {
        let event: Value = serde_json::from_str(line).unwrap();
        event["type"] == "tool_end" && event["call_id"] == call
    };
    assert!(out.any(|line| is_end(&line.unwrap())));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The id of the last call whose result is in a request.
fn last_call(request: &Value) -> Option<&str> {
    let messages = request["messages"].as_array().unwrap();
    let mut ids = messages.iter().rev().map(|one| &one["tool_call_id"]);
    ids.find_map(Value::as_str)
}

#[test]
fn reported_events_survive_a_kill() {
    // The kill may come before or after the second request, which is never answered.
    let is_killed = Arc::new(AtomicBool::new(false));
    let killed = is_killed.clone();
    let bed = Bed::new(move |request: &Value, _| match last_call(request) {
        None => write("c1", "/p.md", "plan"),
        Some("c1") if !killed.load(Ordering::Acquire) => Turn::Silent,
        Some("c1") => read("c2", "/p.md"),
        Some(_) => Turn::text("Done."),
    })
    .and(STATE);
    killed_after(&bed, "c1");
    is_killed.store(true, Ordering::Release);
    assert_eq!(bed.resume(&[]).code, Some(0));
    assert_eq!(result(&bed, "c2")["content"], "     1\tplan");
}

#[test]
fn files_of_a_sub_agent_survive_a_kill() {
    for is_killed in [true, false] {
        let bed = Bed::new(move |request: &Value, _| match last_call(request) {
            None if request["messages"].to_string().contains("Write it") => {
                write("s1", "/c.md", "child")
            }
            None => {
                let arguments = json!({ "request": "Write it" });
                ModelReply::calling("p1", "general_purpose", &arguments).into()
            }
            Some("s1") if is_killed => Turn::Silent,
            Some("s1") => Turn::text("Written."),
            Some("p1") => read("p2", "/c.md"),
            Some(_) => Turn::text("Done."),
        })
        .and(STATE);
        if is_killed {
            killed_after(&bed, "s1");
            assert_eq!(bed.haft(&["resume"]).code, Some(0));
        } else {
            assert_eq!(bed.haft(&["run", "Go"]).code, Some(0));
        }
        let last = bed.last_request();
        let mut heard = last["messages"].as_array().unwrap().iter();
        let result = heard
            .find(|message| message["tool_call_id"] == "p2")
            .unwrap();
        let text = result["content"].to_string();
        assert!(text.contains("child"), "{is_killed} {text}");
    }
}
