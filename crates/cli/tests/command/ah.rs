//! The toolset `ah`, through the command.

use crate::scratch::{Ended, Scratch};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const AH: (&str, &str) = ("HAFT_TOOLSET", "ah");

/// Returns a call's reply and whether it is an error.
fn call(scratch: &Scratch, variables: &[(&str, &str)], tool: &str, args: &Value) -> (String, bool) {
    let variables: Vec<(&str, &str)> = [AH].iter().chain(variables).copied().collect();
    let ended = scratch.haft_with(&variables, &["call", "--json", tool, &args.to_string()]);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    (
        reply["content"][0]["text"].as_str().unwrap().to_owned(),
        reply["is_error"] == json!(true),
    )
}

fn bash(scratch: &Scratch, command: &str) -> (String, bool) {
    call(scratch, &[], "bash", &json!({ "command": command }))
}

/// The text without its last lines in brackets, and the file they name.
fn kept(text: &str) -> (&str, String) {
    let (shown, path) = text.rsplit_once("[full output: ").unwrap();
    let path = path.split_once(']').unwrap().0;
    (shown, std::fs::read_to_string(path).unwrap())
}

#[test]
fn it_is_offered_everywhere() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "one\ntwo\n");
    let names = |ended: Ended| {
        let tools: Value = serde_json::from_str(&ended.out).unwrap();
        let names = tools.as_array().unwrap().iter();
        names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let tools = |preset: &[&str]| {
        names(scratch.haft(&[&["tools", "--json", "--toolset", "ah"], preset].concat()))
    };
    assert_eq!(tools(&[]), ["read", "write", "edit", "bash"]);
    assert_eq!(tools(&["--preset", "readonly"]), ["read"]);
    assert!(tools(&["--preset", "none"]).is_empty());
    let ended = scratch.haft(&["tools", "--toolset", "ah", "--preset", "coding"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("all, readonly, none"), "{ended:?}");

    let prompt = scratch.haft(&["tools", "--toolset", "ah", "--prompt"]).out;
    assert!(prompt.starts_with("Tools: read, write, edit, bash.\nread: "));
    for name in ["read", "write", "edit", "bash"] {
        assert!(prompt.contains(&format!("\n\n## {name}\n")), "{prompt}");
    }
    let ended = scratch.haft(&["call", "read", "path=@a.txt", "--toolset", "ah"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "one\ntwo\n"));
    let ended = scratch.haft(&["call", "read", "path=b.txt", "--toolset", "ah"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.out.starts_with("error: file not found: b.txt\n"),
        "{ended:?}"
    );
}

#[test]
fn pictures_and_the_home_folder() {
    let scratch = Scratch::new();
    std::fs::write(scratch.home("mine.txt"), "mine\n").unwrap();
    let read = json!({ "path": "~/mine.txt" });
    assert_eq!(
        call(&scratch, &[], "read", &read),
        ("mine".to_owned(), false)
    );
    let gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
    scratch.file("dot.txt", gif);
    let ended = scratch.haft_with(&[AH], &["call", "--json", "read", "path=dot.txt"]);
    let reply: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(reply["content"][1]["type"], "image", "{ended:?}");
    assert_eq!(reply["content"][1]["mimeType"], "image/gif");
    assert_eq!(reply["is_error"], false);
}

/// Over MCP as on the command line: names and schemas, and `isError` for a non-zero exit.
#[test]
fn the_mcp_server_serves_the_toolset() {
    let scratch = Scratch::new();
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "bash", "arguments": {"command": "echo hi; exit 4", "timeout": 60_000}}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ended = scratch.haft_reading(input.as_bytes(), &["mcp", "--toolset", "ah"]);
    let answer = |id: u64| {
        let mut answers = ended
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        answers.find(|answer| answer["id"] == id).unwrap()["result"].clone()
    };
    let tools = answer(2)["tools"].as_array().unwrap().len();
    assert_eq!(tools, 4, "{ended:?}");
    let result = answer(3);
    assert_eq!(result["content"][0]["text"], "hi\nexit code: 4");
    assert_eq!(result["isError"], true);
}

#[test]
fn outputs_are_cut_to_the_byte() {
    let scratch = Scratch::new();
    let (text, _) = bash(&scratch, "head -c 30000 /dev/zero | tr '\\0' x");
    assert_eq!(text, "x".repeat(30_000), "at the limit nothing is cut");
    // In memory, and more than is kept in memory.
    for total in [30_001, 46_385, 5_000_000] {
        let (text, failed) = bash(&scratch, &format!("head -c {total} /dev/zero | tr '\\0' x"));
        let half = "x".repeat(15_000);
        let (shown, whole) = kept(&text);
        assert_eq!(
            shown,
            format!(
                "{half}\n\n[output truncated: {} bytes removed from middle]\n\n{half}\n",
                total - 30_000
            )
        );
        assert_eq!((whole.len(), failed), (total, false));
    }
    // 3 bytes per character: 15000 is 5000 of them, 15001 starts another.
    let (text, _) = bash(&scratch, "printf 'x'; printf '€%.0s' {1..20000}; exit 9");
    let (shown, whole) = kept(&text);
    assert!(text.ends_with("]\nexit code: 9"));
    assert!(!text.contains('\u{fffd}'));
    let (head, rest) = shown.split_once("\n\n[output truncated: ").unwrap();
    let (removed, tail) = rest.split_once(" bytes removed from middle]\n\n").unwrap();
    let removed: usize = removed.parse().unwrap();
    let tail = tail.strip_suffix('\n').unwrap();
    assert_eq!((head.len(), tail.len()), (14_998, 15_000));
    assert_eq!(head.len() + removed + tail.len(), whole.len());
}

#[test]
fn a_timeout_keeps_the_output_and_ends_the_command() {
    let scratch = Scratch::new();
    let slow = json!({ "command": "seq 1 300; sleep 60", "timeout": 1500 });
    let (text, failed) = call(&scratch, &[], "bash", &slow);
    assert!(failed);
    assert!(
        text.ends_with("]\nerror: command timed out after 1.5s"),
        "{text}"
    );
    let (shown, whole) = kept(&text);
    assert!(shown.contains("\n128\n[...44 lines omitted...]\n173\n"));
    assert!(whole.ends_with("\n300\n"));
    // A shorter limit of the session is the one that is named.
    scratch.user("tools: {timeout: 1}\n");
    let (text, failed) = bash(&scratch, "echo begun; sleep 60");
    assert!(failed);
    assert_eq!(text, "begun\nerror: command timed out after 1s");
}

#[test]
fn a_file_of_any_size_is_read_by_its_ends() {
    let scratch = Scratch::new();
    scratch.file("exact.txt", "x".repeat(50_000));
    let read = |path: &str| call(&scratch, &[], "read", &json!({ "path": path })).0;
    assert_eq!(read("exact.txt").len(), 50_000);
    for lines in [60_001_usize, 1_000_000] {
        let file: String = (1..=lines).map(|line| format!("é{line}\n")).collect();
        scratch.file("long.txt", &file);
        let text = read("long.txt");
        let (head, rest) = text.split_once("\n\n[output truncated: ").unwrap();
        let (removed, tail) = rest.split_once(" bytes removed from middle]\n\n").unwrap();
        let removed: usize = removed.parse().unwrap();
        assert!(file.starts_with(head) && file.ends_with(tail));
        assert_eq!(head.len() + removed + tail.len(), file.len());
        assert!((24_997..=25_000).contains(&head.len()));
        assert!(!text.contains("[full output"));
    }
}

#[test]
fn folders_in_the_variable_are_never_changed() {
    let scratch = Scratch::new();
    scratch.file("kept/a.txt", "old\n");
    scratch.file("also/a.txt", "old\n");
    scratch.file("kept2/a.txt", "old\n");
    symlink("kept", scratch.work("link")).unwrap();
    symlink("also", scratch.work("entry")).unwrap();
    // Empty entries, a slash at the end, and one that is a link itself.
    let protect = &[("AH_PROTECT_DIRS", ":kept/::entry:")][..];
    let write = |path: &str| {
        let args = json!({ "path": path, "content": "new\n" });
        call(&scratch, protect, "write", &args)
    };
    let absolute = scratch.work("kept/a.txt").to_string_lossy().into_owned();
    for path in [
        "kept/a.txt",
        "./kept//b/c.txt",
        "kept2/../kept/a.txt",
        "link/a.txt",
        "also/a.txt",
        "entry/a.txt",
        "@kept/a.txt",
        "kept",
        &absolute,
    ] {
        let (text, failed) = write(path);
        assert!(failed, "{path}");
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            format!("error: path is in a protected directory: {path}")
        );
    }
    let args = json!({ "path": "kept/a.txt", "old_string": "old", "new_string": "new" });
    let (text, failed) = call(&scratch, protect, "edit", &args);
    assert!(
        failed && text.starts_with("error: path is in a protected directory: kept/a.txt\n"),
        "{text}"
    );
    assert_eq!(write("kept2/a.txt"), ("1 lines".to_owned(), false));
    for below in ["kept/a.txt", "also/a.txt"] {
        assert_eq!(
            std::fs::read_to_string(scratch.work(below)).unwrap(),
            "old\n"
        );
    }
    // It does not change what a model reads.
    let (text, _) = call(&scratch, protect, "read", &json!({ "path": "kept/a.txt" }));
    assert_eq!(text, "old");
    let (value, from) = scratch.shown("tools.protect", protect, &["--toolset", "ah"]);
    assert_eq!(value.as_array().unwrap().len(), 2);
    assert_eq!(from, "variable AH_PROTECT_DIRS");
}

#[test]
fn the_variable_applies_to_commands_and_every_toolset() {
    let scratch = Scratch::new();
    scratch.file("kept/a.txt", "old\n");
    let protect = &[("AH_PROTECT_DIRS", "kept")][..];
    let args = ["call", "write", "path=kept/a.txt", "content=x"];
    let ended = scratch.haft_with(protect, &args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended
            .out
            .starts_with("path is in a protected directory: kept/a.txt\n"),
        "{ended:?}"
    );
    let command = json!({ "command": "echo new > kept/a.txt" });
    let (text, _) = call(&scratch, protect, "bash", &command);
    let now = std::fs::read_to_string(scratch.work("kept/a.txt")).unwrap();
    // A machine that cannot keep a command from it says what happened.
    assert!(
        now == "old\n" || text.contains("[protected: kept"),
        "{now}{text}"
    );
}
