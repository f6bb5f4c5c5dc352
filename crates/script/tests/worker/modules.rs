//! The required form of a module.

use haft_script::Rights;
use serde_json::json;

use crate::process::{Worker, quick};

/// Returns the message about a module that is not a valid tool.
fn invalid(source: &str) -> String {
    let mut worker = Worker::load(source, Rights::Pure, quick());
    let answer = worker.describe();
    assert_eq!(answer["type"], "invalid", "{answer}");
    let message = answer["message"].as_str().unwrap().to_owned();
    worker.send(&json!({"type": "call", "name": "x", "call_id": 1, "params": {}}));
    assert_eq!(
        worker.receive(),
        json!({"type": "result", "call_id": 1, "content": [{"type": "text", "text": message}], "error": true})
    );
    worker.close();
    assert_eq!(worker.code(), Some(0));
    message
}

#[test]
fn the_specified_form_is_described() {
    let mut worker = Worker::pure(
        r#"return {
  name = "mytool",
  description = "Short description for API tool definition",
  system_prompt = "Usage guidance injected into the system prompt.",
  input_schema = {type = "object", properties = {path = {type = "string"}, count = {type = "integer", minimum = 1}}, required = {"path"}},
  execute = function(input) return "result of " .. input.path, false end,
}"#,
    );
    assert_eq!(
        worker.describe(),
        json!({"protocol": 2, "tools": [{
            "name": "mytool",
            "description": "Short description for API tool definition",
            "parameters": {
                "properties": {"count": {"minimum": 1, "type": "integer"}, "path": {"type": "string"}},
                "required": ["path"], "type": "object",
            },
            "guidance": "Usage guidance injected into the system prompt.",
        }]})
    );
    worker
        .send(&json!({"type": "call", "name": "mytool", "call_id": "a", "params": {"path": "p"}}));
    assert_eq!(
        worker.receive(),
        json!({"type": "result", "call_id": "a", "content": [{"type": "text", "text": "result of p"}], "error": false})
    );
    worker.send(&json!({"type": "call", "name": "other", "call_id": "b", "params": {}}));
    assert_eq!(
        worker.receive()["content"][0]["text"],
        "tools/x.lua: there is no tool \"other\", only \"mytool\""
    );
}

#[test]
fn empty_tables_of_a_schema_become_lists_where_required() {
    let mut worker = Worker::pure(
        "return {name = 'a-b_1', description = 'd', execute = print,
          input_schema = {type = 'object', properties = {}, required = {}, anyOf = {}, allOf = {{enum = {}}}}}",
    );
    let tool = &worker.describe()["tools"][0];
    assert_eq!(
        tool.to_string(),
        r#"{"name":"a-b_1","description":"d","parameters":{"allOf":[{"enum":[]}],"anyOf":[],"properties":{},"required":[],"type":"object"}}"#
    );
}

#[test]
fn a_module_can_set_its_time_limit() {
    let source = |timeout: &str| {
        format!(
            "return {{name = 'a', description = 'A', timeout = {timeout}, \
             input_schema = {{type = 'object'}}, execute = function() return 'x' end}}"
        )
    };
    let described = |timeout: &str| Worker::pure(&source(timeout)).describe();
    assert_eq!(described("300")["tools"][0]["timeout"], 300.0);
    assert_eq!(described("0")["tools"][0].get("timeout"), None);
    for odd in ["-1", "'soon'", "1e9", "0/0"] {
        let message = described(odd)["message"].to_string();
        assert!(message.contains("`timeout` is"), "{odd}: {message}");
    }
}

#[test]
fn an_invalid_module_is_explained() {
    let cases = [
        (
            "return {\n  name = \n}",
            "tools/x.lua:3: unexpected symbol near '}'",
        ),
        ("x = = 1", "tools/x.lua:1: unexpected symbol near '='"),
        (
            "local x = 1",
            "tools/x.lua: the file returns nothing; its last statement has to be `return {name = …, execute = …}`",
        ),
        (
            "return 5",
            "tools/x.lua: the file returns a number; it must return a table",
        ),
        (
            "return {description = 'b'}",
            "tools/x.lua: `name` is missing: how the tool is called",
        ),
        (
            "return {execute = function() end}",
            "tools/x.lua: `name` is missing: how the tool is called",
        ),
        (
            "return {name = 5}",
            "tools/x.lua: `name` is a number; it has to be a string",
        ),
        ("return {name = ''}", "tools/x.lua: `name` is empty"),
        (
            "return {name = 'a.b'}",
            "tools/x.lua: `name` is \"a.b\", and '.' cannot be part of a name: use letters, digits, `_` and `-`",
        ),
        (
            "return {name = ('x'):rep(65)}",
            "tools/x.lua: `name` has 65 characters; at most 64 are allowed",
        ),
        (
            "return {name = 'a'}",
            "tools/x.lua: `description` is missing: one line that says what the tool does",
        ),
        (
            "return {name = 'a', description = {}}",
            "tools/x.lua: `description` is a table; it has to be a string",
        ),
        (
            "return {name = 'a', description = ('b'):rep(1e5)}",
            "tools/x.lua: `description` is longer than 65536 bytes",
        ),
        (
            "return {name = 'a', description = 'b', system_prompt = 1}",
            "tools/x.lua: `system_prompt` is a number; it has to be a string",
        ),
        (
            "return {name = 'a', description = 'b'}",
            "tools/x.lua: `input_schema` is missing: for no parameters, `{type = \"object\", properties = {}}`",
        ),
        (
            "return {name = 'a', description = 'b', input_schema = '{}'}",
            "tools/x.lua: `input_schema` is a string; it has to be a table",
        ),
        (
            "return {name = 'a', description = 'b', input_schema = {'x'}}",
            "tools/x.lua: `input_schema` is a list; it has to be a table with names, like `{type = \"object\", …}`",
        ),
        (
            "return {name = 'a', description = 'b', input_schema = {properties = {p = print}}}",
            "tools/x.lua: `input_schema` cannot be converted to JSON: a function cannot be converted to JSON (at .properties.p)",
        ),
        (
            "local s = {} s.properties = {s = s} return {name = 'a', description = 'b', input_schema = s}",
            "nested more than 128 deep",
        ),
        (
            "return {name = 'a', description = 'b', input_schema = {}}",
            "tools/x.lua: `execute` is missing: `execute = function(input) … end`",
        ),
        (
            "return {name = 'a', description = 'b', input_schema = {}, execute = 'rm'}",
            "tools/x.lua: `execute` is a string; it has to be a function",
        ),
        ("\n\nerror('no')", "tools/x.lua:3: no"),
        (
            "\nlocal x = nil + 1",
            "tools/x.lua:2: attempt to perform arithmetic on a nil value",
        ),
        (
            "haft.call('bash', {command = 'id'})",
            "tools/x.lua:1: haft.call can only be used inside of execute",
        ),
        (
            "haft.update('x')",
            "tools/x.lua:1: haft.update can only be used inside of execute",
        ),
        (
            "while true do end",
            "tools/x.lua:1: stopped after 0.15 s, which is the limit",
        ),
        (
            "return ('x'):rep(1 << 28)",
            "tools/x.lua: out of memory: a module may use 64 MiB",
        ),
        (
            "return setmetatable({}, {__index = function() error('odd') end})",
            "odd",
        ),
        (
            "\u{1b}Lua",
            "tools/x.lua: this is compiled Lua; a tool is the text of a Lua program",
        ),
    ];
    for (source, expected) in cases {
        let message = invalid(source);
        if expected.starts_with("tools/") {
            assert!(message.starts_with(expected), "{message:?} for {source:?}");
        } else {
            assert!(message.contains(expected), "{message:?} for {source:?}");
        }
        assert!(
            message.len() < 400 && !message.contains("traceback"),
            "{message}"
        );
    }
}

#[test]
fn loading_that_cannot_be_stopped_ends_the_process() {
    let mut worker = Worker::load("return (''):rep(1e18)", Rights::Pure, quick());
    let answer = worker.describe();
    assert_eq!(answer["type"], "invalid");
    assert!(
        answer["message"]
            .as_str()
            .unwrap()
            .contains("took longer than 0.15 s"),
        "{answer}"
    );
    assert_eq!(worker.code(), Some(i32::from(haft_script::exit::OVERDUE)));
}

#[test]
fn a_shebang_line_is_skipped() {
    let source = "\u{feff}#!/usr/bin/lua\nreturn {name = 'tool', description = 'd', input_schema = {}, execute = function() return error('x') end}";
    let mut worker = Worker::pure(source);
    assert_eq!(worker.describe()["protocol"], 2);
    assert_eq!(worker.failure(), "tools/x.lua:2: x");
}

#[test]
fn a_module_may_keep_its_state_between_calls() {
    let mut worker = Worker::pure(&crate::process::with_head(
        "local n = 0",
        "n = n + 1 return n",
    ));
    assert_eq!(
        [worker.success(), worker.success(), worker.success()],
        ["1", "2", "3"]
    );
}
