//! Sub-agents in the background: what they do is shown to its end, and cancel ends them.

use crate::bed::{Bed, calls, runs, says};
use crate::hostile::{ends_within_a_second, is_running};
use haft_testing::acp::Client;
use haft_testing::model::Turn;
use serde_json::{Value, json};

/// A sub-agent in the background runs `command`; the main agent goes on with `main`, given its
/// request.
fn scouting(command: &str, main: impl Fn(&Value) -> Turn + Send + Sync + 'static) -> Bed {
    scouting_with(command, main, "")
}

/// With more settings of the user.
fn scouting_with(
    command: &str,
    main: impl Fn(&Value) -> Turn + Send + Sync + 'static,
    more: &str,
) -> Bed {
    let command = command.to_owned();
    let script = move |request: &Value, _: usize| {
        let messages = request["messages"].to_string();
        let has_result = messages.contains("\"role\":\"tool\"");
        if messages.contains("You look things up.") {
            return match has_result {
                true => says("Looked"),
                false => runs("b1", &command),
            };
        }
        match has_result {
            true => main(request),
            false => calls(
                "t1",
                "task",
                &json!({ "subagent_type": "scout", "description": "look", "prompt": "Look", "background": true }),
            ),
        }
    };
    let settings = "tools: { preset: all }\nsubagents: [ { name: scout, description: looks, system_prompt: You look things up., tools: [bash] } ]\n";
    Bed::with(script, &format!("{settings}{more}"))
}

/// Updates of the call of the sub-agent, so far.
fn updates(client: &Client) -> Vec<Value> {
    let updates = client.seen.iter().map(|one| &one["params"]["update"]);
    let own = updates.filter(|update| {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        id.ends_with("/b1")
    });
    own.cloned().collect()
}

fn has_begun(message: &Value) -> bool {
    let update = &message["params"]["update"];
    let id = update["toolCallId"].as_str().unwrap_or_default();
    id.ends_with("/b1") && update["content"].to_string().contains("begun")
}

fn is_last_prompt(request: &Value, text: &str) -> bool {
    let messages = request["messages"].as_array().unwrap();
    messages.last().unwrap().to_string().contains(text)
}

#[test]
fn cancel_ends_sub_agents_in_the_background() {
    let asks = "policy: [ { ask: \"*\" } ]\n";
    for (goes_on, rules) in [(false, ""), (true, ""), (false, asks)] {
        let marker = format!("30{}.5", fastrand::u32(10_000..99_999));
        let command = format!("echo begun; sleep {marker}; touch late");
        let main = move |request: &Value| match is_last_prompt(request, "Again") {
            true => says("Back"),
            false if goes_on => Turn::Silent,
            false => says("Started"),
        };
        let bed = scouting_with(&command, main, rules);
        let (mut client, session) = bed.seated();
        let id = client.begin_prompt(&session, "Send a scout");
        if !goes_on {
            assert_eq!(client.stop_reason(id), "end_turn");
        }
        if !client.seen.iter().any(has_begun) {
            client.wait(has_begun);
        }
        assert!(is_running(&marker));
        client.notify("session/cancel", json!({ "sessionId": session }));
        if goes_on {
            assert_eq!(client.stop_reason(id), "cancelled");
        }
        ends_within_a_second(&marker);
        assert_eq!(client.prompt(&session, "Again"), "end_turn");
        let sent = bed.last_request()["messages"].to_string();
        assert!(sent.contains("the user cancelled"), "{sent}");
        assert!(!bed.work("late").exists());
        // The user is not asked whether to do what they have asked for.
        let seen = json!(client.seen).to_string();
        assert!(!seen.contains("cancel_task"), "{seen}");
    }
}

#[test]
fn a_call_in_the_background_goes_on_when_the_turn_ends() {
    let command = "echo begun; touch begun; while ! test -e go; do sleep 0.05; done; echo made > made.txt; echo over";
    let bed = scouting(command, |request| {
        match request["messages"].to_string().contains("has begun") {
            true => says("Started"),
            false => runs(
                "w1",
                "while ! test -e begun; do sleep 0.05; done; echo has begun",
            ),
        }
    });
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Send a scout"), "end_turn");
    if !client.seen.iter().any(has_begun) {
        client.wait(has_begun);
    }
    bed.write("work/go", "");
    client.wait(|message| {
        let update = &message["params"]["update"];
        let id = update["toolCallId"].as_str().unwrap_or_default();
        id.ends_with("/b1") && update["status"] == "completed"
    });
    let updates = updates(&client);
    assert!(
        updates.iter().all(|update| update["status"] != "failed"),
        "{updates:#?}"
    );
    let title = updates[0]["title"].as_str().unwrap();
    assert!(title.contains("scout"), "{title}");
    let content = updates.last().unwrap()["content"].as_array().unwrap();
    let output = content[0]["content"]["text"].as_str().unwrap();
    assert!(output.starts_with("```"), "{output}");
    let path = json!(bed.folder().join("made.txt"));
    let change = content.iter().find(|one| one["path"] == path).unwrap();
    assert_eq!(change["newText"], "made\n");
}

#[test]
fn a_question_in_the_background_can_be_cancelled_when_the_turn_has_ended() {
    let main = |request: &Value| match request["messages"].to_string().contains("was asked") {
        true => says("Started"),
        false => runs(
            "w1",
            "while ! test -e asked; do sleep 0.05; done; echo was asked",
        ),
    };
    let rule = "policy: [ { ask: bash, command: touch } ]\n";
    let bed = scouting_with("touch out", main, rule);
    let (mut client, session) = bed.seated();
    client.chooses = None;
    let id = client.begin_prompt(&session, "Send a scout");
    let question = client.question();
    bed.write("work/asked", "");
    assert_eq!(client.stop_reason(id), "end_turn");
    let outcome = json!({ "outcome": { "outcome": "cancelled" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    client.wait(|message| message["params"]["update"]["status"] == "failed");
    let updates = updates(&client);
    let announced = |update: &&Value| update["sessionUpdate"] == "tool_call";
    assert_eq!(updates.iter().filter(announced).count(), 1, "{updates:#?}");
    let titles = updates.iter().filter_map(|update| update["title"].as_str());
    assert_eq!(titles.collect::<Vec<_>>(), ["scout: `touch out`"]);
    assert!(!bed.work("out").exists());
}
