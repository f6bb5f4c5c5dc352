//! Input and output of `execute`.

use serde_json::{Value, json};

use crate::process::{Worker, tool};

fn result(body: &str) -> Value {
    let mut worker = Worker::pure(&tool(body));
    worker.begin("c", &json!({}));
    let result = worker.receive();
    assert_eq!(
        (&result["type"], &result["call_id"]),
        (&json!("result"), &json!("c"))
    );
    result
}

fn text(body: &str) -> (String, bool) {
    crate::process::outcome(&result(body))
}

#[test]
fn every_kind_of_result_is_converted_to_text() {
    let cases = [
        ("return 'text'", "text", false),
        ("return 'text', false", "text", false),
        ("return 'text', nil", "text", false),
        ("return 'text', true", "text", true),
        ("return", "", false),
        ("return nil", "", false),
        ("return nil, true", "", true),
        ("return nil, 'what went wrong'", "what went wrong", true),
        ("return ('a-a'):gsub('a', 'b')", "b-b", false),
        ("return 5", "5", false),
        ("return 5.0", "5.0", false),
        ("return 2^53", "9.007199254741e+15", false),
        ("return true", "true", false),
        ("return false", "false", false),
        ("return {}", "{}", false),
        (
            "return {b = 1, a = {1, 2.5, 'x'}, c = haft.json.null}",
            r#"{"a":[1,2.5,"x"],"b":1,"c":null}"#,
            false,
        ),
        ("return haft.json.array({})", "[]", false),
        (
            "return {content = 'no list'}",
            r#"{"content":"no list"}"#,
            false,
        ),
        (
            "return '\\0\\xff\\xe2\\x82 é 漢 🙂\\n'",
            "\0\u{fffd}\u{fffd} é 漢 🙂\n",
            false,
        ),
    ];
    for (body, expected, error) in cases {
        assert_eq!(text(body), (expected.to_owned(), error), "{body}");
    }
}

#[test]
fn blocks_are_passed_on_unchanged() {
    let blocks = result(
        "return {content = {{type = 'text', text = 'a'}, {type = 'image', data = 'aGk=', mimeType = 'image/png'},
         {type = 'image', data = 'aGk=', media_type = 'image/gif'},
         {type = 'image', Data = 'aGk=', MIMEType = 'image/gif'},
         {type = 'image', source = {type = 'base64', media_type = 'image/gif', data = 'aGk='}}, {type = 'text', text = 7}}}, true",
    );
    assert_eq!(
        blocks,
        json!({"type": "result", "call_id": "c", "error": true, "content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "image", "data": "aGk=", "mimeType": "image/gif"},
            {"type": "image", "data": "aGk=", "mimeType": "image/gif"},
            {"type": "image", "data": "aGk=", "mimeType": "image/gif"},
            {"type": "text", "text": "7"},
        ]})
    );
    assert_eq!(result("return {content = {}}")["content"], json!([]));
}

#[test]
fn a_result_that_cannot_be_shown_is_an_error() {
    let cases = [
        (
            "return print",
            "execute returned a function; it must return a string or a table",
        ),
        (
            "return {print}",
            "a function cannot be converted to JSON (at [1])",
        ),
        (
            "return {a = {b = 0/0}}",
            "JSON has no number for NaN (at .a.b)",
        ),
        ("return {1, x = 2}", "a table is both a list and an object"),
        ("return {[1] = 1, [3] = 3, [100] = 1}", "a list has holes"),
        ("return {[true] = 1}", "a boolean cannot be a key in JSON"),
        (
            "local t = {} t.t = t return t",
            "nested more than 128 deep, or contain themselves",
        ),
        (
            "local t = {} for i = 1, 60 do t = {t, t} end return t",
            "it has more than 1000000 values",
        ),
        ("return {content = {5}}", "content[1]: a block is a table"),
        (
            "return {content = {{type = 'video'}}}",
            "content[1]: `type` is \"text\" or \"image\"",
        ),
        (
            "return {content = {{type = 'text'}}}",
            "content[1]: `text` is missing",
        ),
        (
            "return {content = {{type = 'image', data = '\\x89PNG', mimeType = 'image/png'}}}",
            "`data` is not base64",
        ),
        (
            "return {content = {{type = 'image', data = 'aGk='}}}",
            "`mimeType` is missing",
        ),
    ];
    for (body, expected) in cases {
        let (message, error) = text(body);
        assert!(
            error && message.contains(expected),
            "{message:?} for {body}"
        );
    }
}

#[test]
fn an_error_says_where() {
    let cases = [
        ("\n\nerror('boom')", "tools/x.lua:5: boom"),
        ("error('boom', 0)", "tools/x.lua:3: boom"),
        (
            "error({message = 'from a table'})",
            "tools/x.lua:3: from a table",
        ),
        ("error({code = 7})", "tools/x.lua:3: {\"code\":7}"),
        (
            "error(setmetatable({}, {__tostring = function() return 'odd' end}))",
            "tools/x.lua:3: odd",
        ),
        ("error()", "tools/x.lua:3: nil"),
        (
            "local x\nx.y = 1",
            "tools/x.lua:4: attempt to index a nil value (local 'x')",
        ),
        (
            "('x'):rep(1); ('x'):bad()",
            "tools/x.lua:3: attempt to call a nil value (method 'bad')",
        ),
        (
            "local x = haft.json.decode('{')",
            "tools/x.lua:3: not JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            "return haft.json.encode(print)",
            "tools/x.lua: a function cannot be converted to JSON",
        ),
        (
            "local a = assert(nil, 'asserted')",
            "tools/x.lua:3: asserted",
        ),
        (
            "coroutine.wrap(function() error('inside') end)()",
            "tools/x.lua:3: inside",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(text(body), (expected.to_owned(), true), "{body}");
    }
}

#[test]
fn parameters_arrive_as_they_were_sent() {
    let mut worker = Worker::pure(&tool("return haft.json.encode(input)"));
    let params = json!({
        "text": "é\u{0}\"漢", "integer": i64::MAX, "least": i64::MIN, "float": 0.1, "whole": 3.0,
        "list": [1, null, [], {}, [[]]], "empty": {}, "yes": true, "1": "digit",
    });
    let (text, _) = worker.call(&params);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), params);
    // A null parameter is absent, as `if input.name` expects.
    assert_eq!(
        worker.call(&json!({"a": null, "b": {"c": null}})).0,
        r#"{"b":{}}"#
    );
    worker.send(&json!({"type": "call", "name": "tool", "call_id": {"odd": 1}}));
    assert_eq!(
        worker.receive(),
        json!({"type": "result", "call_id": {"odd": 1}, "content": [{"type": "text", "text": "{}"}], "error": false})
    );
    assert_eq!(
        worker.call(&json!([1])),
        (
            "the parameters of a call have to be an object".to_owned(),
            true
        )
    );
}

#[test]
fn large_results_arrive_and_too_large_ones_are_reported() {
    let mut worker = Worker::pure(&tool("return (input.text):rep(input.times)"));
    let (text, error) = worker.call(&json!({"text": "0123456789", "times": 1_500_000}));
    assert!(!error && text.len() == 15_000_000);
    let (text, error) = worker.call(&json!({"text": "0123456789", "times": 1_800_000}));
    assert!(
        error && text.starts_with("the result is too large: 18000000 bytes"),
        "{text}"
    );
    // Six bytes each in JSON.
    let (text, error) = worker.call(&json!({"text": "\u{1}", "times": 4_000_000}));
    assert!(
        error && text.starts_with("the result is too large"),
        "{text}"
    );
    assert_eq!(
        worker.call(&json!({"text": "still here", "times": 1})),
        ("still here".to_owned(), false)
    );
}

#[test]
fn json_keeps_distinctions_that_lua_lacks() {
    let body = r#"
        local json = haft.json
        assert(json.encode(json.decode('{"a":[],"b":{},"c":null,"d":[null,1.0,1]}')) == '{"a":[],"b":{},"c":null,"d":[null,1.0,1]}')
        assert(json.decode("null") == json.null and json.decode("[null]")[1] == json.null)
        local list = json.decode("[]")
        list[1] = "x" table.insert(list, "y")
        assert(json.encode(list) == '["x","y"]' and #list == 2)
        assert(not pcall(json.decode, "[1] 2") and not pcall(json.decode, 5) and not pcall(json.array, 5))
        assert(not pcall(json.decode, ("["):rep(200)))
        assert(getmetatable(list) == "list" and not pcall(setmetatable, list, {}))
        return json.encode({z = 1, a = 1, ["é"] = 1, Z = 1})"#;
    assert_eq!(
        text(body),
        (r#"{"Z":1,"a":1,"z":1,"é":1}"#.to_owned(), false)
    );
}
