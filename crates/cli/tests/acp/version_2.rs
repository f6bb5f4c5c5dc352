//! Version 2 of the protocol, for clients that ask for it.

use crate::bed::{Bed, calls, runs, says};
use haft_testing::acp::Client;
use haft_testing::model::ModelReply;
use serde_json::{Value, json};

const ASK: &str = "policy: [ { ask: bash } ]\n";

fn introduction(version: u64) -> Value {
    json!({
        "protocolVersion": version,
        "info": { "name": "test", "version": "1" },
        "capabilities": {},
    })
}

fn client(bed: &Bed) -> Client {
    let mut client = Client::start(&mut bed.agent());
    client.ok("initialize", introduction(2));
    client
}

/// Sends a prompt, waits for its end, and returns the last state and the id of the message.
fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let answer = client.begin_prompt(session, text);
    let id = client.answer(answer)["result"]["messageId"].clone();
    let idle = idle(client);
    (idle, id.as_str().unwrap().to_owned())
}

fn idle(client: &mut Client) -> Value {
    let is_idle = |message: &Value| message["params"]["update"]["state"] == "idle";
    client.wait(is_idle)["params"]["update"].clone()
}

fn ids(client: &Client, kind: &str) -> Vec<Value> {
    let mut ids: Vec<Value> = Vec::new();
    for update in client.updates(kind) {
        if ids.last() != Some(&update["messageId"]) {
            ids.push(update["messageId"].clone());
        }
    }
    ids
}

#[test]
fn the_version_is_the_one_the_client_asks_for_or_the_newest_before_it() {
    let bed = Bed::new(vec![]);
    for (wanted, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (999, 2)] {
        let mut client = Client::start(&mut bed.agent());
        let answer = client.ok("initialize", introduction(wanted));
        assert_eq!(answer["protocolVersion"], expected, "{wanted}");
        let named = if expected == 1 { "agentInfo" } else { "info" };
        assert_eq!(answer[named]["name"], "haft", "{answer}");
    }
}

#[test]
fn a_prompt_is_acknowledged_and_ends_with_a_state() {
    let reply = ModelReply::text("It works.").reasoning("Hm.", "");
    let bed = Bed::new(vec![haft_testing::model::Turn::Reply(reply)]);
    let mut client = client(&bed);
    let opened = client.ok(
        "session/new",
        json!({ "cwd": bed.folder(), "mcpServers": [] }),
    );
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let commands = opened["availableCommands"].to_string();
    assert!(commands.contains("undo"), "{commands}");
    assert_eq!(opened["configOptions"][0]["configId"], "mode");
    let (idle, id) = prompt(&mut client, &session, "Does it work?");
    assert_eq!(idle["stopReason"], "end_turn");
    assert_eq!(client.text("agent_message_chunk"), "It works.");
    assert_eq!(client.text("agent_thought_chunk"), "Hm.");
    let said = client.updates("user_message")[0];
    assert_eq!(said["messageId"], json!(id));
    assert_eq!(said["content"][0]["text"], "Does it work?");
    let states = client.updates("state_update");
    let states: Vec<_> = states.iter().map(|update| &update["state"]).collect();
    assert_eq!(states, ["running", "idle"]);
    assert_eq!(ids(&client, "agent_message_chunk").len(), 1);
    assert_ne!(
        ids(&client, "agent_message_chunk"),
        ids(&client, "agent_thought_chunk")
    );
}

#[test]
fn a_replayed_message_keeps_its_id() {
    let edit = json!({ "path": "a.txt", "old_text": "one", "new_text": "two" });
    let script = vec![
        says("First."),
        calls("c1", "edit", &edit),
        says("Second."),
        says("Third."),
    ];
    let bed = Bed::new(script);
    bed.write("work/a.txt", "one\n");
    let mut client = client(&bed);
    let session = client.session(&bed.folder());
    prompt(&mut client, &session, "One");
    prompt(&mut client, &session, "/changes");
    let (_, id) = prompt(&mut client, &session, "Two");
    let live = ids(&client, "agent_message_chunk");
    let diff = &client.tool_call("c1")["content"][0];
    assert_eq!(diff["changes"][0]["operation"], "modify", "{diff}");
    let patch = diff["patch"]["text"].as_str().unwrap();
    assert!(patch.contains("-one") && patch.contains("+two"), "{patch}");
    client.seen.clear();
    let mut place = bed.place(&session);
    place["replayFrom"] = json!({ "type": "start" });
    let opened = client.ok("session/resume", place);
    assert_eq!(opened["configOptions"][0]["configId"], "mode");
    let said = client.updates("user_message_chunk");
    assert_eq!(said.len(), 2, "slash commands are not recorded");
    assert_eq!(said[1]["messageId"], json!(id));
    // The answer to /changes is not recorded either.
    let replayed = ids(&client, "agent_message_chunk");
    assert_eq!(replayed, [live[0].clone(), live[2].clone()]);
    assert_eq!(client.tool_call("c1")["name"], "edit");
    let last = client.updates("state_update");
    assert_eq!(last.last().unwrap()["state"], "idle");
    // Without a replay, the next prompt gets the next id.
    client.ok("session/resume", bed.place(&session));
    let (_, next) = prompt(&mut client, &session, "Three");
    assert_eq!(next, "prompt-3");
}

#[test]
fn a_question_changes_the_state_and_a_rejection_lets_the_session_go_on() {
    let script = vec![runs("c1", "touch out"), says("As you like."), says("Yes.")];
    let bed = Bed::with(script, ASK);
    let mut client = client(&bed);
    let session = client.session(&bed.folder());
    client.chooses = None;
    let id = client.begin_prompt(&session, "Touch it");
    client.answer(id);
    let question = client.question();
    let params = &question["params"];
    assert!(params["title"].as_str().unwrap().contains("touch out"));
    assert_eq!(params["subject"]["type"], "tool_call", "{params}");
    client.choose(&question, "reject");
    assert_eq!(idle(&mut client)["stopReason"], "end_turn");
    let states = client.updates("state_update");
    let states: Vec<_> = states.iter().map(|update| &update["state"]).collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle"]);
    assert!(!bed.work("out").exists());
    let (idle, _) = prompt(&mut client, &session, "Still there?");
    assert_eq!(idle["stopReason"], "end_turn");
}

#[test]
fn cancel_and_failures_are_reasons_too() {
    let script = |request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        match (messages.contains("wait"), messages.contains("fail")) {
            (_, true) => haft_testing::model::Turn::Status {
                status: 400,
                headers: Vec::new(),
                body: json!({ "error": { "message": "too blue" } }).to_string(),
            },
            (true, false) => haft_testing::model::Turn::Silent,
            _ => says("Hello"),
        }
    };
    let bed = Bed::new(script);
    let mut client = client(&bed);
    let session = client.session(&bed.folder());
    let id = client.begin_prompt(&session, "wait");
    client.answer(id);
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(idle(&mut client)["stopReason"], "cancelled");
    let (idle, _) = prompt(&mut client, &session, "fail");
    assert_eq!(idle["stopReason"], "error");
    let message = idle["error"]["message"].as_str().unwrap();
    assert!(message.contains("too blue"), "{idle}");
}

#[test]
fn what_version_2_removed_is_unknown() {
    let bed = Bed::new(vec![]);
    let mut client = client(&bed);
    let session = client.session(&bed.folder());
    for (method, params) in [
        ("session/load", bed.place(&session)),
        (
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "auto" }),
        ),
        ("authenticate", json!({ "methodId": "api-key" })),
    ] {
        assert_eq!(client.refused(method, params).0, -32601, "{method}");
    }
    client.ok("auth/login", json!({ "methodId": "api-key" }));
    let set = json!({ "sessionId": session, "configId": "mode", "type": "id", "value": "auto" });
    let answer = client.ok("session/set_config_option", set);
    assert_eq!(answer["configOptions"][0]["currentValue"], "auto");
    let empty = json!({ "sessionId": session, "prompt": [] });
    assert_eq!(client.refused("session/prompt", empty).0, -32602);
}

#[test]
fn a_review_has_a_title_of_its_own() {
    let script = vec![runs("c1", "echo changed > a.txt"), says("Done")];
    let bed = Bed::with(script, "policy: [ { review: bash } ]\n");
    bed.write("work/a.txt", "before\n");
    let mut client = client(&bed);
    client.chooses = None;
    let session = client.session(&bed.folder());
    client.begin_prompt(&session, "Change it");
    let question = client.question();
    let params = &question["params"];
    assert_eq!(params["title"], "Keep what `echo changed > a.txt` changed?");
    let call = &params["subject"]["toolCall"];
    assert_eq!(call["title"], "`echo changed > a.txt`", "{params}");
    client.choose(&question, "allow");
    idle(&mut client);
}
