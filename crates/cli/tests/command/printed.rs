//! Configurations, calls and command lines from the documentation of other agents work
//! unchanged.

mod blocks;
mod calls;
mod results;
mod web;

use crate::scratch::Scratch;

/// A project with the files that the printed calls name.
fn project() -> Scratch {
    let scratch = Scratch::new();
    let go = "package agent\n\nfunc ServeHandler() {}\n";
    for (path, text) in [
        ("pkg/agent/loop.go", go),
        ("pkg/agent/loop_test.go", go),
        ("internal/agent/agent.go", go),
        ("internal/agent/tool/tool.go", go),
        ("main.go", "fmt.Println(\"hello\")\n"),
        ("tmp/output.log", "x\n"),
        ("a.txt", "foo\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nfoo\n"),
        ("README.md", "# Read me\n"),
        (
            "src/main.py",
            "import flask  # TODO\ndef hello():\n    print('hello')\n",
        ),
        ("docs/index.md", "# Docs\n"),
    ] {
        scratch.file(path, text);
    }
    scratch
}

/// The fragment that its page prints without `tools:` above it.
const CONFIGURED: &str = include_str!("../seeds/configured.yaml");

#[test]
fn printed_configurations_load() {
    let configured = format!("tools:\n  {}", CONFIGURED.replace('\n', "\n  "));
    for yaml in [
        include_str!("../seeds/preset.yaml"),
        include_str!("../seeds/registered.yaml"),
        include_str!("../seeds/python_plugin.yaml"),
        include_str!("../seeds/examples.yaml"),
        &configured,
    ] {
        // As a haft.yaml of the folder, and converted from a file of the agent.
        let scratch = project();
        scratch.file("haft.yaml", yaml);
        let ended = scratch.haft(&["config", "show"]);
        assert_eq!(ended.code, Some(0), "{yaml}{ended:?}");
        assert_eq!(scratch.haft(&["tools"]).code, Some(0), "{yaml}");
        scratch.file("agent.yaml", yaml);
        let ended = scratch.haft(&["init", "--from", "agent.yaml", "--force"]);
        assert_eq!(ended.code, Some(0), "{yaml}{ended:?}");
        assert!(!ended.out.contains("not carried over"), "{yaml}{ended:?}");
        assert_eq!(scratch.haft(&["tools"]).code, Some(0), "{yaml}");
    }
}

/// The printed file has the default tools and folder.
#[test]
fn the_printed_preset_and_folder_are_the_defaults() {
    let scratch = project();
    let before = scratch.haft(&["tools", "--json"]).out;
    scratch.file("haft.yaml", include_str!("../seeds/preset.yaml"));
    assert_eq!(scratch.haft(&["tools", "--json"]).out, before);
    let (value, from) = scratch.shown("tools.preset", &[], &[]);
    assert_eq!((value, from.as_str()), ("coding".into(), "haft.yaml:2"));
    let read = scratch.haft(&["call", "read", "path=README.md"]);
    assert_eq!(read.out, "# Read me\n", "{read:?}");
}

#[test]
fn plugins_at_the_top_level_get_a_hint() {
    let scratch = project();
    scratch.file("haft.yaml", CONFIGURED);
    for args in [
        &["config", "show"][..],
        &["tools"],
        &["call", "read", "path=a.txt"],
    ] {
        let ended = scratch.haft(args);
        assert_eq!(
            (ended.code, ended.err.trim_end()),
            (
                Some(2),
                "haft.yaml:1:1: unknown key \"plugins\"; it belongs under tools, as tools.plugins"
            ),
            "{ended:?}"
        );
    }
    // An agent.yaml is converted too. This one needs a secret, which a project's file never
    // gets, so haft prints the lines for the user's own file, in the right place.
    scratch.file("agent.yaml", CONFIGURED);
    let ended = scratch.haft(&["init", "--from", "agent.yaml", "--force"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(!ended.out.contains("not carried over"), "{ended:?}");
    let lines = format!(
        "tools:\n  plugins:\n    - {{ path: \"{}\", args: [\"--api-key\", \"${{MY_API_KEY}}\"",
        scratch.work("my_plugin").display()
    );
    assert!(ended.err.contains(&lines), "{ended:?}");
}

#[test]
fn printed_presets_have_the_printed_tools() {
    let scratch = project();
    for (preset, tools) in [
        ("coding", &["read", "bash", "edit", "write"][..]),
        ("readonly", &["read", "grep", "find", "ls"]),
        ("web", &["web_search", "web_fetch"]),
        ("none", &[]),
        (
            "all",
            &[
                "read",
                "bash",
                "edit",
                "write",
                "grep",
                "find",
                "ls",
                "web_search",
                "web_fetch",
            ],
        ),
    ] {
        let ended = scratch.haft(&["tools", "--json", "--preset", preset]);
        let listed: Vec<serde_json::Value> = serde_json::from_str(&ended.out).unwrap();
        let names: Vec<&str> = listed
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, tools, "{preset}");
    }
}

#[test]
fn printed_failures_have_the_printed_words() {
    let scratch = project();
    scratch.user("tools:\n  channels:\n    other: { kind: console }\n");
    for (toolset, tool, arguments, words) in [
        (
            "standard",
            "read",
            "{}",
            "validation error: missing required parameter \"path\"",
        ),
        (
            "workspace",
            "edit",
            r#"{"path":"a.txt","old_text":"gone","new_text":"x"}"#,
            "old_text not found in file",
        ),
        (
            "workspace",
            "edit",
            r#"{"path":"a.txt","start_line":90,"end_line":91,"new_text":"x"}"#,
            "line range out of bounds",
        ),
        (
            "workspace",
            "read",
            r#"{"path":"/etc/passwd"}"#,
            "path not allowed",
        ),
        (
            "workspace",
            "message",
            r#"{"chanId":"telegram-main","chatId":"123456","content":"Task completed."}"#,
            "channel not found: telegram-main",
        ),
        (
            "deepagents",
            "write_file",
            r#"{"file_path": "/src/main.py", "content": "x"}"#,
            "File already exists: /src/main.py. Use edit_file to modify.",
        ),
        (
            "deepagents",
            "ls",
            r#"{"path": "../etc/passwd"}"#,
            "Path traversal not allowed: ../etc/passwd",
        ),
        (
            "ah",
            "edit",
            r#"{"path":"a.txt","old_string":"foo","new_string":"x"}"#,
            "old_string is not unique",
        ),
    ] {
        let ended = scratch.haft(&["call", tool, arguments, "--toolset", toolset]);
        assert_eq!(
            ended.code,
            Some(1),
            "{toolset} {tool} {arguments}: {ended:?}"
        );
        assert!(
            ended.out.contains(words),
            "{toolset} {tool} {arguments}: {ended:?}"
        );
    }
    // AH_PROTECT_DIRS, separated by colons.
    let variables = [("AH_PROTECT_DIRS", "vendor:docs")];
    for path in ["vendor/x", "docs/index.md"] {
        let path = format!("path={path}");
        let args = ["call", "write", &path, "content=x", "--toolset", "ah"];
        let ended = scratch.haft_with(&variables, &args);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.contains("protected directory"), "{ended:?}");
    }
}
