//! The results, defaults and settings that the tools page of adk-deepagents prints.

use super::blocks::{Block, blocks, parameters, results};
use crate::scratch::{Ended, Scratch};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

const PAGE: &str = include_str!("../../seeds/deepagents.md");
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\xdach\0\0\0\x82\0\x81\xdaE\x08;\0\0\0\0IEND\xaeB`\x82";

/// Whether `actual` contains everything in `printed`. Text that ends in `...` is only a
/// prefix.
pub(super) fn holds(printed: &Value, actual: &Value) -> bool {
    match (printed, actual) {
        (Value::Object(printed), Value::Object(actual)) => printed
            .iter()
            .all(|(key, value)| actual.get(key).is_some_and(|actual| holds(value, actual))),
        (Value::Array(printed), Value::Array(actual)) => {
            printed.len() == actual.len()
                && printed
                    .iter()
                    .zip(actual)
                    .all(|(one, other)| holds(one, other))
        }
        (Value::String(printed), Value::String(actual)) => match printed.strip_suffix("...") {
            Some(beginning) => actual.starts_with(beginning),
            None => printed == actual,
        },
        _ => printed == actual,
    }
}

/// Pads a text to a size with a last line.
fn sized(text: &str, size: usize) -> String {
    format!("{text}{}\n", "#".repeat(size - text.len() - 1))
}

/// A project with the files of the printed results: their sizes, times and lines.
fn project() -> Scratch {
    let scratch = Scratch::new();
    let blank = "\n".repeat(38);
    let main = format!("import os\nimport sys\nimport json\n{blank}    def hello():\n");
    scratch.file("src/main.py", sized(&main, 1024));
    scratch.file("src/utils.py", sized("import re\n", 512));
    scratch.file("readme.md", sized("", 142));
    for below in ["src", "readme.md"] {
        let time = UNIX_EPOCH + Duration::from_secs(1_736_937_000);
        let file = std::fs::File::open(scratch.work(below)).unwrap();
        file.set_modified(time).unwrap();
    }
    scratch
}

fn call(scratch: &Scratch, tool: &str, arguments: &Value, flags: &[&str]) -> Ended {
    let arguments = arguments.to_string();
    let args = ["call", tool, &arguments, "--toolset", "deepagents"];
    scratch.haft(&[&args[..], flags].concat())
}

fn python() -> Vec<Block> {
    let all = blocks(PAGE).into_iter();
    all.filter(|block| block.language == "python").collect()
}

fn is_result(block: &Block) -> bool {
    block.text.starts_with("# ") || block.text.starts_with("{\"")
}

/// The arguments that lead to a printed result.
fn how(tool: &str, title: &str) -> Value {
    let main = "/src/main.py";
    match (tool, title) {
        ("ls", "Success") => json!({ "path": "/" }),
        ("ls", "Error (invalid path)") => json!({ "path": "../etc/passwd" }),
        ("read_file", "Success (text file)") => json!({ "file_path": main }),
        ("read_file", "Success (image file)") => json!({ "file_path": "/dot.png" }),
        ("read_file", "Pagination indicator (appended to content)") => {
            json!({ "file_path": "/long.txt" })
        }
        ("read_file", "Error") => json!({ "file_path": "/nonexistent.txt" }),
        ("write_file", "Success") => json!({ "file_path": "/src/new_file.py", "content": "" }),
        ("write_file", "Error (file exists)") => json!({ "file_path": main, "content": "" }),
        ("edit_file", "Success") => {
            json!({ "file_path": main, "old_string": "def hello", "new_string": "def bye" })
        }
        ("edit_file", "Error (not found)") => {
            json!({ "file_path": main, "old_string": "gone", "new_string": "x" })
        }
        ("edit_file", "Error (ambiguous)") => {
            json!({ "file_path": main, "old_string": "import", "new_string": "x" })
        }
        ("edit_file", "Error (identical)") => {
            json!({ "file_path": main, "old_string": "def", "new_string": "def" })
        }
        ("glob", "Success") => json!({ "pattern": "**/*.py" }),
        ("glob", "No matches") => json!({ "pattern": "*.none" }),
        ("grep", "Success") => json!({ "pattern": "import" }),
        ("grep", "No matches") => json!({ "pattern": "nowhere" }),
        ("write_todos", "") => json!({ "todos": [
            { "content": "a", "status": "pending" }, { "content": "b", "status": "pending" }, { "content": "c", "status": "pending" },
        ] }),
        ("read_todos", _) => json!({}),
        ("execute", "Success") => json!({ "command": "echo hello world" }),
        ("execute", "Error") => json!({ "command": "foo" }),
        ("execute", "Timeout") => json!({ "command": "sleep 60", "timeout": 1 }),
        other => panic!("no call leads to the printed result of {other:?}: add one"),
    }
}

#[test]
fn each_printed_result_is_what_comes_back() {
    let mut count = 0;
    for block in python().iter().filter(|block| is_result(block)) {
        for (title, mut printed) in results(&block.text) {
            count += 1;
            // The heading above local execution does not name the tool.
            let tool = if block.tool.is_empty() {
                "execute"
            } else {
                &block.tool
            };
            let arguments = how(tool, &title);
            if (tool, title.as_str()) == ("read_todos", "With todos") {
                // Needs a session: see the test of todos.
                continue;
            }
            let scratch = project();
            if tool == "read_file" {
                scratch.file("dot.png", PNG);
                scratch.file("long.txt", "x\n".repeat(2150));
            }
            let ended = call(&scratch, tool, &arguments, &["--json"]);
            let reply: Value = serde_json::from_str(&ended.out).unwrap();
            let actual = reply["content"][0]["text"].as_str().unwrap();
            let actual: Value = serde_json::from_str(actual).unwrap();
            let fails = printed["status"] == "error";
            assert_eq!(reply["is_error"], fails, "{tool} {title}: {reply}");
            match (tool, title.as_str()) {
                // Sorted by path here.
                ("ls", "Success") => printed["entries"].as_array_mut().unwrap().reverse(),
                // The image is a block of its own, not text.
                ("read_file", "Success (image file)") => {
                    let data = printed["content"].as_object_mut().unwrap().remove("data");
                    assert!(
                        holds(&data.unwrap(), &reply["content"][1]["data"]),
                        "{reply}"
                    );
                }
                ("read_file", "Pagination indicator (appended to content)") => {
                    let content = actual["content"].as_str().unwrap();
                    let expected = printed.as_str().unwrap();
                    assert!(content.ends_with(&format!("\n\n{expected}")), "{expected}");
                    printed = json!({});
                }
                // This bash also names the line.
                ("execute", "Error") => {
                    let words = printed["output"].take();
                    let words = words.as_str().unwrap().replace("bash: ", "bash: line 1: ");
                    printed["output"] = json!(words);
                }
                // A shorter limit than the printed one, which is the default.
                ("execute", "Timeout") => {
                    let words = printed["output"]
                        .as_str()
                        .unwrap()
                        .replace("120.0s", "1.0s");
                    printed["output"] = json!(words);
                }
                _ => {}
            }
            assert!(
                holds(&printed, &actual),
                "{tool} {title}: wanted {printed}, got {actual}"
            );
            // Only advice and search statistics may be added.
            let known = |key: &String| {
                printed.get(key).is_some() || ["hint", "searched"].contains(&key.as_str())
            };
            let is_whole = printed.as_object().is_some_and(serde_json::Map::is_empty)
                || actual.as_object().unwrap().keys().all(known);
            assert!(is_whole, "{tool} {title}: wanted {printed}, got {actual}");
        }
    }
    assert_eq!(count, 22);
}

/// The table of the output modes prints one output of each.
#[test]
fn each_output_mode_of_grep_has_the_printed_form() {
    for (mode, pattern, printed) in [
        (
            "files_with_matches",
            "import",
            "/src/main.py\n/src/utils.py",
        ),
        ("content", "def hello", "/src/main.py:42:    def hello():"),
        ("count", "import", "/src/main.py: 3\n/src/utils.py: 1"),
    ] {
        let arguments = json!({ "pattern": pattern, "output_mode": mode });
        let ended = call(&project(), "grep", &arguments, &[]);
        let reply: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(reply["result"], printed, "{ended:?}");
    }
}

/// The table of the patterns of `glob`.
#[test]
fn each_printed_pattern_finds_what_it_says() {
    let scratch = Scratch::new();
    for file in [
        "a.txt",
        "b/a.txt",
        "a.py",
        "b/c/a.py",
        "a.js",
        "b/a.tsx",
        "src/components/a.ts",
        "src/utils/a.ts",
        "src/other/a.ts",
    ] {
        scratch.file(file, "");
    }
    for (pattern, found) in [
        ("**/*.py", &["/a.py", "/b/c/a.py"][..]),
        ("*.txt", &["/a.txt"]),
        (
            "src/{components,utils}/*.ts",
            &["/src/components/a.ts", "/src/utils/a.ts"],
        ),
        (
            "**/*.{js,ts,jsx,tsx}",
            &[
                "/a.js",
                "/b/a.tsx",
                "/src/components/a.ts",
                "/src/other/a.ts",
                "/src/utils/a.ts",
            ],
        ),
    ] {
        let ended = call(&scratch, "glob", &json!({ "pattern": pattern }), &[]);
        let reply: Value = serde_json::from_str(&ended.out).unwrap();
        let entries = reply["entries"].as_array().unwrap().iter();
        let paths: Vec<&str> = entries
            .map(|entry| entry["path"].as_str().unwrap())
            .collect();
        assert_eq!(paths, found, "{pattern}");
    }
}

/// Each printed function: its parameters, which of them are needed, and their defaults.
#[test]
fn each_printed_signature_is_in_the_schema() {
    let ended = Scratch::new().haft(&["tools", "--json", "--toolset", "deepagents"]);
    let tools: Vec<Value> = serde_json::from_str(&ended.out).unwrap();
    let mut count = 0;
    for block in python()
        .iter()
        .filter(|block| block.text.starts_with("def "))
    {
        count += 1;
        let name = block.text.split(['(', ' ']).nth(1).unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let schema = ["parameters", "input_schema", "inputSchema"]
            .iter()
            .find_map(|key| tool.get(key))
            .unwrap();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (parameter, default) in parameters(&block.text) {
            let property = &schema["properties"][&parameter];
            assert!(property.is_object(), "{name} has no {parameter}: {schema}");
            let needed = required.contains(&json!(parameter));
            assert_eq!(needed, default.is_none(), "{name} {parameter}");
            let default = default.unwrap_or_default();
            assert_eq!(
                property.get("default").unwrap_or(&Value::Null),
                &default,
                "{name} {parameter}"
            );
        }
    }
    assert_eq!(count, 9);
}

/// `create_deep_agent(execution="local")` is a setting here.
#[test]
fn local_execution_is_a_setting() {
    let printed = python();
    let agent = printed
        .iter()
        .find(|block| block.text.starts_with("agent = "));
    assert!(agent.unwrap().text.contains("    execution=\"local\",\n"));
    for (execution, there) in [("local", true), ("none", false)] {
        let scratch = Scratch::new();
        scratch.user(&format!(
            "execution: {execution}\ntools: {{ toolset: deepagents }}\n"
        ));
        let ended = scratch.haft(&["tools", "--json"]);
        assert_eq!(ended.out.contains("\"execute\""), there, "{ended:?}");
    }
}

/// `execution="heimdall"` is another name for haft's own sandbox.
#[test]
fn the_printed_sandbox_is_a_setting() {
    let listed = |execution: &str| {
        let scratch = Scratch::new();
        scratch.user(&format!(
            "execution: {execution}\ntools: {{ toolset: deepagents }}\n"
        ));
        let ended = scratch.haft(&["tools", "--json"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.out
    };
    let heimdall = listed("heimdall");
    assert_eq!(heimdall, listed("sandbox"));
    assert!(!heimdall.contains("\"execute\""), "{heimdall}");
}

/// Every key of the printed `SubAgentSpec` is one of a sub-agent here.
#[test]
fn the_keys_of_the_printed_specification_are_settings() {
    let printed = include_str!("../../seeds/subagent_spec.txt");
    let mut entry = serde_json::Map::new();
    for line in printed.lines().skip(1) {
        let (key, kind) = line.trim().split_once(": ").unwrap();
        let value = match kind.split("  ").next().unwrap().trim() {
            "str" => json!("gemini-2.5-pro"),
            "Sequence[Callable]" => json!(["read_file", "write_file"]),
            "list[str]" => json!(["./skills"]),
            "dict[str, bool]" => json!({ "write_file": true }),
            other => panic!("no value for {other}"),
        };
        entry.insert(key.to_owned(), value);
    }
    assert_eq!(entry.len(), 7);
    // No model is needed: haft reports errors in the settings before it connects to one.
    let ran = |entry: &serde_json::Map<String, Value>| {
        let scratch = Scratch::new();
        let config = json!({
            "provider": "ollama", "model": "m", "base_url": "http://127.0.0.1:9", "max_retries": 0,
            "tools": { "toolset": "deepagents" }, "subagents": [entry],
        });
        scratch.user(&config.to_string());
        scratch.haft(&["run", "hi"])
    };
    let ended = ran(&entry);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    entry.insert("prompts".to_owned(), json!("x"));
    let ended = ran(&entry);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("unknown field `prompts`"), "{ended:?}");
}
