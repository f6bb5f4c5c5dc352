//! Mistakes of models that `docs/mistakes.md` lists.

use crate::session::Bed;
use serde_json::{Value, json};

/// Calls a tool in a folder with a few files, and returns whether it failed and its reply.
fn call(toolset: &str, tool: &str, arguments: &Value) -> (bool, String) {
    let bed = Bed::new();
    bed.file("notes.txt", "one\ntwo\n");
    bed.file("src/main.rs", "fn main() {\n    foo(1);\n}\n");
    bed.file("src/lib.rs", "mod main;\n");
    let answer = bed.call(&["--toolset", toolset], tool, arguments);
    (answer.is_error, answer.text)
}

#[test]
fn a_missing_file_is_suggested() {
    for (given, wanted) in [
        ("src/mian.rs", "src/main.rs"),
        ("main.rs", "src/main.rs"),
        ("/workspace/src/main.rs", "src/main.rs"),
        ("src/*.rs", "src/lib.rs, src/main.rs"),
        ("src/main.rs, notes.txt", "src/main.rs, notes.txt"),
    ] {
        for toolset in ["standard", "workspace", "ah"] {
            if toolset == "workspace" && given.starts_with('/') {
                // It names nothing outside the workspace.
                continue;
            }
            let (is_error, text) = call(toolset, "read", &json!({ "path": given }));
            assert!(is_error, "{toolset} {given}: {text}");
            let wanted = format!("id you mean: {wanted}?");
            assert!(text.contains(&wanted), "{toolset} {given}: {text}");
        }
    }
    for (given, wanted) in [
        ("/src/mian.rs", "/src/main.rs"),
        ("/home/me/project/src/main.rs", "/src/main.rs"),
        ("/src/*.rs", "/src/lib.rs, /src/main.rs"),
        ("/main.rs", "/src/main.rs"),
    ] {
        let (is_error, text) = call("deepagents", "read_file", &json!({ "file_path": given }));
        assert!(is_error, "{given}: {text}");
        let wanted = format!("did you mean: {wanted}?");
        assert!(text.contains(&wanted), "{given}: {text}");
    }
}

#[test]
fn a_path_as_people_mention_it() {
    for toolset in ["standard", "workspace", "ah"] {
        let (is_error, text) = call(toolset, "read", &json!({ "path": "@notes.txt" }));
        assert!(!is_error, "{toolset}: {text}");
        assert!(text.contains("two"), "{toolset}: {text}");
    }
    for given in ["@notes.txt", "notes.txt", "./notes.txt"] {
        let (is_error, text) = call("deepagents", "read_file", &json!({ "file_path": given }));
        assert!(is_error, "{text}");
        assert!(text.contains("use /notes.txt"), "{given}: {text}");
    }
}

#[test]
fn code_that_is_not_a_regular_expression() {
    let (is_error, text) = call("standard", "grep", &json!({ "pattern": "foo(" }));
    assert!(!is_error, "{text}");
    assert!(text.starts_with("src/main.rs:2:    foo(1);"), "{text}");
    assert!(text.contains("[searched for the text as it is"), "{text}");
    let (is_error, text) = call("standard", "grep", &json!({ "pattern": "foo(.*" }));
    assert!(is_error, "{text}");
}

#[test]
fn a_command_that_is_a_tool_call() {
    for (toolset, tool) in [
        ("standard", "bash"),
        ("ah", "bash"),
        ("deepagents", "execute"),
    ] {
        let command = json!({ "command": "{\"command\": \"touch made\"}" });
        let (is_error, text) = call(toolset, tool, &command);
        assert!(is_error, "{toolset}: {text}");
        assert!(text.contains("touch made"), "{toolset}: {text}");
        let (_, text) = call(toolset, tool, &json!({ "command": "{ echo group; }" }));
        assert!(text.contains("group"), "{toolset}: {text}");
    }
}

#[test]
fn content_with_line_numbers() {
    let content = "     1\tone\n     2\ttwo\n";
    for (toolset, tool, path) in [
        ("standard", "write", "path"),
        ("workspace", "write", "path"),
        ("ah", "write", "path"),
        ("deepagents", "write_file", "file_path"),
    ] {
        let name = if path == "path" {
            "new.txt"
        } else {
            "/new.txt"
        };
        let (is_error, text) = call(toolset, tool, &json!({ path: name, "content": content }));
        assert!(!is_error, "{toolset}: {text}");
        assert!(
            text.contains("starts with a line number"),
            "{toolset}: {text}"
        );
        let plain = json!({ path: name, "content": "1 one\n2 two\n" });
        let (_, text) = call(toolset, tool, &plain);
        assert!(!text.contains("line number"), "{toolset}: {text}");
    }
}

#[test]
fn repairs_can_be_turned_off() {
    let bed = Bed::new();
    bed.file("main.go", "func main() {\n\tprintln(1)\n}\n");
    let config = bed.config("tools: { edit_repair: off }\n");
    let edit = json!({
        "path": "main.go",
        "old_text": "    println(1)",
        "new_text": "    println(2)",
    });
    let answer = bed.call(&["--config", &config], "edit", &edit);
    assert!(answer.is_error, "{}", answer.text);
    assert!(
        answer.text.contains("4 spaces wanted, 1 tab found"),
        "{}",
        answer.text
    );
    let answer = bed.call(&[], "edit", &edit);
    assert!(!answer.is_error, "{}", answer.text);
    assert!(answer.text.contains("Repaired: "), "{}", answer.text);
    let now = std::fs::read_to_string(bed.work("main.go")).unwrap();
    assert_eq!(now, "func main() {\n\tprintln(2)\n}\n");
}

#[test]
fn a_parameter_that_the_tool_does_not_have() {
    for (toolset, tool, path) in [
        ("standard", "read", "path"),
        ("workspace", "read", "path"),
        ("ah", "read", "path"),
        ("deepagents", "read_file", "file_path"),
    ] {
        let name = if path == "path" {
            "notes.txt"
        } else {
            "/notes.txt"
        };
        let (is_error, text) = call(toolset, tool, &json!({ path: name, "verbose": true }));
        assert!(!is_error, "{toolset}: {text}");
        assert!(text.contains("two"), "{toolset}: {text}");
        let note = match serde_json::from_str::<Value>(&text) {
            Ok(answer) => answer["ignored_parameters"] == json!(["verbose"]),
            Err(_) => text.contains("[ignored unknown parameters: verbose]"),
        };
        assert!(note, "{toolset}: {text}");
        let (is_error, text) = call(toolset, tool, &json!({ path: name, "tail": 2 }));
        assert!(is_error, "{toolset}: {text}");
        assert!(text.contains("unknown parameter"), "{toolset}: {text}");
    }
}
