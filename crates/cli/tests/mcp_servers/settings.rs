//! Configuration of servers: pasted entries work, and errors are named.

use crate::bed::Bed;
use crate::servers::ECHO;
use serde_json::{Value, json};

#[test]
fn pasted_server_entries_are_understood() {
    let bed = Bed::new();
    bed.server("echo", ECHO);
    let program = bed.path("plugins/echo").to_string_lossy().into_owned();
    for entry in [
        json!({ "command": program }),
        json!({ "type": "stdio", "command": program, "args": [], "env": {} }),
        json!({ "command": [program, "--flag"], "timeout": 30, "enabled": true }),
        json!({ "command": "python3", "args": [program] }),
        json!({ "command": program, "cwd": bed.path("work") }),
        json!({ "command": program, "disabled": false, "autoApprove": ["echo"], "alwaysAllow": [], "trust": true, "description": "Echoes.", "timeout": 30000 }),
        json!({ "command": "${NOT_SET:-python3}", "args": ["${env:HOME}/../plugins/echo"] }),
    ] {
        bed.configure(&json!({ "tools": { "mcp": { "e": entry } } }));
        assert!(bed.names().0.contains(&"e_echo".to_owned()), "{entry}");
    }
    for off in [json!({ "enabled": false }), json!({ "disabled": true })] {
        let mut entry = json!({ "command": program });
        entry
            .as_object_mut()
            .unwrap()
            .extend(off.as_object().unwrap().clone());
        bed.configure(&json!({ "tools": { "mcp": { "e": entry } } }));
        assert!(!bed.names().0.contains(&"e_echo".to_owned()), "{off}");
    }
}

#[test]
fn an_unknown_key_is_a_warning_about_that_server() {
    let bed = Bed::new();
    bed.server("echo", ECHO);
    let mut entry = bed.entry("echo");
    entry["header"] = json!({});
    entry["someKeyOfAnotherProgram"] = json!([1]);
    bed.configure(&json!({ "tools": { "mcp": { "e": entry } } }));
    let (names, beside) = bed.names();
    assert!(names.contains(&"e_echo".to_owned()), "{beside}");
    for warning in [
        "unknown key \"header\" in tools.mcp.e is ignored; did you mean \"headers\"?",
        "unknown key \"someKeyOfAnotherProgram\" in tools.mcp.e is ignored",
    ] {
        assert!(beside.contains(warning), "{beside}");
    }
}

/// Long enough not to be part of the random name of a folder, which errors name too.
const PASSWORD: &str = "a-password-of-mine";

#[test]
fn a_mistake_is_reported_with_its_position() {
    let bed = Bed::new();
    for (entry, expected) in [
        (json!({}), "command or url is missing"),
        (
            json!({ "command": "x", "url": "http://a/" }),
            "only one of command, url and uri is allowed",
        ),
        (
            json!({ "url": "ftp://a/" }),
            "the address must start with http:// or https://",
        ),
        (
            json!({ "url": format!("http://me:{PASSWORD}@a/") }),
            "must not contain a user name or password",
        ),
        (
            json!({ "url": "http://a/", "args": [] }),
            "a server with a url cannot have args",
        ),
        (
            json!({ "command": "x", "type": "http" }),
            "type does not match",
        ),
        (
            json!({ "command": "x", "type": "pigeon" }),
            "tools.mcp.e.type must be stdio, http, sse",
        ),
        (
            json!({ "command": "x", "timeout": "soon" }),
            "tools.mcp.e.timeout must be a number of seconds",
        ),
        (
            json!({ "command": "x", "args": "y" }),
            "tools.mcp.e.args must be a list, got text",
        ),
        (json!("x"), "tools.mcp.e must be a map, got text"),
    ] {
        bed.configure(&json!({ "tools": { "mcp": { "e": entry } } }));
        let ran = bed.haft(&["tools"]);
        assert_eq!(ran.code, Some(2), "{entry}: {ran:?}");
        assert!(
            ran.err.contains("haft.yaml:1:")
                && ran.err.contains("tools.mcp.e")
                && ran.err.contains(expected),
            "{entry}: {}",
            ran.err
        );
        assert!(!ran.err.contains(PASSWORD), "{}", ran.err);
    }
}

#[test]
fn a_variable_that_is_not_set_leaves_out_that_server_alone() {
    let bed = Bed::new();
    bed.server("echo", ECHO);
    let mut needs = bed.entry("echo");
    needs["env"] = json!({ "KEY": "${NOT_SET}" });
    bed.configure(&json!({ "tools": { "mcp": { "needs": needs, "fine": bed.entry("echo") } } }));
    let (names, beside) = bed.names();
    assert!(names.contains(&"fine_echo".to_owned()) && !names.contains(&"needs_echo".to_owned()));
    assert!(
        beside.contains("NOT_SET") && beside.contains("skipped this MCP server"),
        "{beside}"
    );
}

#[test]
fn only_the_tools_that_are_listed_are_taken() {
    let bed = Bed::new();
    bed.server("many", "serve([tool('a'), tool('b'), tool('c')], echo)");
    let mut entry = bed.entry("many");
    entry["tools"] = json!(["c", "a", "d"]);
    bed.configure(&json!({ "tools": { "mcp": { "many": entry } } }));
    let (names, beside) = bed.names();
    let ours: Vec<&String> = names
        .iter()
        .filter(|name| name.starts_with("many_"))
        .collect();
    assert_eq!(ours, ["many_a", "many_c"]);
    assert!(
        beside.contains("MCP server many has no tool \"d\""),
        "{beside}"
    );
}

#[test]
fn rules_hold_for_the_tools_of_servers() {
    let bed = Bed::serving(&[("echo", ECHO)]);
    let mut config: Value = serde_json::from_str(
        &std::fs::read_to_string(bed.path("home/.config/haft/haft.yaml")).unwrap(),
    )
    .unwrap();
    config["policy"] = json!([{ "deny": "echo_echo" }]);
    bed.configure(&config);
    let denied = bed.call("echo_echo", &json!({}));
    assert!(denied.is_error, "{denied:?}");
    config["policy"] = json!([{ "ask": "*", "effect": "execute" }]);
    bed.configure(&config);
    assert!(bed.call("echo_echo", &json!({})).is_error);
    let calls = bed.got("echo");
    assert!(
        !calls
            .iter()
            .any(|message| message["method"] == "tools/call")
    );
}

#[test]
fn haft_is_a_server_of_haft_but_not_of_itself() {
    let bed = Bed::new();
    let haft = env!("CARGO_BIN_EXE_haft");
    bed.configure(
        &json!({ "tools": { "mcp": { "again": { "command": haft, "args": ["mcp"] } } } }),
    );
    let (names, beside) = bed.names();
    assert!(!names.iter().any(|name| name.starts_with("again_")));
    assert!(beside.contains("would start itself endlessly"), "{beside}");
    let other = bed.write("outside/other.yaml", "sandbox: off\n");
    let args = json!(["mcp", "--config", other, "--preset", "all"]);
    bed.configure(&json!({ "tools": { "mcp": { "again": { "command": haft, "args": args } } } }));
    bed.write("work/hello.txt", "hello\n");
    let text = bed.reply_text("again_read", &json!({ "path": "hello.txt" }));
    assert_eq!(text, "hello");
    // The call found out that the server offers the newest version.
    let report = bed.done(&["mcp", "test", "again"]).out;
    assert!(report.contains("protocol 2026-07-28"), "{report}");
}
