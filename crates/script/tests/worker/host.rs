//! Messages between a module and haft during a call.

use std::time::{Duration, Instant};

use haft_script::{Rights, exit};
use serde_json::json;

use crate::process::{Worker, outcome, quick, tool};

#[test]
fn another_tool_is_called_and_answers() {
    let mut worker = Worker::pure(&tool(
        "local text, failed = haft.call('read', {path = 'a', lines = {1, 2}})
         local other, bad = haft.call('none')
         return text .. tostring(failed) .. other .. tostring(bad)",
    ));
    worker.begin("7", &json!({}));
    assert_eq!(
        worker.receive(),
        json!({"type": "host_call", "call_id": "7", "id": 1, "name": "read", "params": {"lines": [1, 2], "path": "a"}})
    );
    worker.send(&json!({"type": "host_result", "id": 99, "content": [{"type": "text", "text": "nobody's"}], "error": false}));
    worker.send(&json!({"type": "host_result", "id": 1, "content": [
        {"type": "text", "text": "né "}, {"type": "image", "data": "", "mimeType": "image/png"}, {"type": "text", "text": " two "},
    ], "error": false}));
    assert_eq!(
        worker.receive(),
        json!({"type": "host_call", "call_id": "7", "id": 2, "name": "none", "params": {}})
    );
    worker.send(&json!({"type": "host_result", "id": 2, "content": [{"type": "text", "text": " denied "}], "error": true}));
    assert_eq!(
        outcome(&worker.receive()),
        ("né [image] two false denied true".to_owned(), false)
    );
    assert!(worker.notes().contains("host call 99"));
}

#[test]
fn invalid_calls_of_other_tools_are_refused() {
    let cases = [
        (
            "haft.call()",
            "haft.call takes the name of a tool and a table",
        ),
        (
            "haft.call({})",
            "haft.call takes the name of a tool and a table",
        ),
        (
            "haft.call('x', {1})",
            "the arguments of haft.call are a table with names",
        ),
        (
            "haft.call('x', 'y')",
            "the arguments of haft.call are a table with names",
        ),
        (
            "haft.call('x', {a = print})",
            "a function cannot be converted to JSON (at .a)",
        ),
        ("haft.update({})", "it is a table and not a string"),
        ("haft.update(('x'):rep(17 << 20))", "too large"),
    ];
    for (body, expected) in cases {
        let message = Worker::pure(&tool(&format!("{body} return 1"))).failure();
        assert!(
            message.starts_with("tools/x.lua:3: ") && message.contains(expected),
            "{message} for {body}"
        );
    }
}

#[test]
fn waiting_for_another_tool_does_not_count_as_call_time() {
    let mut worker = Worker::load(
        &tool("local text = haft.call('slow') return text"),
        Rights::Pure,
        quick(),
    );
    worker.begin("c", &json!({}));
    assert_eq!(worker.receive()["type"], "host_call");
    // Longer than the time limit and the watchdog's grace together.
    std::thread::sleep(Duration::from_millis(500));
    worker.send(
        &json!({"type": "host_result", "id": 1, "content": [{"type": "text", "text": "late"}]}),
    );
    assert_eq!(outcome(&worker.receive()), ("late".to_owned(), false));
    // Time after that counts.
    let mut worker = Worker::load(
        &tool("haft.call('slow') while true do end"),
        Rights::Pure,
        quick(),
    );
    worker.begin("c", &json!({}));
    worker.receive();
    worker.send(&json!({"type": "host_result", "id": 1, "content": []}));
    assert!(
        outcome(&worker.receive())
            .0
            .contains("stopped after 0.15 s")
    );
}

#[test]
fn updates_come_before_the_result() {
    let mut worker = Worker::pure(&tool(
        "for i = 1, 3 do haft.update('step ' .. i) end haft.update(4) return 'done'",
    ));
    worker.begin("u", &json!({}));
    for text in ["step 1", "step 2", "step 3", "4"] {
        assert_eq!(
            worker.receive(),
            json!({"type": "update", "call_id": "u", "content": [{"type": "text", "text": text}]})
        );
    }
    assert_eq!(outcome(&worker.receive()), ("done".to_owned(), false));
}

#[test]
fn a_cancel_stops_only_the_running_call() {
    let mut worker = Worker::pure(&tool(
        "if input.fine then return 'fine' end haft.update('in') while true do pcall(function() while true do end end) end",
    ));
    worker.begin("a", &json!({}));
    assert_eq!(worker.receive()["type"], "update");
    worker.begin("b", &json!({}));
    worker.begin("c", &json!({"fine": true}));
    worker.send(&json!({"type": "cancel", "call_id": "unknown"}));
    // A call that has not started yet.
    worker.send(&json!({"type": "cancel", "call_id": "b"}));
    let begun = Instant::now();
    worker.send(&json!({"type": "cancel", "call_id": "a"}));
    for (id, text, error) in [
        ("a", "cancelled", true),
        ("b", "cancelled", true),
        ("c", "fine", false),
    ] {
        let result = worker.receive();
        assert_eq!(
            (result["call_id"].as_str(), outcome(&result)),
            (Some(id), (text.to_owned(), error))
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
    // A finished call cannot be cancelled, nor a later one with the same id.
    worker.send(&json!({"type": "cancel", "call_id": "c"}));
    assert_eq!(
        worker.call(&json!({"fine": true})),
        ("fine".to_owned(), false)
    );
    worker.close();
    assert_eq!(worker.code(), Some(0));
}

#[test]
fn a_cancel_ends_waiting_for_another_tool() {
    let mut worker = Worker::pure(&tool(
        "if input.fine then return 'fine' end while true do pcall(haft.call, 'never') end",
    ));
    worker.begin("a", &json!({}));
    assert_eq!(worker.receive()["type"], "host_call");
    worker.send(&json!({"type": "cancel", "call_id": "a"}));
    assert_eq!(outcome(&worker.receive()), ("cancelled".to_owned(), true));
    worker.send(
        &json!({"type": "host_result", "id": 1, "content": [{"type": "text", "text": "late"}]}),
    );
    assert_eq!(
        worker.call(&json!({"fine": true})),
        ("fine".to_owned(), false)
    );
}

#[test]
fn a_cancel_that_lua_does_not_see_ends_the_process() {
    let mut worker = Worker::pure(&tool("haft.update('in') return (''):rep(1e18)"));
    worker.begin("a", &json!({}));
    worker.receive();
    worker.send(&json!({"type": "cancel", "call_id": "a"}));
    assert_eq!(outcome(&worker.receive()), ("cancelled".to_owned(), true));
    assert_eq!(worker.code(), Some(i32::from(exit::OVERDUE)));
}
