//! A loaded session shows what it showed when it worked.

use crate::bed::{Bed, calls, runs, says};
use haft_testing::acp::Client;
use haft_testing::model::Turn;
use serde_json::{Value, json};

/// Loads a session in another process.
fn loaded(bed: &Bed, session: &str) -> Client {
    let mut client = bed.client();
    client.ok("session/load", bed.place(session));
    client
}

/// The content that a call shows at last.
fn content(client: &Client, id: &str) -> Value {
    client.tool_call(id)["content"].clone()
}

#[test]
fn changes_of_commands_and_edits_are_shown() {
    let edit = json!({ "path": "a.txt", "old_text": "two", "new_text": "three" });
    let bed = Bed::new(vec![
        calls("c1", "edit", &edit),
        runs("c2", "echo new > b.txt; rm c.txt; mv d.txt e.txt"),
        says("Done"),
    ]);
    bed.write("work/a.txt", "one\ntwo\n");
    bed.write("work/c.txt", "gone\n");
    bed.write("work/d.txt", "moved\n");
    let (mut live, session) = bed.seated();
    live.prompt(&session, "Change them");
    let shown = [content(&live, "c1"), content(&live, "c2")];
    drop(live);
    let client = loaded(&bed, &session);
    assert_eq!([content(&client, "c1"), content(&client, "c2")], shown);
    assert_eq!(shown[0][0]["newText"], "one\nthree\n");
    let of = |name: &str| {
        let path = json!(bed.folder().join(name));
        let all = shown[1].as_array().unwrap();
        let found = all.iter().find(|one| one["path"] == path).unwrap();
        (found["oldText"].clone(), found["newText"].clone())
    };
    assert_eq!(of("b.txt"), (Value::Null, json!("new\n")));
    assert_eq!(of("c.txt"), (json!("gone\n"), json!("")));
    // A file with another name is a deletion and a new file.
    assert_eq!(of("d.txt"), (json!("moved\n"), json!("")));
    assert_eq!(of("e.txt"), (Value::Null, json!("moved\n")));
}

#[test]
fn changes_that_were_undone_say_so() {
    let write = json!({ "path": "a.txt", "content": "one\n" });
    let bed = Bed::new(vec![calls("c1", "write", &write), says("Done")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Write it");
    client.prompt(&session, "/undo");
    drop(client);
    let shown = content(&loaded(&bed, &session), "c1").to_string();
    assert!(shown.contains("undone"), "{shown}");
}

#[test]
fn calls_of_sub_agents_are_shown() {
    let script = |request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        let has_result = messages.contains("\"role\":\"tool\"");
        match (messages.contains("You look things up."), has_result) {
            (true, false) => runs("c1", "echo found > found.txt; echo looked around"),
            (true, true) => says("Looked"),
            (false, false) => calls(
                "t1",
                "task",
                &json!({ "subagent_type": "scout", "description": "look", "prompt": "Look" }),
            ),
            (false, true) => says("Done"),
        }
    };
    let bed = Bed::with(
        script,
        "subagents: [ { name: scout, description: looks, system_prompt: You look things up., tools: [bash] } ]\n",
    );
    let (mut live, session) = bed.seated();
    live.prompt(&session, "Send the scout");
    let calls = |client: &Client| -> Vec<Value> {
        let calls = client.updates("tool_call").into_iter();
        calls.map(|call| call["toolCallId"].clone()).collect()
    };
    let shown = calls(&live);
    let inner = shown[1].as_str().unwrap().to_owned();
    assert!(inner.ends_with("/c1"), "{shown:?}");
    let kept = |client: &Client| {
        let call = client.tool_call(&inner);
        ["title", "status", "content", "rawInput"].map(|name| call[name].clone())
    };
    let expected = kept(&live);
    assert_eq!(
        expected[0].as_str().unwrap().split(':').next(),
        Some("scout")
    );
    drop(live);
    let client = loaded(&bed, &session);
    assert_eq!(calls(&client), shown);
    assert_eq!(kept(&client), expected);
    assert_eq!(client.text("agent_message_chunk"), "Done");
}

#[test]
fn a_list_of_todos_that_was_refused_is_not_the_plan() {
    let todos = json!({ "todos": [{ "content": "Look", "status": "completed" }] });
    let bed = Bed::with(
        vec![calls("c1", "write_todos", &todos), says("Done")],
        "tools: { toolset: deepagents }\npolicy: [ { deny: write_todos } ]\n",
    );
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Plan it");
    assert!(client.updates("plan").is_empty());
    drop(client);
    let client = loaded(&bed, &session);
    assert_eq!(client.tool_call("c1")["status"], "failed");
    assert!(client.updates("plan").is_empty());
}

#[test]
fn the_size_of_the_conversation_is_told() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    let live = client.updates("usage_update")[0].clone();
    drop(client);
    let client = loaded(&bed, &session);
    assert_eq!(client.updates("usage_update")[0], &live);
}

#[test]
fn a_request_that_fails_does_not_empty_the_conversation() {
    let failing = Turn::status(400, "{\"error\":{\"message\":\"no\"}}");
    let bed = Bed::new(vec![says("Hello"), failing]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    let id = client.begin_prompt(&session, "Again");
    client.answer(id);
    let used = client.updates("usage_update");
    assert!(used.iter().all(|one| one["used"] != 0), "{used:?}");
}

#[test]
fn colours_of_a_terminal_are_left_out() {
    let bed = Bed::new(vec![
        runs("c1", "printf '\\033[31mred\\033[0m\\n'"),
        says("Done"),
    ]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Run it");
    let shown = content(&client, "c1").to_string();
    assert!(shown.contains("red") && !shown.contains("[31m"), "{shown}");
}
