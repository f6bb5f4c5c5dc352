//! The plugins, tools and settings that the seed documents print, run as printed.

use crate::bed::{Bed, ran};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A plugin in Bash that answers with these texts, as they are.
fn printing(definition: &str, result: &str) -> String {
    format!(
        "#!/bin/bash
while IFS= read -r line; do
  case $line in
  *'\"type\":\"describe\"'*) cat <<'END'
{definition}
END
  ;;
  *'\"type\":\"call\"'*) printf '%s\\n' \"$line\" >> got-printed; cat <<'END'
{result}
END
  ;;
  esac
done
"
    )
}

#[test]
fn the_messages_of_the_describe_protocol() {
    let definition = include_str!("../seeds/definition.json");
    for (result, wanted, is_error) in [
        (include_str!("../seeds/result.json"), "Result: ...", false),
        (
            include_str!("../seeds/failure.json"),
            "Error: something went wrong",
            true,
        ),
    ] {
        let bed = Bed::new();
        bed.program("plugins/p", printing(definition, result));
        bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")] } }));
        let answer = bed.call("my_tool", &json!({ "input": "hello", "count": 3 }));
        assert_eq!((answer.text.as_str(), answer.is_error), (wanted, is_error));
        let got = std::fs::read_to_string(bed.work("got-printed")).unwrap();
        let call: Value = serde_json::from_str(&got).unwrap();
        assert_eq!(call["type"], "call");
        assert_eq!(call["params"], json!({ "input": "hello", "count": 3 }));
        let (tools, _) = bed.tools();
        let tool = tools.iter().find(|tool| tool["name"] == "my_tool").unwrap();
        let printed: Value = serde_json::from_str(definition).unwrap();
        assert_eq!(tool["description"], printed["description"]);
    }
}

#[test]
fn several_tools_of_one_plugin() {
    let tools = r#"{
  "tools": [
    { "name": "tool_a", "description": "...", "parameters": {} },
    { "name": "tool_b", "description": "...", "parameters": {} }
  ]
}"#;
    let bed = Bed::new();
    bed.program(
        "plugins/p",
        printing(tools, include_str!("../seeds/result.json")),
    );
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")] } }));
    for tool in ["tool_a", "tool_b"] {
        assert_eq!(bed.said(tool, &json!({})), "Result: ...");
    }
}

#[test]
fn the_go_plugin_registered_by_path_and_args_alone() {
    if !Path::new("/usr/bin/go").exists() {
        return;
    }
    let bed = Bed::new();
    bed.file("source/main.go", include_str!("../seeds/init_plugin.go"));
    bed.file("source/go.mod", "module example\n\ngo 1.21\n");
    bed.file("work/plugins/.keep", "");
    let built = Command::new("/usr/bin/go")
        .args(["build", "-o", "../work/plugins/my-tool", "."])
        .current_dir(bed.path("source"))
        .env("HOME", bed.path("home"))
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go-cache"))
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    bed.file("work/haft.yaml", include_str!("../seeds/registered.yaml"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(
        bed.said("my_plugin_tool", &json!({ "input": "hello" })),
        "Processed: hello"
    );
    // The other one is not installed here, which is told and keeps nothing else away.
    let (names, beside) = bed.names();
    assert_eq!(names, ["my_plugin_tool"]);
    assert!(beside.contains("/usr/local/bin/my-plugin"), "{beside}");
    let invalid = bed.call("my_plugin_tool", &json!({}));
    assert!(
        invalid
            .text
            .starts_with("validation error: missing required parameter \"input\""),
        "{invalid:?}"
    );
}

#[test]
fn the_example_plugins_wired_into_a_configuration() {
    let bed = Bed::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tools");
    for file in [
        "python/tool.py",
        "bash/tool.sh",
        "ruby/tool.rb",
        "typescript/tool.ts",
    ] {
        let text = std::fs::read(examples.join(file)).unwrap();
        bed.file(&format!("work/examples/tools/{file}"), text);
    }
    bed.file("work/haft.yaml", include_str!("../seeds/examples.yaml"));
    bed.done(&["trust", "--yes"]);
    let (names, beside) = bed.names();
    for (name, interpreter) in [
        ("read", "/usr/bin/env"),
        ("stats", "/usr/bin/python3"),
        ("sys_info", "/bin/bash"),
        ("template", "/usr/bin/ruby"),
    ] {
        let is_there = names.iter().any(|other| other == name);
        assert!(
            is_there || !Path::new(interpreter).exists(),
            "{names:?} {beside}"
        );
    }
    // Not built here.
    assert!(beside.contains("file_info"), "{beside}");
}

#[test]
fn a_plugin_tested_by_hand() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let ran = ran(Command::new("bash")
        .args(["-c", include_str!("../seeds/by_hand.sh")])
        .current_dir(root));
    let lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{ran:?}");
    assert_eq!(lines[0]["name"], "stats");
    assert_eq!(lines[1], lines[0]);
    assert_eq!(lines[2]["error"], false);
}

#[test]
fn a_plugin_with_a_configuration_in_its_arguments() {
    let bed = Bed::new();
    let echo = "serve(tool('one'), lambda m: text(' '.join(sys.argv[1:])))";
    let program = bed.python("unused", echo);
    std::fs::copy(program, bed.path("home/.config/haft/my_plugin")).unwrap();
    let printed = include_str!("../seeds/configured.yaml").replace('\n', "\n  ");
    bed.file(
        "home/.config/haft/haft.yaml",
        format!("tools:\n  {printed}"),
    );
    let mut command = bed.command(&["call", "one"]);
    let ran = ran(command.env("MY_API_KEY", "k123"));
    assert_eq!(
        ran.out, "--api-key k123 --endpoint https://api.example.com\n",
        "{ran:?}"
    );
}

#[test]
fn the_lua_record() {
    let bed = Bed::new();
    let printed = include_str!("../seeds/record.lua");
    bed.file("work/tools/mytool.lua", format!("return {printed}"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.said("mytool", &json!({})), "result");
    let prompt = bed.done(&["tools", "--prompt"]).out;
    for line in [
        "\nmytool: Short description for API tool definition\n",
        "\n## mytool\n\nUsage guidance injected into the system prompt.\n",
    ] {
        let flat = prompt.replace("## mytool\n\n", "## mytool\n");
        assert!(
            flat.contains(&line.replace("\n\n", "\n")),
            "{line} {prompt}"
        );
    }
}

#[test]
fn a_program_with_its_page() {
    let bed = Bed::new();
    bed.program("work/tools/deploy", "#!/bin/sh\necho deployed \"$@\"\n");
    bed.file("work/tools/deploy.md", include_str!("../seeds/deploy.md"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(
        bed.said("deploy", &json!({ "args": "to 'the cloud'" })),
        "deployed to the cloud"
    );
    let prompt = bed.done(&["tools", "--prompt"]).out;
    assert!(
        prompt.contains("\ndeploy: Deploy the application\n"),
        "{prompt}"
    );
    assert!(
        prompt.contains(
            "Run deploy only after all tests pass.\nNever deploy without user confirmation."
        ),
        "{prompt}"
    );
}

#[test]
fn an_image_as_the_compiled_in_tools_write_it() {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==";
    let body = r"
images = {'seed': {'type': 'image', 'MIMEType': 'image/png', 'Data': 'PNG'},
  'anthropic': {'type': 'image', 'source': {'type': 'base64', 'media_type': 'image/png', 'data': 'PNG'}}}
serve(tool('one'), lambda m: say({'content': [{'type': 'text', 'text': 'Screenshot captured:'}, images[m['params']['how']]]}))
"
    .replace("PNG", png);
    let bed = Bed::with(&[("p", &body)]);
    for how in ["seed", "anthropic"] {
        let arguments = json!({ "how": how }).to_string();
        let ran = bed.done(&["call", "one", &arguments, "--json"]);
        let reply: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(reply["content"][0]["text"], "Screenshot captured:", "{how}");
        assert_eq!(reply["content"][1]["type"], "image", "{how}: {reply}");
        assert_eq!(reply["is_error"], false, "{how}");
    }
}
