//! Configurations, calls and command lines as the documents of other agents print them:
//! pasted here, they work as they stand.

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

#[test]
fn printed_configurations_load() {
    for yaml in [
        "tools:\n  preset: coding     # read, bash, edit, write  (default)\n  work_dir: .        # working directory for file tools\n",
        "tools:\n  preset: none    # or coding, etc.\n  plugins:\n    - path: ./plugins/my-tool\n      args: []\n    - path: /usr/local/bin/my-plugin\n      args: [\"--verbose\"]\n",
        "tools:\n  preset: coding        # or readonly, none, etc.\n  plugins:\n    - path: ./plugins/my_tool.py\n      args: []\n    - path: ./plugins/my_tool\n      args: [\"--verbose\"]\n",
        "tools:\n  preset: coding\n  plugins:\n    - path: python3\n      args: [\"./examples/tools/python/tool.py\"]\n    - path: deno\n      args: [\"run\", \"./examples/tools/typescript/tool.ts\"]\n    - path: ./examples/tools/rust/target/release/file_info\n    - path: bash\n      args: [\"./examples/tools/bash/tool.sh\"]\n    - path: ruby\n      args: [\"./examples/tools/ruby/tool.rb\"]\n",
        "tools:\n  plugins:\n    - path: ./my_plugin\n      args: [\"--api-key\", \"${MY_API_KEY}\", \"--endpoint\", \"https://api.example.com\"]\n",
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
    // Without the key above it the error says where it belongs.
    let scratch = project();
    scratch.file("haft.yaml", "plugins:\n  - path: ./my_plugin\n");
    let ended = scratch.haft(&["config", "show"]);
    assert!(ended.err.contains("as tools.plugins"), "{ended:?}");
}

#[test]
fn printed_presets_have_the_printed_tools() {
    let scratch = project();
    for (preset, tools) in [
        ("coding", &["read", "bash", "edit", "write"][..]),
        ("readonly", &["read", "grep", "find", "ls"]),
        ("web", &["web_search", "web_fetch"]),
        ("none", &[]),
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

/// Each call: the toolset, the tool, its arguments, and a part of the answer.
const CALLS: &[(&str, &str, &str, &str)] = &[
    (
        "standard",
        "read",
        r#"{"path": "pkg/agent/loop.go", "offset": 1, "limit": 50}"#,
        "package agent",
    ),
    (
        "standard",
        "edit",
        r#"{"path": "main.go", "old_text": "fmt.Println(\"hello\")", "new_text": "fmt.Println(\"world\")"}"#,
        "main.go",
    ),
    (
        "standard",
        "write",
        r##"{"path": "notes.md", "content": "# Notes\n\n- item one\n"}"##,
        "notes.md",
    ),
    (
        "standard",
        "grep",
        r#"{"pattern": "func.*Handler", "path": ".", "glob": "*.go", "context_lines": 2}"#,
        "ServeHandler",
    ),
    (
        "standard",
        "find",
        r#"{"path": ".", "pattern": "*_test.go", "type": "file"}"#,
        "loop_test.go",
    ),
    (
        "standard",
        "ls",
        r#"{"path": "pkg/agent", "show_hidden": false}"#,
        "loop.go",
    ),
    (
        "workspace",
        "read",
        r#"{"path":"internal/agent/agent.go"}"#,
        "\"success\":true",
    ),
    (
        "workspace",
        "write",
        r#"{"path":"workspace/notes.txt","content":"hello"}"#,
        "\"size\":5",
    ),
    (
        "workspace",
        "edit",
        r#"{"path":"a.txt","old_text":"foo","new_text":"bar","replace_all":true}"#,
        "\"changes\":2",
    ),
    (
        "workspace",
        "edit",
        r#"{"path":"a.txt","start_line":10,"end_line":12,"new_text":"new lines"}"#,
        "\"success\":true",
    ),
    (
        "workspace",
        "list",
        r#"{"path":"internal/agent/tool"}"#,
        "\"count\":1",
    ),
    (
        "workspace",
        "delete",
        r#"{"path":"tmp/output.log"}"#,
        "\"success\":true",
    ),
    (
        "workspace",
        "file",
        r#"{"operation":"read_file","path":"README.md"}"#,
        "Read me",
    ),
    ("workspace", "process", r#"{"action":"list"}"#, "[]"),
    ("deepagents", "ls", r#"{"path": "/src"}"#, "/src/main.py"),
    (
        "deepagents",
        "read_file",
        r#"{"file_path": "/src/main.py"}"#,
        "import flask",
    ),
    (
        "deepagents",
        "write_file",
        r#"{"file_path": "/src/utils.py", "content": "def add(a, b):\n    return a + b\n"}"#,
        "\"status\":\"success\"",
    ),
    (
        "deepagents",
        "edit_file",
        r#"{"file_path": "/src/main.py", "old_string": "def hello():\n    print('hello')", "new_string": "def hello():\n    print('Hello, world!')"}"#,
        "\"occurrences\":1",
    ),
    (
        "deepagents",
        "glob",
        r#"{"pattern": "**/*.py"}"#,
        "/src/main.py",
    ),
    (
        "deepagents",
        "glob",
        r#"{"pattern": "*.md", "path": "/docs"}"#,
        "/docs/index.md",
    ),
    (
        "deepagents",
        "grep",
        r#"{"pattern": "TODO", "output_mode": "content"}"#,
        "/src/main.py:1:",
    ),
    (
        "deepagents",
        "grep",
        r#"{"pattern": "import flask", "path": "/src", "glob": "*.py"}"#,
        "/src/main.py",
    ),
    (
        "deepagents",
        "write_todos",
        r#"{"todos": [{"content": "Implement user authentication", "status": "in_progress"}, {"content": "Write unit tests", "status": "pending"}, {"content": "Update README", "status": "completed"}]}"#,
        "\"count\":3",
    ),
    ("deepagents", "read_todos", "{}", "\"todos\":[]"),
];

#[test]
fn printed_calls_are_answered() {
    for (toolset, tool, arguments, part) in CALLS {
        let scratch = project();
        let ended = scratch.haft(&["call", tool, arguments, "--toolset", toolset]);
        assert_eq!(
            ended.code,
            Some(0),
            "{toolset} {tool} {arguments}: {ended:?}"
        );
        assert!(
            ended.out.contains(part),
            "{toolset} {tool} {arguments}: {ended:?}"
        );
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
