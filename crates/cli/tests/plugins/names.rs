//! Names and descriptions of plugins' tools.

use crate::bed::Bed;
use serde_json::{Value, json};

#[test]
fn of_two_tools_with_one_name_the_first_is_used_with_a_warning() {
    let bed = Bed::with(&[
        ("first", "serve(tool('same'), lambda m: text('first'))"),
        (
            "second",
            "serve({'tools': [tool('same'), tool('other')]}, lambda m: text('second'))",
        ),
    ]);
    assert_eq!(bed.reply_text("same", &json!({})), "first");
    assert_eq!(bed.reply_text("other", &json!({})), "second");
    let (names, beside) = bed.names();
    assert_eq!(names.iter().filter(|name| *name == "same").count(), 1);
    assert!(
        beside.contains("plugin second: its tool \"same\" is left out"),
        "{beside}"
    );
}

#[test]
fn a_built_in_tool_is_replaced_only_with_override() {
    let bed = Bed::with(&[(
        "p",
        "serve({'tools': [tool('read'), tool('mine')]}, lambda m: text('plugin'))",
    )]);
    bed.write("work/a.txt", "built in");
    let read = json!({ "path": "a.txt" });
    assert_eq!(bed.reply_text("read", &read), "built in");
    assert_eq!(bed.reply_text("mine", &json!({})), "plugin");
    let (_, beside) = bed.names();
    assert!(
        beside.contains("plugin p: its tool \"read\" is left out"),
        "{beside}"
    );
    let mut entry = bed.plugin("p");
    entry["override"] = true.into();
    bed.configure(&json!({ "tools": { "plugins": [entry] } }));
    assert_eq!(bed.reply_text("read", &read), "plugin");
    let (names, beside) = bed.names();
    assert_eq!(names.iter().filter(|name| *name == "read").count(), 1);
    assert_eq!(beside, "");
}

#[test]
fn an_invalid_name_is_reported_and_skipped() {
    let body = r"
bad = ['', 'has space', 'esc\x1b[31m', 'nul\x00', 'l' * 200, 'semi;colon', '../up', 'bidi\u202e', 'line\nbreak', 'ünï']
serve({'tools': [tool(name) for name in bad] + [{'description': 'nameless'}, 'text', tool('good')]}, lambda m: text('fine'))
";
    let bed = Bed::with(&[("p", body)]);
    assert_eq!(bed.reply_text("good", &json!({})), "fine");
    let (names, beside) = bed.names();
    assert!(names.contains(&"good".to_owned()));
    let reported = |shown: &str| {
        let expected = format!("plugin p has a tool named \"{shown}\"");
        assert!(beside.contains(&expected), "{expected}\n{beside}");
    };
    reported("");
    reported("has space");
    reported(r"esc\u{1b}[31m");
    reported(r"nul\u{0}");
    reported(&"l".repeat(80));
    reported("semi;colon");
    reported("../up");
    reported(r"line\nbreak");
    assert!(!beside.contains(['\u{1b}', '\0', '\u{202e}']), "{beside:?}");
    let lines = beside
        .lines()
        .filter(|line| line.starts_with("plugin p has a tool"))
        .count();
    assert_eq!(lines, 12, "{beside}");
}

#[test]
fn descriptions_are_short_and_hide_nothing() {
    let body = r"
evil = '\x1b[2J\u202eevil\u200b\u2066 ' + 'x' * 10_000_000
definition = tool('one', {'a': {'type': 'string', 'description': 'p\x1b[31m\u202eq'}}, description=evil, system_prompt=evil[:100_000])
serve(definition, lambda m: text('fine'))
";
    let bed = Bed::with(&[("p", body)]);
    let hides = |text: &str| text.contains(['\u{1b}', '\u{202e}', '\u{200b}', '\u{2066}']);
    let mut session = bed.session(&[]);
    let tools = session.tools();
    let one = tools.iter().find(|tool| tool["name"] == "one").unwrap();
    assert!(one.to_string().len() < 40_000, "{}", one.to_string().len());
    let strings = |value: &Value| {
        [
            value["description"].as_str(),
            value["inputSchema"]["properties"]["a"]["description"].as_str(),
        ]
        .map(|text| text.unwrap_or_default().to_owned())
    };
    for text in strings(one) {
        assert!(!hides(&text), "{}", text.len());
    }
    for args in [&["tools"][..], &["tools", "one"], &["tools", "--prompt"]] {
        let ran = bed.done(args);
        assert!(
            !hides(&ran.out) && ran.out.len() < 80_000,
            "{args:?}: {}",
            ran.out.len()
        );
        assert!(ran.out.contains("evil"), "{args:?}");
    }
}

#[test]
fn a_plugin_with_a_thousand_tools_is_limited_with_a_warning() {
    let body = "serve({'tools': [tool('t%d' % n) for n in range(1000)]}, lambda m: text('fine'))";
    let bed = Bed::with(&[("p", body)]);
    let (names, beside) = bed.names();
    assert!(names.contains(&"t255".to_owned()) && !names.contains(&"t256".to_owned()));
    assert!(beside.contains("plugin p has 1000 tools"), "{beside}");
}
