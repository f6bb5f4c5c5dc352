//! The plugins, tools and settings that the seed documents print, run as printed.

use crate::bed::{Bed, Ended};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A Bash plugin that answers only the printed message, with these texts verbatim.
fn printing(definition: &str, result: &str) -> String {
    let describe = include_str!("../seeds/describe.json").trim_end();
    format!(
        "#!/bin/bash
while IFS= read -r line; do
  case $line in
  '{describe}') cat <<'END'
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
    let printed: Value = serde_json::from_str(include_str!("../seeds/call.json")).unwrap();
    for (result, expected, is_error) in [
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
        let answer = bed.call("my_tool", &printed["params"]);
        assert_eq!(
            (answer.text.as_str(), answer.is_error),
            (expected, is_error)
        );
        let got = std::fs::read_to_string(bed.work("got-printed")).unwrap();
        // The line has everything in the printed one, and the tool's name.
        let mut call: Value = serde_json::from_str(&got).unwrap();
        let line = call.as_object_mut().unwrap();
        assert_eq!(line.remove("name"), Some(json!("my_tool")));
        assert!(line["call_id"].as_str().is_some_and(|id| !id.is_empty()));
        line.insert("call_id".to_owned(), printed["call_id"].clone());
        assert_eq!(call, printed);
        let (tools, _) = bed.tools();
        let tool = tools.iter().find(|tool| tool["name"] == "my_tool").unwrap();
        let printed: Value = serde_json::from_str(definition).unwrap();
        assert_eq!(tool["description"], printed["description"]);
    }
}

#[test]
fn several_tools_of_one_plugin() {
    let tools = include_str!("../seeds/several.json").replace("{...}", "{}");
    let bed = Bed::new();
    bed.program(
        "plugins/p",
        printing(&tools, include_str!("../seeds/result.json")),
    );
    bed.configure(&json!({ "tools": { "plugins": [bed.plugin("p")] } }));
    for tool in ["tool_a", "tool_b"] {
        assert_eq!(bed.reply_text(tool, &json!({})), "Result: ...");
    }
}

#[test]
fn the_python_plugin_and_the_program_with_an_argument() {
    let bed = Bed::new();
    let serve = "serve(tool(NAME), lambda m: text(' '.join(sys.argv[1:]) or 'no arguments'))";
    for (file, name) in [("my_tool.py", "one"), ("my_tool", "two")] {
        let program = bed.python(file, &serve.replace("NAME", &format!("'{name}'")));
        let text = std::fs::read(program).unwrap();
        bed.program(&format!("work/plugins/{file}"), text);
    }
    bed.write(
        "work/haft.yaml",
        include_str!("../seeds/python_plugin.yaml"),
    );
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("one", &json!({})), "no arguments");
    assert_eq!(bed.reply_text("two", &json!({})), "--verbose");
    let (names, beside) = bed.names();
    assert_eq!(
        names,
        ["read", "bash", "edit", "write", "one", "two"],
        "{beside}"
    );
}

/// Builds a Go program from these files, if Go is installed.
fn built(module: &str, files: &[(&str, String)]) -> Option<Bed> {
    if !Path::new("/usr/bin/go").exists() {
        return None;
    }
    let bed = Bed::new();
    for (path, text) in files {
        bed.write(&format!("source/{path}"), text.replace("MODULE", module));
    }
    bed.write("source/go.mod", format!("module {module}\n\ngo 1.18\n"));
    bed.write("work/plugins/.keep", "");
    let built = Command::new("/usr/bin/go")
        .args(["build", "-o", "../work/plugins/my-tool", "."])
        .current_dir(bed.path("source"))
        .env("HOME", bed.path("home"))
        .env("GOCACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/go-cache"))
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    Some(bed)
}

/// The packages that the printed tools import.
fn packages() -> [(&'static str, String); 2] {
    let tools = include_str!("../seeds/go/host/tools.go");
    [
        (
            "pkg/ai/ai.go",
            include_str!("../seeds/go/host/ai.go").to_owned(),
        ),
        (
            "pkg/tools/tools.go",
            tools.replace("INTERFACE", include_str!("../seeds/go/interface.txt")),
        ),
    ]
}

#[test]
fn the_weather_tool_in_go() {
    let main = include_str!("../seeds/go/host/weather_main.go");
    let register = include_str!("../seeds/go/register_weather.txt");
    let mut files = packages().to_vec();
    files.extend([
        (
            "mytools/tool.go",
            include_str!("../seeds/go/weather.go").to_owned(),
        ),
        (
            "mytools/service.go",
            include_str!("../seeds/go/host/weather.go").to_owned(),
        ),
        ("main.go", main.replace("REGISTER", register)),
    ]);
    let Some(bed) = built("github.com/nickcecere/agent", &files) else {
        return;
    };
    let config =
        json!({ "tools": { "preset": "none", "plugins": [{ "path": "./plugins/my-tool" }] } });
    bed.project(&config);
    bed.done(&["trust", "--yes"]);
    let berlin = json!({ "city": "Berlin" });
    assert_eq!(
        bed.reply_text("get_weather", &berlin),
        "Weather in Berlin: 12°C, cloudy"
    );
    let warm = json!({ "city": "Berlin", "units": "fahrenheit" });
    assert_eq!(
        bed.reply_text("get_weather", &warm),
        "Weather in Berlin: 54°F, cloudy"
    );
    // The line on the page, and the tool is not called.
    let invalid = bed.call("get_weather", &json!({ "units": "celsius" }));
    assert!(invalid.is_error);
    assert_eq!(
        invalid.text.lines().next(),
        Some("validation error: missing required parameter \"city\"")
    );
    let kelvin = bed.call(
        "get_weather",
        &json!({ "city": "Berlin", "units": "kelvin" }),
    );
    assert!(
        kelvin.is_error && kelvin.text.starts_with("validation error: "),
        "{kelvin:?}"
    );
    let gone = bed.call("get_weather", &json!({ "city": "Atlantis" }));
    assert!(
        gone.is_error && gone.text.contains("city not found: Atlantis"),
        "{gone:?}"
    );
    // Progress arrives while it works.
    let mut session = bed.session(&[]);
    let number = session.ask("get_weather", &berlin);
    session.reply(number);
    let reported = session
        .notifications
        .iter()
        .map(|message| message["params"]["message"].as_str());
    let reported: Vec<&str> = reported.flatten().collect();
    assert!(
        reported.contains(&"Fetching weather for Berlin..."),
        "{reported:?}"
    );
}

#[test]
fn the_statistics_tool_and_the_fragments_in_go() {
    let returning = include_str!("../seeds/go/returning.txt").split("\n\n");
    let cases = returning
        .enumerate()
        .map(|(at, text)| format!("case {}:\n{text}\n", at + 1));
    // The ellipsis leaves out the code that uses these two variables.
    let progress = include_str!("../seeds/go/progress.txt").replace(
        "        // …\n",
        "        // …\n        _, _ = result, err\n",
    );
    let fragments = include_str!("../seeds/go/host/fragments.go")
        .replace("PROGRESS", &progress)
        .replace("PARAMETERS", include_str!("../seeds/go/parameters.txt"))
        .replace("RETURNING", &cases.collect::<String>())
        .replace("REGISTER", include_str!("../seeds/go/register.txt"));
    let mut files = packages().to_vec();
    files.extend([
        ("stats.go", include_str!("../seeds/go/stats.go").to_owned()),
        ("fragments.go", fragments),
    ]);
    let Some(bed) = built("github.com/bitop-dev/agent", &files) else {
        return;
    };
    let config =
        json!({ "tools": { "preset": "none", "plugins": [{ "path": "./plugins/my-tool" }] } });
    bed.project(&config);
    bed.done(&["trust", "--yes"]);
    let json = |tool: &str, arguments: Value| -> Value {
        let arguments = arguments.to_string();
        let ran = bed.haft(&["call", tool, &arguments, "--json"]);
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let stats = json("stats", json!({ "numbers": [1, 2, 3, 4, 5] }));
    assert_eq!(
        stats["content"][0]["text"],
        "n=5  min=1.00  max=5.00  mean=3.00  stddev=1.41"
    );
    assert_eq!(
        (&stats["details"]["n"], &stats["details"]["max"]),
        (&json!(5), &json!(5))
    );
    let exact = bed.reply_text("stats", &json!({ "numbers": [1.5, 2], "precision": 1 }));
    assert_eq!(exact, "n=2  min=1.5  max=2.0  mean=1.8  stddev=0.2");
    for (numbers, words) in [
        (json!([]), "numbers must be a non-empty array"),
        (json!([1, "two"]), "element 1 is not a number"),
    ] {
        let answer = bed.call("stats", &json!({ "numbers": numbers }));
        assert!(answer.is_error && answer.text.contains(words), "{answer:?}");
    }
    // The four results of the page, one after the other.
    let result = |number: u32| json("another_tool", json!({ "city": "Berlin", "count": number }));
    assert_eq!(result(1)["content"][0]["text"], "The answer is 42");
    let error = result(2);
    assert_eq!(error["is_error"], true);
    let words = error["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("city not found: Berlin"), "{words}");
    let blocks = result(3);
    assert_eq!(
        blocks["content"],
        json!([{ "type": "text", "text": "Result: ..." }])
    );
    assert_eq!(blocks["details"]["raw_value"], 42);
    assert_eq!(blocks["details"]["unit"], "celsius");
    let image = result(4);
    assert_eq!(image["content"][0]["text"], "Screenshot captured:");
    assert_eq!(image["content"][1]["type"], "image", "{image}");
    // The parameters of the page.
    let (tools, _) = bed.tools();
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "another_tool")
        .unwrap();
    assert_eq!(
        tool["parameters"],
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "City name, e.g. 'Berlin'" },
                "units": { "type": "string", "description": "Temperature units", "enum": ["celsius", "fahrenheit"] },
                "count": { "type": "integer", "description": "How many results to return (default 5)" },
            },
            "required": ["city"],
            // Added by haft: arguments that the schema does not list are refused.
            "additionalProperties": false,
        })
    );
    let mut session = bed.session(&[]);
    let number = session.ask("my_tool", &json!({ "urls": ["a", "b"] }));
    assert_eq!(
        session.reply(number)["result"]["content"][0]["text"],
        "fetched"
    );
    let reported = session
        .notifications
        .iter()
        .map(|message| message["params"]["message"].as_str());
    let reported: Vec<&str> = reported.flatten().collect();
    assert!(reported.contains(&"[2/2] fetching b…"), "{reported:?}");
}

#[test]
fn the_go_plugin_registered_by_path_and_args_alone() {
    let source = include_str!("../seeds/go/plugin.go").to_owned();
    let Some(bed) = built("example", &[("main.go", source)]) else {
        return;
    };
    bed.write("work/haft.yaml", include_str!("../seeds/registered.yaml"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(
        bed.reply_text("my_plugin_tool", &json!({ "input": "hello" })),
        "Processed: hello"
    );
    // The other one is not installed here, which is reported and affects nothing else.
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
        bed.write(&format!("work/examples/tools/{file}"), text);
    }
    bed.write("work/haft.yaml", include_str!("../seeds/examples.yaml"));
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
    let ran = Ended::of(
        Command::new("bash")
            .args(["-c", include_str!("../seeds/by_hand.sh")])
            .current_dir(root),
    );
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
    bed.write(
        "home/.config/haft/haft.yaml",
        format!("tools:\n  {printed}"),
    );
    let mut command = bed.command(&["call", "one"]);
    let ran = Ended::of(command.env("MY_API_KEY", "k123"));
    assert_eq!(
        ran.out, "--api-key k123 --endpoint https://api.example.com\n",
        "{ran:?}"
    );
}

#[test]
fn the_lua_record() {
    let bed = Bed::new();
    let printed = include_str!("../seeds/record.lua");
    bed.write("work/tools/mytool.lua", format!("return {printed}"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(bed.reply_text("mytool", &json!({})), "result");
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
    bed.write("work/tools/deploy.md", include_str!("../seeds/deploy.md"));
    bed.done(&["trust", "--yes"]);
    assert_eq!(
        bed.reply_text("deploy", &json!({ "args": "to 'the cloud'" })),
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
