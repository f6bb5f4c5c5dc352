//! The numbered examples run and print the expected output.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test runs the examples as programs, and fails by panicking"
)]

use std::process::Command;

/// Runs an example and returns the last line it prints.
fn last_line(example: &str) -> String {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let program = folder.join("examples").join(example);
    let run = Command::new(&program).output().unwrap_or_else(|error| {
        panic!(
            "{}: {error}; build with: cargo build --examples",
            program.display()
        )
    });
    let error = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{example}: {error}");
    let text = String::from_utf8(run.stdout).unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn each_example_prints_the_expected_line() {
    for (example, last) in [
        ("01_prompt", "I wrote hello.txt."),
        ("02_a_tool_of_your_own", "42"),
        ("03_steer_and_stop", "the second: interrupted"),
        ("04_approvals", "Written. The price is 90."),
        (
            "05_hooks",
            "Some([Text { text: \"the password is [hidden]\" }])",
        ),
        ("06_sessions", "4 messages, the last: Ada."),
        ("07_many_at_once", "100 sessions done"),
    ] {
        assert_eq!(last_line(example), last, "{example}");
    }
}
