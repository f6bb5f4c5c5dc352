//! Questions: approvals, of sub-agents too, reviews of changes, and clients that do not answer.

use crate::bed::{Bed, calls, runs, says};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ASK: &str = "policy: [ { ask: bash } ]\n";

fn option_ids(question: &Value) -> Vec<&str> {
    let options = question["params"]["options"].as_array().unwrap();
    options
        .iter()
        .map(|option| option["optionId"].as_str().unwrap())
        .collect()
}

#[test]
fn an_allowed_call_runs() {
    let bed = Bed::with(vec![runs("c1", "echo ran > out"), says("Done")], ASK);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Run it");
    let question = client.question();
    let call = &question["params"]["toolCall"];
    assert_eq!(call["toolCallId"], "c1");
    assert_eq!(call["rawInput"]["command"], "echo ran > out");
    assert_eq!(
        option_ids(&question),
        ["allow", "allow_session", "allow_always", "reject"]
    );
    // The client knows the call before it is asked about it.
    assert_eq!(client.tool_call("c1")["sessionUpdate"], "tool_call");
    assert!(!bed.work("out").exists());
    client.choose(&question, "allow");
    assert_eq!(client.stop_reason(id), "end_turn");
    assert!(bed.work("out").exists());
    assert_eq!(client.tool_call("c1")["status"], "completed");
}

#[test]
fn a_rejected_call_does_not_run_and_the_session_goes_on() {
    let script = vec![runs("c1", "touch out"), says("Understood"), says("More")];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = Some("reject");
    assert_eq!(client.prompt(&session, "Run it"), "end_turn");
    assert!(!bed.work("out").exists());
    assert_eq!(client.tool_call("c1")["status"], "failed");
    assert_eq!(client.text("agent_message_chunk"), "Understood");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn allowing_for_the_session_asks_once() {
    let script = vec![runs("c1", "make one"), runs("c2", "make one"), says("Done")];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = Some("allow_session");
    client.prompt(&session, "Run both");
    let asked = client
        .seen
        .iter()
        .filter(|message| message["method"] == "session/request_permission");
    assert_eq!(asked.count(), 1);
    assert_eq!(client.tool_call("c2")["status"], "completed");
}

#[test]
fn allowing_always_is_kept_for_other_sessions() {
    let script = |_: &Value, number: usize| match number % 2 {
        0 => runs(&format!("c{number}"), "make one"),
        _ => says("Done"),
    };
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = Some("allow_always");
    client.prompt(&session, "Run it");
    client.chooses = None;
    let other = client.session(&bed.folder());
    assert_eq!(client.prompt(&other, "Run it again"), "end_turn");
    let own = std::fs::read_to_string(bed.home(".config/haft/haft.yaml")).unwrap();
    assert!(own.contains("make one"), "{own}");
}

#[test]
fn a_question_without_an_answer_waits_until_it_is_cancelled() {
    let bed = Bed::with(vec![runs("c1", "touch out"), says("Back")], ASK);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Run it");
    let question = client.question();
    // Other requests are answered meanwhile.
    client.ok("session/list", json!({}));
    let begun = Instant::now();
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.stop_reason(id), "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(1));
    // A late answer changes nothing.
    client.choose(&question, "allow");
    client.chooses = Some("allow");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
    assert!(!bed.work("out").exists());
}

#[test]
fn an_error_or_an_unknown_answer_is_no_approval() {
    let script = vec![
        runs("c1", "touch out"),
        runs("c2", "touch out"),
        says("Done"),
    ];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Run it");
    let question = client.question();
    let error = json!({ "code": -32601, "message": "what?" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    let question = client.question();
    client.choose(&question, "yes please");
    assert_eq!(client.stop_reason(id), "end_turn");
    assert!(!bed.work("out").exists());
}

#[test]
fn a_sub_agent_asks_too() {
    let script = |request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        match (
            messages.contains("You look things up."),
            messages.contains("\"role\":\"tool\""),
        ) {
            (true, false) => runs("c1", "touch out"),
            (true, true) => says("Looked"),
            (false, false) => calls(
                "c1",
                "task",
                &json!({ "subagent_type": "scout", "description": "look", "prompt": "Look" }),
            ),
            (false, true) => says("Done"),
        }
    };
    let agents = "subagents: [ { name: scout, description: looks, system_prompt: You look things up., tools: [bash] } ]\n";
    let bed = Bed::with(script, &format!("{ASK}{agents}"));
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Send the scout");
    let question = client.question();
    let call = &question["params"]["toolCall"];
    let own = call["toolCallId"].as_str().unwrap().to_owned();
    assert_ne!(own, "c1", "ids of sub-agents are their own");
    assert!(call["title"].as_str().unwrap().contains("scout"), "{call}");
    client.choose(&question, "allow");
    assert_eq!(client.stop_reason(id), "end_turn");
    assert!(bed.work("out").exists());
    assert_eq!(client.tool_call(&own)["status"], "completed");
    assert_eq!(client.tool_call("c1")["status"], "completed");
}

#[test]
fn changes_are_reviewed_and_can_be_reverted() {
    let script = vec![runs("c1", "echo changed > a.txt"), says("Done")];
    let bed = Bed::with(script, "policy: [ { review: bash } ]\n");
    bed.write("work/a.txt", "before\n");
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Change it");
    let question = client.question();
    let call = question["params"]["toolCall"].to_string();
    assert!(call.contains("a.txt") && call.contains("-before"), "{call}");
    assert_eq!(option_ids(&question), ["allow", "reject"]);
    client.choose(&question, "reject");
    assert_eq!(client.stop_reason(id), "end_turn");
    let text = std::fs::read_to_string(bed.work("a.txt")).unwrap();
    assert_eq!(text, "before\n");
}

#[test]
fn a_question_of_an_earlier_session_is_asked_again() {
    let script = vec![runs("c1", "touch out"), says("Done")];
    let bed = Bed::with(script, ASK);
    let ran = bed.haft(&["run", "Run it"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let mut client = bed.client();
    let listed = client.ok("session/list", json!({ "cwd": bed.folder() }));
    let session = listed["sessions"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    client.ok("session/load", bed.place(&session));
    assert_eq!(client.tool_call("c1")["status"], Value::Null, "it waits");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
    assert!(bed.work("out").exists());
}

#[test]
fn several_calls_are_asked_about_one_after_the_other() {
    let both = ModelReply::calling("c1", "bash", &json!({ "command": "touch a" })).call(
        "c2",
        "bash",
        &json!({ "command": "touch b" }),
    );
    let bed = Bed::with(vec![Turn::Reply(both), says("Done")], ASK);
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Both"), "end_turn");
    assert!(bed.work("a").exists() && bed.work("b").exists());
}

/// A main agent that sends two scouts at once; each wants to run a command.
fn two_scouts() -> Bed {
    let script = |request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        let has_result = messages.contains("\"role\":\"tool\"");
        if messages.contains("You look things up.") {
            let name = if messages.contains("Look left") {
                "left"
            } else {
                "right"
            };
            return match has_result {
                true => says("Looked"),
                false => runs("c1", &format!("touch {name}")),
            };
        }
        if has_result {
            return says("Done");
        }
        let send = |side: &str| json!({ "subagent_type": "scout", "description": side, "prompt": format!("Look {side}") });
        let reply = ModelReply::text("").call("t1", "task", &send("left")).call(
            "t2",
            "task",
            &send("right"),
        );
        Turn::Reply(reply)
    };
    let agents = "subagents: [ { name: scout, description: looks, system_prompt: You look things up., tools: [bash] } ]\n";
    Bed::with(script, &format!("{ASK}{agents}"))
}

#[test]
fn questions_of_two_sub_agents_are_both_shown_and_can_be_answered() {
    let bed = two_scouts();
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Send two scouts");
    let mut calls = Vec::new();
    for answer in ["allow", "reject"] {
        let question = client.question();
        let call = question["params"]["toolCall"]["toolCallId"].clone();
        assert!(!calls.contains(&call), "{call}");
        calls.push(call);
        client.choose(&question, answer);
    }
    assert_eq!(client.stop_reason(id), "end_turn");
    let done = ["left", "right"].map(|name| bed.work(name).exists());
    assert_ne!(done[0], done[1], "one was allowed, the other was not");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn cancel_ends_the_question_of_a_sub_agent_and_the_session_goes_on() {
    let bed = two_scouts();
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Send two scouts");
    let question = client.question();
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.stop_reason(id), "cancelled");
    // The late answer changes nothing.
    client.choose(&question, "allow");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
    assert!(!bed.work("left").exists() && !bed.work("right").exists());
}

#[test]
fn a_review_leaves_the_title_and_the_input_of_the_call() {
    for answer in ["allow", "reject"] {
        let script = vec![runs("c1", "echo changed > a.txt"), says("Done")];
        let bed = Bed::with(script, "policy: [ { review: bash } ]\n");
        bed.write("work/a.txt", "before\n");
        let (mut client, session) = bed.seated();
        client.chooses = None;
        let id = client.begin_prompt(&session, "Change it");
        let question = client.question();
        let call = &question["params"]["toolCall"];
        assert_eq!(call["title"], "`echo changed > a.txt`");
        assert_eq!(call["rawInput"]["command"], "echo changed > a.txt");
        let shown = call["content"].to_string();
        assert!(shown.contains("Keep what"), "{shown}");
        client.choose(&question, answer);
        assert_eq!(client.stop_reason(id), "end_turn");
        let shown = client.tool_call("c1")["content"].to_string();
        assert!(!shown.contains("Keep what"), "{shown}");
    }
}

#[test]
fn what_the_user_did_not_say_is_not_reported_as_their_words() {
    let script = vec![runs("c1", "touch out"), says("Done")];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    client.prompt(&session, "Run it");
    let sent = bed.last_request()["messages"].to_string();
    assert!(
        sent.contains("not approved: the session is in plan mode"),
        "{sent}"
    );
    assert!(!sent.contains("the user said no"), "{sent}");

    let script = vec![
        runs("c1", "touch out"),
        runs("c2", "touch out"),
        says("Done"),
    ];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Run it");
    let question = client.question();
    let error = json!({ "code": -32601, "message": "what?" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
    let question = client.question();
    client.choose(&question, "yes please");
    assert_eq!(client.stop_reason(id), "end_turn");
    let sent = bed.last_request()["messages"].to_string();
    let expected = "not approved: the editor gave no valid answer";
    assert_eq!(sent.matches(expected).count(), 2, "{sent}");
    assert!(!sent.contains("the user said no"), "{sent}");
}

#[test]
fn what_is_allowed_for_the_session_stays_allowed_after_a_switch_of_the_mode() {
    let script = vec![
        runs("c1", "make one"),
        says("Done"),
        says("Planned"),
        runs("c2", "make one"),
        says("Done"),
    ];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    client.chooses = Some("allow_session");
    client.prompt(&session, "Run it");
    let mode = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    client.ok("session/set_mode", mode("plan"));
    client.prompt(&session, "Plan");
    client.ok("session/set_mode", mode("ask"));
    client.chooses = Some("reject");
    client.prompt(&session, "Run it again");
    assert_eq!(client.tool_call("c2")["status"], "completed");
}

#[test]
fn an_answer_may_have_its_id_as_text() {
    let bed = Bed::with(vec![runs("c1", "touch out"), says("Done")], ASK);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Run it");
    let mut question = client.question();
    question["id"] = json!(question["id"].to_string());
    client.choose(&question, "allow");
    assert_eq!(client.stop_reason(id), "end_turn");
    assert!(bed.work("out").exists());
}
