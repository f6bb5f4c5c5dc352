//! Modes, settings, slash commands, MCP servers of the editor, and a missing key.

use crate::bed::{Bed, KEY, runs, says};
use haft_testing::acp::Client;
use haft_testing::model::ModelReply;
use haft_testing::model::Turn;
use serde_json::{Value, json};

const ASK: &str = "policy: [ { ask: bash } ]\n";

fn asked(client: &Client) -> usize {
    let asked = client
        .seen
        .iter()
        .filter(|message| message["method"] == "session/request_permission");
    asked.count()
}

#[test]
fn auto_approves_and_ask_asks_again() {
    let script = vec![
        runs("c1", "echo one"),
        says("Done"),
        runs("c2", "echo two"),
        says("Done"),
    ];
    let bed = Bed::with(script, ASK);
    let (mut client, session) = bed.seated();
    let mode = |mode: &str| json!({ "sessionId": session, "modeId": mode });
    client.ok("session/set_mode", mode("auto"));
    assert_eq!(
        client.updates("current_mode_update")[0]["currentModeId"],
        "auto"
    );
    client.prompt(&session, "Run");
    assert_eq!(asked(&client), 0);
    assert_eq!(client.tool_call("c1")["status"], "completed");
    client.ok("session/set_mode", mode("ask"));
    client.prompt(&session, "Run");
    assert_eq!(asked(&client), 1);
    assert_eq!(client.refused("session/set_mode", mode("yolo")).0, -32602);
}

#[test]
fn interrupt_on_waits_for_the_user_even_in_auto() {
    let bed = Bed::with(
        vec![runs("c1", "echo one"), says("Done")],
        "tools: { interrupt_on: { bash: true } }\n",
    );
    let (mut client, session) = bed.seated();
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "auto" }),
    );
    client.prompt(&session, "Run");
    assert_eq!(asked(&client), 1);
}

#[test]
fn plan_writes_nothing() {
    let both = ModelReply::calling("c1", "write", &json!({ "path": "a", "content": "x" })).call(
        "c2",
        "bash",
        &json!({ "command": "touch b; cat c.txt" }),
    );
    let script = vec![
        Turn::Reply(both),
        says("The plan"),
        runs("c3", "touch d"),
        says("Done"),
    ];
    let bed = Bed::new(script);
    bed.write("work/c.txt", "readable\n");
    let (mut client, session) = bed.seated();
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    assert_eq!(client.prompt(&session, "Plan it"), "end_turn");
    assert!(!bed.work("a").exists() && !bed.work("b").exists());
    assert_eq!(client.tool_call("c1")["status"], "failed");
    assert!(client.tool_call("c2").to_string().contains("readable"));
    assert!(
        bed.last_request()["messages"]
            .to_string()
            .contains("plan mode")
    );
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "ask" }),
    );
    assert_eq!(client.prompt(&session, "Do it"), "end_turn");
    assert!(bed.work("d").exists());
}

#[test]
fn the_sandbox_can_be_chosen() {
    let bed = Bed::new(vec![runs("c1", "touch a"), says("Done")]);
    let (mut client, session) = bed.seated();
    let set =
        |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let options = client.ok("session/set_config_option", set("sandbox", "read-only"));
    let options = options["configOptions"].as_array().unwrap();
    let sandbox = options
        .iter()
        .find(|option| option["id"] == "sandbox")
        .unwrap();
    assert_eq!(sandbox["currentValue"], "read-only");
    client.prompt(&session, "Write");
    assert!(!bed.work("a").exists());
    let wrong = client.refused("session/set_config_option", set("sandbox", "none"));
    assert_eq!(wrong.0, -32602);
    assert!(wrong.1.contains("workspace"), "{}", wrong.1);
    assert_eq!(
        client
            .refused("session/set_config_option", set("colour", "x"))
            .0,
        -32602
    );
}

#[test]
fn own_commands_are_offered_and_filled_in() {
    let bed = Bed::new(vec![says("Reviewed")]);
    let text = "---\ndescription: Reviews a file\n---\nReview the file $ARGUMENTS carefully.";
    bed.write("home/.config/haft/commands/review.md", text);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "/review a.rs");
    let offered = client.updates("available_commands_update")[0].to_string();
    for part in ["\"undo\"", "\"compact\"", "\"review\"", "Reviews a file"] {
        assert!(offered.contains(part), "{part} in {offered}");
    }
    let sent = bed.last_request()["messages"].to_string();
    assert!(sent.contains("Review the file a.rs carefully."), "{sent}");
}

#[test]
fn undo_takes_back_what_the_run_changed() {
    let script = vec![runs("c1", "echo new > a.txt"), says("Done")];
    let bed = Bed::new(script);
    bed.write("work/a.txt", "old\n");
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Change it");
    assert_eq!(client.prompt(&session, "/changes"), "end_turn");
    assert!(client.text("agent_message_chunk").contains("-old"));
    assert_eq!(client.prompt(&session, "/undo"), "end_turn");
    let text = || std::fs::read_to_string(bed.work("a.txt")).unwrap();
    assert_eq!(text(), "old\n");
    client.prompt(&session, "/redo");
    assert_eq!(text(), "new\n");
}

#[test]
fn a_missing_key_says_how_to_get_one() {
    let bed = Bed::new(vec![says("Hello")]);
    bed.user("");
    let mut client = bed.client();
    let params = json!({ "cwd": bed.folder(), "mcpServers": [] });
    let (code, message) = client.refused("session/new", params.clone());
    assert_eq!(code, -32000);
    for way in ["ANTHROPIC_API_KEY", "ollama"] {
        assert!(message.contains(way), "{message}");
    }
    let method = json!({ "methodId": "api-key" });
    assert_eq!(client.refused("authenticate", method.clone()).0, -32000);
    // A key that is set later is found.
    bed.user(&format!(
        "provider: openai-completions\nmodel: scripted\nbase_url: \"{}\"\napi_key: {KEY}\n",
        bed.server.url()
    ));
    client.ok("authenticate", method);
    client.ok("session/new", params);
}

#[test]
fn a_server_of_the_editor_offers_its_tools() {
    let script = |request: &Value, number: usize| match number {
        0 => {
            let tools = request["tools"].to_string();
            assert!(tools.contains("extra_"), "{tools}");
            says("Seen")
        }
        _ => says("More"),
    };
    let bed = Bed::new(script);
    let mut client = bed.client();
    let server = json!({
        "name": "extra",
        "command": env!("CARGO_BIN_EXE_haft"),
        "args": ["mcp", "--preset", "readonly"],
        "env": [],
    });
    let opened = client.ok(
        "session/new",
        json!({ "cwd": bed.folder(), "mcpServers": [server] }),
    );
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(client.prompt(&session, "Look"), "end_turn");
    assert!(bed.last_request()["tools"].to_string().contains("extra_"));
}

#[test]
fn the_effort_can_be_chosen_and_is_sent_with_the_next_request() {
    let bed = Bed::with(
        vec![says("One"), says("Two"), says("Three")],
        "effort: low\n",
    );
    let mut client = bed.client();
    let place = json!({ "cwd": bed.folder(), "mcpServers": [] });
    let opened = client.ok("session/new", place);
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let effort = |options: &Value| {
        let options = options["configOptions"].as_array().unwrap();
        let effort = options.iter().find(|option| option["id"] == "effort");
        effort.unwrap().clone()
    };
    assert_eq!(effort(&opened)["currentValue"], "low");
    assert_eq!(effort(&opened)["category"], "thought_level");
    client.prompt(&session, "Go");
    assert_eq!(bed.last_request()["reasoning_effort"], "low");
    let mut set = |value: &str| {
        let set = json!({ "sessionId": session, "configId": "effort", "value": value });
        client.call("session/set_config_option", set)
    };
    assert_eq!(set("enormous")["error"]["code"], -32602);
    assert_eq!(effort(&set("high")["result"])["currentValue"], "high");
    client.prompt(&session, "Go");
    assert_eq!(bed.last_request()["reasoning_effort"], "high");
    let set = json!({ "sessionId": session, "configId": "effort", "value": "default" });
    client.ok("session/set_config_option", set);
    client.prompt(&session, "Go");
    assert_eq!(bed.last_request()["reasoning_effort"], Value::Null);
}

#[test]
fn compact_replaces_older_messages_with_a_summary() {
    let script = |request: &Value, number: usize| match number {
        0..5 => says(&format!("Answer {number}. {}", "word ".repeat(4000))),
        5 => says("The summary of it all"),
        _ => {
            let messages = request["messages"].to_string();
            assert!(messages.contains("The summary of it all"), "{messages}");
            says("I remember")
        }
    };
    let bed = Bed::new(script);
    let (mut client, session) = bed.seated();
    for number in 0..5 {
        let text = format!("Question {number}. {}", "word ".repeat(8000));
        client.prompt(&session, &text);
    }
    client.seen.clear();
    assert_eq!(client.prompt(&session, "/compact"), "end_turn");
    let told = client.text("agent_message_chunk");
    assert!(told.starts_with("compacted: about "), "{told}");
    assert_eq!(client.prompt(&session, "Do you remember?"), "end_turn");
    assert!(client.text("agent_message_chunk").contains("I remember"));
    // The whole conversation is still there for the user.
    client.seen.clear();
    client.ok("session/load", bed.place(&session));
    assert!(client.text("user_message_chunk").contains("Question 0."));
}

#[test]
fn slash_commands_are_there_after_a_restart_and_a_reload() {
    let bed = Bed::new(vec![says("Hello")]);
    bed.write("home/.config/haft/commands/tidy.md", "Tidy up");
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    drop(client);
    let mut client = bed.client();
    for method in ["session/load", "session/resume"] {
        client.seen.clear();
        client.ok(method, bed.place(&session));
        let is_offer = |message: &Value| {
            message["params"]["update"]["sessionUpdate"] == "available_commands_update"
        };
        let seen = client
            .seen
            .iter()
            .find(|message| is_offer(message))
            .cloned();
        let offer = seen.unwrap_or_else(|| client.wait(is_offer)).to_string();
        for name in ["undo", "compact", "tidy"] {
            assert!(offer.contains(&format!("\"{name}\"")), "{method}: {offer}");
        }
    }
}

#[test]
fn the_conversation_can_be_exported() {
    let bed = Bed::new(vec![says("Written down")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Write it down");
    client.seen.clear();
    assert_eq!(client.prompt(&session, "/export talk.md"), "end_turn");
    let said = client.text("agent_message_chunk");
    assert!(said.contains("talk.md"), "{said}");
    let text = std::fs::read_to_string(bed.work("talk.md")).unwrap();
    assert!(
        text.contains("Write it down") && text.contains("Written down"),
        "{text}"
    );
}

#[test]
fn modes_that_do_nothing_are_not_offered() {
    let bed = Bed::with(vec![says("Hello")], "approve: never\n");
    let mut client = bed.client();
    let opened = client.ok(
        "session/new",
        json!({ "cwd": bed.folder(), "mcpServers": [] }),
    );
    let modes = opened["modes"]["availableModes"].as_array().unwrap();
    let ids: Vec<_> = modes
        .iter()
        .map(|mode| mode["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["plan", "ask"]);
    let session = &opened["sessionId"];
    let auto = json!({ "sessionId": session, "modeId": "auto" });
    assert_eq!(client.refused("session/set_mode", auto).0, -32602);
}

#[test]
fn errors_say_what_is_possible() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    let option =
        |id: &str, value: Value| json!({ "sessionId": session, "configId": id, "value": value });
    for (method, params, expected) in [
        (
            "session/set_config_option",
            option("nope", json!("x")),
            "the options are mode, model",
        ),
        (
            "session/set_config_option",
            option("model", json!(["x"])),
            "value must be the id",
        ),
        (
            "authenticate",
            json!({ "methodId": "x" }),
            "unknown authentication method",
        ),
        ("session/load", bed.place(""), "does not exist"),
        ("session/load", bed.place("nobody"), "does not exist"),
    ] {
        let (_, message) = client.refused(method, params);
        assert!(message.contains(expected), "{message}");
        for word in ["untagged", "struct", "haft sessions", "too short"] {
            assert!(!message.contains(word), "{message}");
        }
    }
    client.prompt(&session, "/undo --all");
    let said = client.text("agent_message_chunk");
    assert!(!said.contains("error:"), "{said}");
}

#[test]
fn a_switch_to_plan_during_a_prompt_says_when_it_applies() {
    let wait = "while ! test -e go; do sleep 0.05; done; touch late";
    let bed = Bed::new(vec![runs("c1", wait), says("Done"), says("Planned")]);
    let (mut client, session) = bed.seated();
    let id = client.begin_prompt(&session, "Run it");
    client.wait(|message| message["params"]["update"]["toolCallId"] == "c1");
    client.ok(
        "session/set_mode",
        json!({ "sessionId": session, "modeId": "plan" }),
    );
    let told = client.text("agent_thought_chunk");
    assert!(told.contains("until this prompt ends"), "{told}");
    bed.write("work/go", "");
    assert_eq!(client.stop_reason(id), "end_turn");
    client.seen.clear();
    client.prompt(&session, "Plan it");
    assert_eq!(client.text("agent_thought_chunk"), "");
}
