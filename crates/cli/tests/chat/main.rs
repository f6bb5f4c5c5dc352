//! The chat on a real terminal: a pty on one side, a terminal emulator on the other, and
//! between them the chat with a scripted agent. Its tools, their events and questions are
//! real.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::exit,
    reason = "tests fail loudly, and look at the machine themselves"
)]

mod changes;
mod forms;
mod looks;
mod questions;
mod real;
mod script;
mod seat;
mod sessions;
mod talk;

use seat::Seat;

/// Environment variable that makes this test the chat itself.
const STAGE: &str = "HAFT_TEST_STAGE";

/// Also the program that the other tests run: with the variable set it is the chat.
#[test]
fn a_chat_starts_and_ends() {
    if let Some(script) = std::env::var_os(STAGE) {
        std::process::exit(script::play(script.as_ref()));
    }
    let mut seat = Seat::new(serde_json::json!({})).sit();
    seat.wait("›");
    assert_eq!(
        seat.screen(),
        [
            "haft 1.2.3 · scripted · /work · sandbox full",
            "a note on trust",
            "",
            &format!("╭{}╮", "─".repeat(78)),
            "│ › Ask, or type / for commands, @ for files, ! for the shell                  │",
            &format!("╰{}╯", "─".repeat(78)),
            " scripted · sandbox full · /help"
        ]
    );
    seat.keys("exit\r");
    assert_eq!(seat.ended(), 0);
    // No prompt was sent, so there is nothing to resume.
    assert_eq!(
        seat.screen(),
        [
            "haft 1.2.3 · scripted · /work · sandbox full",
            "a note on trust"
        ]
    );
}
