//! The examples print what they should.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test runs the examples as programs, and fails by panicking"
)]

use std::path::PathBuf;
use std::process::Command;

fn output(example: &str) -> String {
    let mut folder: PathBuf = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let program = folder.join("examples").join(example);
    let output = Command::new(&program)
        .env("OPENAI_API_KEY", "canary")
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}; build with: cargo build --examples",
                program.display()
            )
        });
    assert!(
        output.status.success(),
        "{example}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn call_a_tool() {
    let text = output("call_a_tool");
    assert!(text.contains("write: Successfully wrote 8 bytes to notes.txt\nok: one\ntwo\nerror: old_text not found"), "{text}");
}

#[test]
fn get_weather() {
    let text = output("get_weather");
    assert!(
        text.contains(
            "… Fetching weather for Berlin...\nWeather in Berlin: 53°F, cloudy {\"raw_value\":11.5}\n"
        ),
        "{text}"
    );
    assert!(text.contains("city not found: Atlantis"), "{text}");
    assert!(
        text.contains("validation error: missing required parameter \"city\""),
        "{text}"
    );
}

#[test]
fn stats() {
    let text = output("stats");
    assert!(
        text.starts_with("n=5  min=1.00  max=5.00  mean=3.00  stddev=1.41\n"),
        "{text}"
    );
    assert!(text.ends_with("3.5\n"), "{text}");
}

#[test]
fn custom_backend() {
    let text = output("custom_backend");
    assert!(text.contains("src/main.rs:1:fn main() { run() }"), "{text}");
    assert!(
        text.ends_with(
            "log: created, 13 bytes to /src/main.rs\nlog: replaced, 20 bytes to /src/main.rs\n"
        ),
        "{text}"
    );
}

#[test]
fn a_tree_of_backends() {
    let text = output("a_tree_of_backends");
    let found = r#""result":"/main.py:1:print('think')\n/notes/plan.md:1:1. Think""#;
    assert!(text.contains(found), "{text}");
    assert!(text.contains(r#""times":2"#), "{text}");
    assert!(text.ends_with("on the disk: 1\n"), "{text}");
}

#[test]
fn use_a_plugin() {
    let text = output("use_a_plugin");
    assert!(text.contains("mean: 2.0000"), "{text}");
    assert!(text.ends_with("added: sys_info\n"), "{text}");
}

#[test]
fn custom_executor() {
    let text = output("custom_executor");
    assert!(text.starts_with("nice: nice\n"), "{text}");
    // Five lower than the niceness of the test itself.
    let own: i32 = {
        let ran = Command::new("nice").output().unwrap();
        String::from_utf8(ran.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let lowered = (own + 5).min(19);
    assert!(text.contains(&format!("\n{lowered}\n")), "{text}");
    assert!(text.ends_with("left out: bash\n"), "{text}");
}

#[test]
fn run_a_command() {
    let text = output("run_a_command");
    assert!(
        text.starts_with("$ echo hello; exit 3\nhello\n\nExit code: 3\n"),
        "{text}"
    );
    assert!(text.contains("cannot touch '/usr/nothing'"), "{text}");
    assert!(text.contains("$ echo $OPENAI_API_KEY\n\n"), "{text}");
}
