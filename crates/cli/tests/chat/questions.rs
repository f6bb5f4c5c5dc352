//! Approval questions.

use crate::seat::{Seat, Seated};
use rustix::process::Signal;
use serde_json::{Value, json};

const KEYS: &str = "y\u{a0}approve · n\u{a0}reject · e\u{a0}edit";

fn write(content: &str) -> Value {
    json!({ "call": { "tool": "write", "with": { "path": "a.txt", "content": content } } })
}

fn asked(steps: Value) -> Seat {
    Seat::new(json!({ "ask": ["write", "bash"], "prompts": [steps] }))
}

fn sit(seat: Seat) -> Seated {
    let mut seat = seat.sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait(KEYS);
    seat
}

#[test]
fn yes_runs_it() {
    let mut seat = sit(asked(json!([write("hello\n"), { "say": "Thanks." }])));
    let screen = seat.screen();
    let start = screen
        .iter()
        .position(|row| row.contains("Allow write"))
        .unwrap();
    let rows = screen[start..]
        .iter()
        .map(|row| row.trim_matches(['│', ' ']));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            "Allow write to change this file?",
            "| a.txt",
            "content: hello",
            "rule: { allow: write, path: a.txt } (for this session)",
            "asked by: haft.yaml:2 { ask: write }, about write a.txt",
            "y\u{a0}approve · n\u{a0}reject · e\u{a0}edit · s\u{a0}for\u{a0}this\u{a0}session · v\u{a0}show\u{a0}all · Esc\u{a0}stop",
            screen[screen.len() - 2].as_str(),
            "scripted · sandbox full · 1.2k tokens · $0.01",
        ]
    );
    assert!(!seat.work("a.txt").exists());
    // The bell, and a notification.
    assert!(
        seat.raw()
            .contains("\x07\x1b]9;haft waits for your approval\x1b\\")
    );
    // Other keys do not answer it, nor does a paste.
    seat.keys("xq\r\t\x1b[200~y\x1b[201~");
    seat.keys("y");
    seat.wait("approved");
    seat.wait("● write a.txt · new, 1 line");
    seat.wait("Thanks.");
    assert_eq!(
        std::fs::read_to_string(seat.work("a.txt")).unwrap(),
        "hello\n"
    );
}

#[test]
fn no_can_say_why() {
    let mut seat = sit(asked(json!([write("x"), write("y")])));
    seat.keys("n");
    seat.wait("why not");
    seat.keys("not in this folder\r");
    seat.wait("the user said no: not in this folder");
    seat.wait("content: y");
    seat.wait(KEYS);
    seat.keys("n\r");
    seat.wait("/help");
    assert!(!seat.work("a.txt").exists());
}

#[test]
fn the_arguments_can_be_others() {
    let mut seat = sit(asked(json!([write("x")])));
    seat.keys("e");
    seat.wait("{\"path\":\"a.txt\",\"content\":\"x\"}");
    seat.keys("\x7f");
    seat.keys("\r");
    seat.wait("not valid JSON");
    seat.keys("\x1b");
    seat.wait(KEYS);
    seat.keys("e");
    seat.wait("arguments (");
    seat.keys("\x15{\"content\":\"other\"}\r");
    seat.wait("approved with other arguments");
}

#[test]
fn the_users_editor_changes_arguments() {
    let editor = "sed -i s/before/after/";
    let mut seat = sit(asked(json!([write("before")])).with("EDITOR", editor));
    seat.keys("e");
    seat.wait("approved with other arguments");
    seat.wait("/help");
    // The input line is back.
    seat.keys("typed");
    seat.wait("› typed");
    let mut seat = sit(asked(json!([write("before")])).with("EDITOR", "false"));
    seat.keys("e");
    seat.wait("nothing was changed");
    seat.wait(KEYS);
}

#[test]
fn a_rule_can_allow_more_for_the_session() {
    let mut seat = sit(asked(json!([write("x")])));
    seat.keys("s");
    seat.wait("approved for this session");
    seat.wait("● write a.txt");
}

#[test]
fn keys_typed_before_are_not_an_answer() {
    let mut seat = asked(json!([{ "say": "Wait for it." }, "steered", write("x")])).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Wait for it.");
    // The user is typing when the question appears.
    seat.keys("now\ryyy");
    seat.wait(KEYS);
    assert!(
        seat.raw()
            .contains("one moment: keys typed now do not answer this")
    );
    assert!(!seat.work("a.txt").exists());
    seat.keys("n\r");
    seat.wait("refused");
    assert!(!seat.work("a.txt").exists());
}

#[test]
fn it_can_be_stopped_instead() {
    for key in ["\x1b", "\x03"] {
        let mut seat = sit(asked(json!([write("x"), { "say": "not reached" }])));
        seat.keys(key);
        seat.wait("stopped");
        seat.wait("›");
        assert!(!seat.raw().contains("not reached"));
        assert!(!seat.work("a.txt").exists());
        assert_eq!(seat.received().last().unwrap(), &json!("abort"));
    }
}

#[test]
fn the_question_shows_exactly_what_runs() {
    let command = format!(
        "echo \x1b[2J\u{202e}{}; rm -rf x\ny approve",
        " ".repeat(500)
    );
    let steps = json!([{ "call": { "tool": "bash", "with": { "command": command } } }]);
    let mut seat = sit(asked(steps).size(40, 80));
    seat.wait("  | echo \\x1b[2J\\u{202e}");
    seat.wait("; rm -rf x");
    seat.wait("  | y approve");
    seat.wait("not ASCII: \\u{202e} U+202E");
    let raw = seat.raw();
    assert!(!raw.contains("\x1b[2J\\u") && !raw.contains('\u{202e}'));
}

#[test]
fn long_arguments_are_shown_when_asked_for() {
    let long: String = (0..200).map(|number| format!("row {number}\n")).collect();
    let mut seat = sit(asked(json!([write(&long)])));
    assert!(!seat.raw().contains("row 150"));
    // Never more than a third of the screen.
    let screen = seat.screen();
    let top = screen.iter().position(|row| row.starts_with('╭')).unwrap();
    let bottom = screen.iter().position(|row| row.starts_with('╰')).unwrap();
    assert!(bottom - top < 8, "{screen:#?}");
    seat.wait("more lines: press v");
    seat.wait("v\u{a0}show\u{a0}all");
    seat.keys("v");
    seat.wait("  | row 199");
    seat.wait_gone("show\u{a0}all");
    assert!(seat.raw().contains("row 150"));
    seat.keys("y");
    seat.wait("new, 200 lines");
}

#[test]
fn a_signal_in_the_middle_gives_the_terminal_back() {
    let mut seat = sit(asked(json!([write("x")])));
    seat.signal(Signal::TERM);
    assert_eq!(seat.ended(), 128 + 15);
    assert!(seat.is_given_back());
    assert!(!seat.work("a.txt").exists());
}

#[test]
fn at_the_end_of_input_a_question_stays_pending() {
    let steps = json!([write("x"), { "say": "Another day." }]);
    let mut seat = asked(steps).with("TERM", "dumb").sit();
    seat.wait(">");
    seat.keys("go\n");
    seat.wait("Run it? [y/N]");
    seat.keys("\x04");
    seat.wait("Another day.");
    assert_eq!(seat.ended(), 0);
    assert!(!seat.work("a.txt").exists());
}
