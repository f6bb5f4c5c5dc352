//! Prompts: streamed answers, tool calls, cancellation, and what comes with the text.

use crate::bed::{Bed, calls, runs, says};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn an_answer_arrives_as_it_is_written() {
    let reply = ModelReply::text("Hello, world.");
    let bed = Bed::new(vec![Turn::Reply(reply)]);
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Greet me"), "end_turn");
    assert_eq!(client.text("agent_message_chunk"), "Hello, world.");
    let title = client.updates("session_info_update")[0];
    assert_eq!(title["title"], "Greet me");
    let usage = client.updates("usage_update")[0];
    assert_eq!(usage["used"], 120);
    assert!(usage["size"].as_u64().unwrap() > 0);
}

#[test]
fn reasoning_is_told_apart_from_the_answer() {
    let reply = ModelReply::text("42").reasoning("Let me think.", "");
    let bed = Bed::new(vec![Turn::Reply(reply)]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Think");
    assert_eq!(client.text("agent_thought_chunk"), "Let me think.");
    assert_eq!(client.text("agent_message_chunk"), "42");
}

#[test]
fn a_command_shows_its_title_its_output_and_its_end() {
    let bed = Bed::new(vec![
        runs("c1", "echo one; sleep 0.3; echo two"),
        says("Done"),
    ]);
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Run it"), "end_turn");
    let first = client.updates("tool_call")[0];
    assert_eq!(first["title"], "`echo one; sleep 0.3; echo two`");
    assert_eq!(first["kind"], "execute");
    let updates: Vec<String> = client
        .updates("tool_call_update")
        .iter()
        .map(|update| update["content"].to_string())
        .collect();
    let is_live = |content: &String| content.contains("one") && !content.contains("two");
    assert!(updates.iter().any(is_live), "{updates:?}");
    let call = client.tool_call("c1");
    assert_eq!(call["status"], "completed");
    let shown = call["content"][0]["content"]["text"].as_str().unwrap();
    assert!(shown.contains("one\ntwo"), "{shown}");
}

#[test]
fn an_edit_shows_its_change_and_its_place() {
    let edit = json!({ "path": "a.txt", "old_text": "two", "new_text": "three" });
    let write = json!({ "path": "new.txt", "content": "fresh\n" });
    let bed = Bed::new(vec![
        calls("c1", "edit", &edit),
        calls("c2", "write", &write),
        says("Done"),
    ]);
    bed.write("work/a.txt", "one\ntwo\n");
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Edit it");
    let path = bed.folder().join("a.txt");
    let first = client.updates("tool_call")[0];
    let change = json!({ "type": "diff", "path": path, "oldText": "two", "newText": "three" });
    assert_eq!(first["content"], json!([change]), "what is asked for");
    let call = client.tool_call("c1");
    assert_eq!(
        (&call["kind"], &call["status"]),
        (&json!("edit"), &json!("completed"))
    );
    assert_eq!(call["locations"], json!([{ "path": path }]));
    let (old, new) = ("one\ntwo\n", "one\nthree\n");
    let change = json!({ "type": "diff", "path": path, "oldText": old, "newText": new });
    assert_eq!(call["content"], json!([change]), "what was done");
    let made = client.tool_call("c2");
    assert_eq!(made["content"][0]["newText"], "fresh\n");
    assert!(made["content"][0].get("oldText").is_none_or(Value::is_null));
}

#[test]
fn a_command_shows_what_it_changed() {
    let bed = Bed::new(vec![runs("c1", "rm a.txt; echo new > b.txt"), says("Done")]);
    bed.write("work/a.txt", "gone\n");
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Run it");
    let call = client.tool_call("c1");
    let content = call["content"].as_array().unwrap();
    let of = |name: &str| {
        let path = json!(bed.folder().join(name));
        content.iter().find(|one| one["path"] == path).unwrap()
    };
    assert_eq!(
        (&of("a.txt")["oldText"], &of("a.txt")["newText"]),
        (&json!("gone\n"), &json!(""))
    );
    assert_eq!(of("b.txt")["newText"], "new\n");
}

#[test]
fn todos_are_a_plan() {
    let todos = json!({ "todos": [
        { "content": "Look", "status": "completed" },
        { "content": "Fix", "status": "in_progress" },
    ]});
    let bed = Bed::with(
        vec![calls("c1", "write_todos", &todos), says("Done")],
        "tools: { toolset: deepagents }\n",
    );
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Plan it");
    let plan = client.updates("plan")[0];
    let entries: Vec<_> = plan["entries"].as_array().unwrap().iter().collect();
    assert_eq!(entries[0]["content"], "Look");
    assert_eq!(entries[0]["status"], "completed");
    assert_eq!(entries[1]["status"], "in_progress");
}

#[test]
fn cancel_ends_a_command_within_a_second_and_the_session_goes_on() {
    let bed = Bed::new(vec![runs("c1", "echo begun; sleep 300"), says("Back")]);
    let (mut client, session) = bed.seated();
    let id = client.begin_prompt(&session, "Wait");
    client.wait(|message| message.to_string().contains("begun"));
    let begun = Instant::now();
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.stop_reason(id), "cancelled");
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(client.tool_call("c1")["status"], "failed");
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
    assert_eq!(client.text("agent_message_chunk"), "Back");
}

#[test]
fn cancel_ends_a_request_that_the_provider_does_not_answer() {
    let bed = Bed::new(vec![Turn::Silent, says("Back")]);
    let (mut client, session) = bed.seated();
    let id = client.begin_prompt(&session, "Wait");
    while bed.server.count() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let begun = Instant::now();
    // The request itself can be cancelled too.
    client.notify("$/cancel_request", json!({ "requestId": id }));
    assert_eq!(client.stop_reason(id), "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn a_second_prompt_is_refused_until_the_first_is_cancelled() {
    let bed = Bed::new(vec![Turn::Silent, says("Second")]);
    let (mut client, session) = bed.seated();
    let first = client.begin_prompt(&session, "One");
    while bed.server.count() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = client.begin_prompt(&session, "Two");
    let answer = client.answer(second);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    // An editor may send the next prompt together with the cancellation.
    client.notify("session/cancel", json!({ "sessionId": session }));
    let third = client.begin_prompt(&session, "Three");
    assert_eq!(client.stop_reason(first), "cancelled");
    assert_eq!(client.stop_reason(third), "end_turn");
}

#[test]
fn pictures_links_and_files_come_with_the_prompt() {
    let bed = Bed::new(vec![says("Seen")]);
    let (mut client, session) = bed.seated();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";
    let prompt = json!([
        { "type": "text", "text": "Compare " },
        { "type": "resource_link", "name": "a.txt", "uri": "file:///w/a.txt" },
        { "type": "resource", "resource": { "uri": "file:///w/b.txt", "text": "beta text" } },
        { "type": "image", "data": png, "mimeType": "image/png" },
    ]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    let ended = client.ok("session/prompt", params);
    assert_eq!(ended["stopReason"], "end_turn");
    let sent = bed.last_request()["messages"].to_string();
    for part in ["Compare ", "/w/a.txt", "beta text", png] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
}

#[test]
fn the_reason_for_the_end_is_told() {
    let cut = Turn::Reply(ModelReply {
        stop: Some("length".to_owned()),
        ..ModelReply::text("and so on and")
    });
    let refused = Turn::Reply(ModelReply {
        stop: Some("content_filter".to_owned()),
        ..ModelReply::text("I cannot")
    });
    let bed = Bed::new(vec![cut, refused]);
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Write"), "max_tokens");
    assert_eq!(client.prompt(&session, "Write"), "refusal");
    let endless = |_: &Value, number: usize| runs(&format!("c{number}"), &format!("echo {number}"));
    let bed = Bed::with(endless, "max_turns: 2\n");
    let (mut client, session) = bed.seated();
    assert_eq!(client.prompt(&session, "Loop"), "max_turn_requests");
}

#[test]
fn a_provider_that_fails_is_an_error_and_the_session_goes_on() {
    let failing = Turn::status(401, "{\"error\":{\"message\":\"wrong key\"}}");
    let bed = Bed::new(vec![failing, says("Back")]);
    let (mut client, session) = bed.seated();
    let id = client.begin_prompt(&session, "Go");
    let answer = client.answer(id);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("wrong key"),
        "{answer}"
    );
    assert_eq!(client.prompt(&session, "Again"), "end_turn");
}

#[test]
fn an_empty_prompt_is_refused() {
    let bed = Bed::new(vec![says("x")]);
    let (mut client, session) = bed.seated();
    let params = json!({ "sessionId": session, "prompt": [] });
    assert_eq!(client.refused("session/prompt", params).0, -32602);
    assert_eq!(client.prompt(&session, "Again"), "end_turn");
}

#[test]
fn audio_is_refused_and_the_session_goes_on() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    let audio = json!([{ "type": "audio", "data": "AA==", "mimeType": "audio/wav" }]);
    let params = json!({ "sessionId": session, "prompt": audio });
    let (code, message) = client.refused("session/prompt", params);
    assert_eq!(code, -32602);
    assert!(message.contains("audio"), "{message}");
    assert_eq!(client.prompt(&session, "Go"), "end_turn");
}

#[test]
fn files_and_selections_come_with_a_slash_command() {
    let bed = Bed::new(|_: &Value, _: usize| says("Reviewed"));
    bed.write(
        "home/.config/haft/commands/review.md",
        "Review $ARGUMENTS. List mistakes first.\n",
    );
    let (mut client, session) = bed.seated();
    let link = json!({ "type": "resource_link", "name": "a.txt", "uri": "file:///w/a.txt" });
    let selection = json!({ "type": "resource", "resource": { "uri": "file:///w/b.txt", "text": "beta text" } });
    for (attached, expected) in [
        (&link, "Review [a.txt](/w/a.txt). List mistakes first."),
        (
            &selection,
            "Review /w/b.txt. List mistakes first.\n\n/w/b.txt:\n```\nbeta text\n```",
        ),
    ] {
        let prompt = json!([{ "type": "text", "text": "/review " }, attached]);
        client.ok(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        );
        let request = bed.last_request();
        let last = request["messages"].as_array().unwrap().last().unwrap();
        assert!(
            last.to_string().contains(&json!(expected).to_string()),
            "{last}"
        );
    }
}

#[test]
fn the_files_of_a_command_of_haft_are_its_arguments() {
    let write = json!({ "path": "a.txt", "content": "alpha\n" });
    let both = ModelReply::calling("c1", "write", &write).call(
        "c2",
        "write",
        &json!({ "path": "b.txt", "content": "beta\n" }),
    );
    let bed = Bed::new(vec![Turn::Reply(both), says("Done")]);
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Write both");
    client.seen.clear();
    let uri = format!("file://{}", bed.folder().join("a.txt").display());
    let prompt = json!([
        { "type": "text", "text": "/changes " },
        { "type": "resource_link", "name": "a.txt", "uri": uri },
    ]);
    client.ok(
        "session/prompt",
        json!({ "sessionId": session, "prompt": prompt }),
    );
    let shown = client.text("agent_message_chunk");
    assert!(
        shown.contains("alpha") && !shown.contains("beta"),
        "{shown}"
    );
}

#[test]
fn a_request_with_half_a_surrogate_pair_is_answered() {
    let bed = Bed::new(vec![says("Hello")]);
    let (mut client, session) = bed.seated();
    client.raw(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"cut \\ud83d\"}}]}}}}\n"
        )
        .as_bytes(),
    );
    assert_eq!(client.stop_reason(900), "end_turn");
    let sent = bed.last_request()["messages"].to_string();
    assert!(sent.contains("cut \u{fffd}"), "{sent}");
}

#[test]
fn a_command_that_is_added_during_a_session_can_be_used() {
    let bed = Bed::new(|_: &Value, _: usize| says("Done"));
    let (mut client, session) = bed.seated();
    client.prompt(&session, "Hi");
    bed.write(
        "home/.config/haft/commands/late.md",
        "Do it late: $ARGUMENTS",
    );
    client.seen.clear();
    client.prompt(&session, "/late now");
    let sent = bed.last_request()["messages"].to_string();
    assert!(sent.contains("Do it late: now"), "{sent}");
    let told = client.updates("available_commands_update");
    assert!(told[0].to_string().contains("late"), "{told:?}");
}
