//! Sub-agents in the background: a run waits for them, and none is lost.

use crate::bed::{Bed, lines, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};

const SETTINGS: &str = "tools:\n  toolset: deepagents\n";

fn is_child(request: &Value) -> bool {
    request["messages"][0]
        .to_string()
        .contains("You work for another agent")
}

/// Starts one, says so, and lists the folder when it ends.
fn script(child: impl Fn() -> Turn + Send + Sync) -> impl Fn(&Value, usize) -> Turn + Send + Sync {
    move |request, _| {
        let text = request.to_string();
        if is_child(request) {
            child()
        } else if text.contains("was interrupted") {
            Turn::text("Noted.")
        } else if text.contains("1 background task\\\"") {
            Turn::text("All done.")
        } else if text.contains("is done; check_task") {
            ModelReply::calling("c", "check_task", &json!({})).into()
        } else if text.contains("started task") {
            Turn::text("Started.")
        } else {
            let arguments = json!({
                "description": "look", "prompt": "Look.", "subagent_type": "general",
                "background": true,
            });
            ModelReply::calling("t", "task", &arguments).into()
        }
    }
}

#[test]
fn a_run_waits_for_background_tasks_and_says_so() {
    let bed = Bed::new(script(|| Turn::text("Looked."))).and(SETTINGS);
    let ended = bed.haft(&["run", "Go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.out, "All done.\n", "{ended:?}");
    assert!(
        ended.err.contains("(general_purpose: look): done"),
        "{ended:?}"
    );
    let results = results(&bed.messages());
    let (_, listed) = results.iter().find(|(id, _)| id == "c").unwrap();
    let listed: Value = serde_json::from_str(listed).unwrap();
    assert_eq!(listed["tasks"][0]["task_status"], "done", "{listed}");
    assert_eq!(listed["tasks"][0]["description"], "look", "{listed}");
}

#[test]
fn a_killed_sub_agent_is_reported_on_resume() {
    let bed = Bed::new(script(|| Turn::Silent)).and(SETTINGS);
    let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let waits = out.find_map(|line| {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        (event["type"] == "background_wait").then_some(event)
    });
    let id = waits.unwrap()["tasks"][0].as_str().unwrap().to_owned();
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = bed.haft(&["resume"]);
    assert_eq!(ended.out, "Noted.\n", "{ended:?}");
    let line = format!("background task {id} (general_purpose: look): interrupted");
    assert!(ended.err.contains(&line), "{ended:?}");
    // Reported only once.
    let again = bed.haft(&["resume", "--json"]);
    let events = lines(&again.out);
    assert!(
        events.iter().all(|one| one["type"] != "background_task"),
        "{again:?}"
    );
}

#[test]
fn a_pending_call_of_a_background_task_is_answered_later() {
    let settings = format!("{SETTINGS}  interrupt_on: {{ write_file: true }}\n");
    let bed = Bed::new(|request: &Value, _| {
        let text = request.to_string();
        if is_child(request) {
            return match text.contains("\"w\"") {
                true => Turn::text("Written."),
                false => {
                    let arguments = json!({ "file_path": "/one", "content": "new" });
                    ModelReply::calling("w", "write_file", &arguments).into()
                }
            };
        }
        match text.contains("started task") {
            true => Turn::text("So far."),
            false => {
                let arguments = json!({
                    "description": "d", "prompt": "Write.", "subagent_type": "general",
                    "background": true,
                });
                ModelReply::calling("t", "task", &arguments).into()
            }
        }
    })
    .and(&settings);
    let waits = bed.haft(&["run", "Go"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    assert!(
        waits.err.contains("from sub-agent general_purpose"),
        "{waits:?}"
    );
    assert!(waits.err.contains("--answer w=approve"), "{waits:?}");
    assert_eq!(bed.read("one"), "");
    let done = bed.haft(&["resume", "--answer", "w=approve"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(bed.read("one"), "new");
}

#[test]
fn a_pending_call_of_a_killed_background_task_is_asked_about_again() {
    let settings = format!("{SETTINGS}  interrupt_on: {{ write_file: true }}\n");
    let is_killed = Arc::new(AtomicBool::new(false));
    let knows = Arc::clone(&is_killed);
    let bed = Bed::new(move |request: &Value, _: usize| -> Turn {
        let text = request.to_string();
        if is_child(request) {
            return match text.contains("\"w\"") {
                true => Turn::text("Written."),
                false => {
                    let arguments = json!({ "file_path": "/one", "content": "new" });
                    ModelReply::calling("w", "write_file", &arguments).into()
                }
            };
        }
        if knows.load(Ordering::SeqCst) {
            Turn::text("Ok.")
        } else if text.contains("started task") {
            // The model does not answer until haft is killed.
            Turn::Silent
        } else {
            let arguments = json!({
                "description": "d", "prompt": "Write.", "subagent_type": "general",
                "background": true,
            });
            ModelReply::calling("t", "task", &arguments).into()
        }
    })
    .and(&settings);
    let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let waits = out.any(|line| {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        event["type"] == "agent_end" && event["reason"] == "approval"
    });
    assert!(waits);
    child.kill().unwrap();
    child.wait().unwrap();
    is_killed.store(true, Ordering::SeqCst);
    let asked = bed.haft(&["resume"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    assert!(asked.err.contains("--answer w=approve"), "{asked:?}");
    assert!(!asked.err.contains("interrupted"), "{asked:?}");
    assert_eq!(bed.read("one"), "");
    let done = bed.haft(&["resume", "--answer", "w=approve"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(bed.read("one"), "new");
}

#[test]
fn one_of_a_sub_agent_that_was_killed_is_reported_to_the_sub_agent() {
    let start = |kind: &str| {
        let arguments = json!({
            "description": "d", "prompt": "Go.", "subagent_type": kind, "background": true,
        });
        Turn::from(ModelReply::calling("t", "task", &arguments))
    };
    let settings = format!(
        "{SETTINGS}subagents:\n  - name: lead\n    description: Leads.\n    \
         system_prompt: LEADER\n    tools: [task]\n"
    );
    let waits = Arc::new(Barrier::new(2));
    let is_waited_for = Arc::clone(&waits);
    let bed = Bed::new(move |request: &Value, _: usize| -> Turn {
        let text = request.to_string();
        let note = text.rsplit_once("[haft: background task ");
        let interrupted = note.filter(|(_, note)| note.contains("was interrupted"));
        if request["messages"][0].to_string().contains("LEADER") {
            return match interrupted {
                Some(_) => Turn::text("I know."),
                None if text.contains("started task") => Turn::text("It works."),
                None => {
                    // The agent itself records nothing more after this.
                    is_waited_for.wait();
                    start("general")
                }
            };
        }
        if is_child(request) {
            return Turn::Silent;
        }
        match interrupted {
            _ if text.contains("is done; check_task has") => Turn::text("All told."),
            _ if text.contains("delivered: task") => Turn::text("It goes on."),
            Some((_, note)) => {
                let id = note.split(' ').next().unwrap();
                let arguments = json!({ "task_id": id, "message": "Go on." });
                ModelReply::calling("m", "message_task", &arguments).into()
            }
            None if text.contains("started task") => Turn::text("Started."),
            None => start("lead"),
        }
    })
    .and(&settings);
    let mut child = bed.command(&["run", "Go", "--json"]).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut waiting = out.filter(|line| {
        let event: Value = serde_json::from_str(line.as_ref().unwrap()).unwrap();
        event["type"] == "background_wait"
    });
    // The agent waits for one, which waits for the other.
    assert!(waiting.next().is_some());
    waits.wait();
    assert!(waiting.next().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = bed.haft(&["resume"]);
    assert_eq!(ended.out, "All told.\n", "{ended:?}");
    let received = bed.server.received();
    let reported = received.iter().map(|one| one.json()).any(|one| {
        let is_lead = one["messages"][0].to_string().contains("LEADER");
        is_lead
            && one
                .to_string()
                .contains("(general_purpose: d) was interrupted")
    });
    assert!(reported, "{ended:?}");
}

#[test]
fn todos_stay_apart_in_another_process_too() {
    let turns = Arc::new(Mutex::new(Vec::new()));
    let script = Arc::clone(&turns);
    let bed = Bed::new(move |_: &Value, number: usize| -> Turn {
        let turns = script.lock().unwrap();
        turns.get(number).cloned().unwrap_or(Turn::text("Over."))
    })
    .and(SETTINGS);
    let call = |id: &str, tool: &str, arguments: Value| {
        Turn::from(ModelReply::calling(id, tool, &arguments))
    };
    let todos = |text: &str| json!({ "todos": [{ "content": text, "status": "pending" }] });
    turns.lock().unwrap().extend([
        call("p", "write_todos", todos("parent")),
        call("g", "general_purpose", json!({ "request": "Plan" })),
        call("c", "write_todos", todos("child")),
        Turn::text("Planned."),
        Turn::text("Ok."),
    ]);
    assert_eq!(bed.haft(&["run", "Go"]).out, "Ok.\n");
    let reported = results(&bed.messages());
    let (_, reply) = reported.iter().find(|(id, _)| id == "g").unwrap();
    let reply: Value = serde_json::from_str(reply).unwrap();
    let goes_on = json!({
        "description": "d", "prompt": "On.", "subagent_type": "general",
        "task_id": reply["task_id"],
    });
    turns.lock().unwrap().extend([
        call("p2", "read_todos", json!({})),
        call("t", "task", goes_on),
        call("c2", "read_todos", json!({})),
        Turn::text("Read."),
        Turn::text("Done."),
    ]);
    let ended = bed.haft(&["resume", "Go on"]);
    assert_eq!(ended.out, "Done.\n", "{ended:?}");
    let received = bed.server.received();
    let after = |id: &str| {
        let all = received.iter().map(|one| one.json());
        let found = all.filter_map(|one| one["messages"].as_array()?.last().cloned());
        found
            .filter(|one| one["tool_call_id"] == id)
            .map(|one| one["content"].to_string())
            .next()
            .unwrap()
    };
    assert!(after("p2").contains("parent") && !after("p2").contains("child"));
    assert!(after("c2").contains("child") && !after("c2").contains("parent"));
}
