use super::{Call, CallResult, Length, format_duration};
use crate::styled_text::Line;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn call(tool: &str, arguments: Value) -> Call {
    Call::new("1", tool, arguments, Instant::now())
}

fn end(details: Value, output: &str) -> CallResult {
    CallResult {
        is_error: false,
        details: details.as_object().cloned().unwrap(),
        took: Duration::from_millis(20),
        bytes: 10,
        output: Some(output.to_owned()),
    }
}

fn shown(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

#[test]
fn a_command_shows_the_end_of_its_output_and_its_exit_code() {
    let mut end = end(
        json!({ "exit_code": 2 }),
        "1\n2\n3\n4\n5\n6\n7\n\nExit code: 2",
    );
    end.took = Duration::from_millis(3250);
    let call = call("bash", json!({ "command": "make\nmake test" }));
    assert_eq!(
        shown(&call.finished_lines(&end, 80)),
        [
            "● bash make (+1 line) · exit 2 · 3.2 s",
            "  … 2 lines before (Ctrl-O shows all)",
            "  3",
            "  4",
            "  5",
            "  6",
            "  7"
        ]
    );
    assert_eq!(shown(&call.full_lines(&end, 80)).len(), 10);
}

#[test]
fn an_edit_shows_its_diff() {
    let arguments = json!({ "path": "a.rs", "old_text": "one\ntwo", "new_text": "one\n2" });
    let edit = call("edit", arguments);
    let made = json!({ "diff": "--- a.rs\n+++ a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" });
    assert_eq!(
        shown(&edit.finished_lines(&end(made, "done"), 80)),
        ["● edit a.rs · +1 −1", "   1  one", "   2 -two", "   2 +2"]
    );
    // Without details of the tool, the arguments are used; the place is not known.
    assert_eq!(
        shown(&edit.finished_lines(&end(json!({}), "done"), 80)),
        ["● edit a.rs · +1 −1", "   one", "  -two", "  +2"]
    );
    let content: String = (0..20).map(|n| format!("{n}\n")).collect();
    let write = call("write", json!({ "path": "b", "content": content }));
    let rows = shown(&write.finished_lines(&end(json!({ "created": true }), ""), 80));
    assert_eq!(rows[0], "● write b · new, 20 lines");
    assert_eq!(rows[1], "   1 +0");
    assert_eq!(rows.last().unwrap(), "  +8 more lines (Ctrl-O shows all)");
}

#[test]
fn other_calls_take_one_line_and_failures_show_the_error() {
    let read = call("read", json!({ "path": "src/main.rs" }));
    assert_eq!(
        shown(&read.finished_lines(&end(json!({}), "text"), 80)),
        ["● read src/main.rs · 10B"]
    );
    let grep = call("grep", json!({ "pattern": "fn main", "path": "src" }));
    let found = json!({ "matches": 3, "searched": 9 });
    assert_eq!(
        shown(&grep.finished_lines(&end(found, ""), 80)),
        ["● grep fn main in src · 3 matches"]
    );
    let mut failed = end(json!({}), "no such file: x\nlook at y");
    failed.is_error = true;
    assert_eq!(
        shown(&read.finished_lines(&failed, 80)),
        [
            "✗ read src/main.rs · failed",
            "  no such file: x",
            "  look at y"
        ]
    );
    let mut sub_agent = grep;
    sub_agent.sub_agent = Some("child".to_owned());
    assert_eq!(
        shown(&sub_agent.finished_lines(&end(json!({}), ""), 80)),
        ["  ↳ grep fn main in src · 10B"]
    );
}

#[test]
fn a_running_call_shows_the_end_of_its_output() {
    let mut bash = call("bash", json!({ "command": "make" }));
    for line in 0..9 {
        bash.update(&format!("line {line}\n"));
    }
    bash.update("10 %\r20 %\x1b[2K");
    let rows = shown(&bash.running_lines("*", bash.started + Duration::from_secs(75), 40));
    assert_eq!(
        rows,
        [
            "* bash make · 1 m 15 s",
            "  line 6",
            "  line 7",
            "  line 8",
            "  20 %"
        ]
    );
    let mut grep = call("grep", json!({ "pattern": "x" }));
    grep.update("1 files searched");
    grep.update("2 files searched");
    assert_eq!(
        shown(&grep.running_lines("*", grep.started, 40)),
        ["* grep x", "  2 files searched"]
    );
}

#[test]
fn json_replies_show_their_text() {
    let execute = call("execute", json!({ "command": "ls" }));
    let answer = r#"{"status":"success","output":"a\nb","exit_code":0}"#;
    assert_eq!(
        shown(&execute.finished_lines(&end(json!({ "exit_code": 0 }), answer), 80)),
        ["● execute ls", "  a", "  b"]
    );
}

#[test]
fn a_long_command_leaves_room_for_the_facts() {
    let bash = call("bash", json!({ "command": "x".repeat(200) }));
    let rows = bash.finished_lines(&end(json!({ "exit_code": 1 }), ""), 40);
    assert!((38..=40).contains(&rows[0].width()));
    assert!(rows[0].text().ends_with("x · exit 1"), "{}", rows[0].text());
    let mut long = bash.clone();
    long.length = Length::Long;
    assert_eq!(format_duration(Duration::from_secs(3700)), "1 h 01 m");
}
