//! Sessions: the same ones as in the terminal, after a restart too.

use crate::bed::{Bed, calls, runs, says};
use haft_testing::model::Turn;
use serde_json::{Value, json};

#[test]
fn a_session_of_the_terminal_is_listed_and_replayed() {
    let edit = json!({ "path": "a.txt", "old_text": "one", "new_text": "two" });
    let bed = Bed::new(vec![
        calls("c1", "edit", &edit),
        runs("c2", "cat a.txt; exit 3"),
        says("It says two."),
        says("Still two."),
    ]);
    bed.write("work/a.txt", "one\n");
    bed.says(&["run", "Change one to two"]);
    let mut client = bed.client();
    let listed = client.ok("session/list", json!({ "cwd": bed.folder() }));
    let listed = &listed["sessions"][0];
    assert_eq!(listed["title"], "Change one to two");
    assert_eq!(listed["cwd"], json!(bed.folder()));
    assert!(listed["updatedAt"].is_string());
    let session = listed["sessionId"].as_str().unwrap().to_owned();
    let opened = client.ok("session/load", bed.place(&session));
    assert_eq!(opened["modes"]["currentModeId"], "ask");
    assert_eq!(client.text("user_message_chunk"), "Change one to two");
    assert_eq!(client.text("agent_message_chunk"), "It says two.");
    let edit = client.tool_call("c1");
    assert_eq!(edit["status"], "completed");
    assert_eq!(edit["content"][0]["newText"], "two\n");
    assert_eq!(
        edit["locations"][0]["path"],
        json!(bed.folder().join("a.txt"))
    );
    let command = client.tool_call("c2");
    assert!(command["content"].to_string().contains("two"), "{command}");
    // It goes on with its history, and the terminal sees what the editor added.
    assert_eq!(client.prompt(&session, "And now?"), "end_turn");
    assert!(
        bed.last_request()["messages"]
            .to_string()
            .contains("It says two.")
    );
    drop(client);
    let shown = bed.says(&["sessions", "show", &session]);
    assert!(shown.contains("Still two."), "{shown}");
}

#[test]
fn a_session_of_the_editor_survives_a_restart() {
    let bed = Bed::new(vec![says("First"), says("Second")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Say first");
    drop(client);
    let mut client = bed.client();
    client.ok("session/resume", bed.place(&session));
    assert!(
        client.updates("user_message_chunk").is_empty(),
        "resume replays nothing"
    );
    assert!(
        !client.updates("available_commands_update").is_empty() || {
            client.wait(|message| message.to_string().contains("available_commands_update"));
            true
        }
    );
    assert_eq!(client.prompt(&session, "Say second"), "end_turn");
    client.ok("session/close", json!({ "sessionId": session }));
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "x" }] });
    assert_eq!(client.refused("session/prompt", prompt).0, -32002);
    // A closed session can be loaded again.
    client.ok("session/load", bed.place(&session));
    assert_eq!(client.text("agent_message_chunk"), "SecondFirstSecond");
}

#[test]
fn a_fork_has_the_history_and_goes_its_own_way() {
    let bed = Bed::new(vec![says("Root"), says("Branch")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Begin");
    let forked = client.ok("session/fork", bed.place(&session));
    let copy = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, session);
    assert_eq!(client.prompt(&copy, "Go on"), "end_turn");
    assert!(bed.last_request()["messages"].to_string().contains("Root"));
    client.seen.clear();
    client.ok("session/load", bed.place(&session));
    assert_eq!(client.text("agent_message_chunk"), "Root");
}

#[test]
fn a_deleted_session_is_gone() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    client.ok("session/delete", json!({ "sessionId": session }));
    let listed = client.ok("session/list", json!({}));
    assert_eq!(listed["sessions"], json!([]));
    assert_eq!(
        client.refused("session/load", bed.place(&session)).0,
        -32002
    );
    assert_eq!(
        client.refused("session/load", bed.place("nobody")).0,
        -32002
    );
}

#[test]
fn two_editors_cannot_write_to_one_session() {
    let bed = Bed::new(vec![says("Mine")]);
    let (mut first, session) = bed.seated();
    first.prompt(&session, "Begin");
    let mut second = bed.client();
    let (_, message) = second.refused("session/load", bed.place(&session));
    assert!(message.contains("in use"), "{message}");
    first.ok("session/close", json!({ "sessionId": session }));
    second.ok("session/load", bed.place(&session));
}

#[test]
fn a_session_that_was_interrupted_can_be_loaded() {
    let bed = Bed::new(vec![runs("c1", "echo begun; sleep 300"), says("Back")]);
    let (mut client, session) = bed.seated();
    client.begin_prompt(&session, "Wait");
    client.wait(|message| message.to_string().contains("begun"));
    drop(client); // Kills it.
    let mut client = bed.client();
    client.ok("session/load", bed.place(&session));
    assert_eq!(client.text("user_message_chunk"), "Wait");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn several_sessions_work_at_the_same_time() {
    let script = |request: &Value, _: usize| match request["messages"].to_string().contains("wait")
    {
        true => Turn::Silent,
        false => says("Quick"),
    };
    let bed = Bed::new(script);
    let (mut client, slow) = bed.seated();
    let quick = client.session(&bed.folder());
    let id = client.begin_prompt(&slow, "wait");
    assert_eq!(client.prompt(&quick, "go"), "end_turn");
    client.notify("session/cancel", json!({ "sessionId": slow }));
    assert_eq!(client.stop_reason(id), "cancelled");
}

#[test]
fn a_folder_that_does_not_exist_is_refused() {
    let bed = Bed::new(vec![says("x")]);
    let mut client = bed.client();
    let params = json!({ "cwd": "/no/such/folder", "mcpServers": [] });
    let (code, message) = client.refused("session/new", params);
    assert_eq!(code, -32602);
    assert!(message.contains("/no/such/folder"), "{message}");
}

#[test]
fn a_session_of_the_editor_can_be_exported() {
    let bed = Bed::new(vec![says("Written down")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Write it down");
    drop(client);
    let exported = bed.says(&["sessions", "export", &session, "--format", "md"]);
    for part in ["Write it down", "Written down"] {
        assert!(exported.contains(part), "{exported}");
    }
}

#[test]
fn a_session_stays_in_its_folder_and_says_so() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    let other = bed.write("other/a.txt", "");
    let place = json!({ "sessionId": session, "cwd": other.parent(), "mcpServers": [] });
    client.ok("session/load", place);
    client.wait(|message| {
        let text = message["params"]["update"]["content"]["text"].as_str();
        text.is_some_and(|text| text.contains("the session works in"))
    });
}
