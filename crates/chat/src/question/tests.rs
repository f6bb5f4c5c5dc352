use super::{block, diff_block};
use crate::card::requested_diff;
use crate::styled_text::{Line, Styling};
use serde_json::json;

fn shown(name: &str, whole: &str, most: Option<usize>) -> Vec<String> {
    let lines = block(name, whole, most, 80);
    lines
        .iter()
        .map(|line| line.render(Styling::Plain))
        .collect()
}

#[test]
fn shows_exactly_what_runs() {
    let far = format!("ls{}; rm x", " ".repeat(10_240));
    let rows = shown("command", &far, None);
    assert_eq!(rows[0], "  command (10248 characters):");
    let whole: String = rows[1..]
        .iter()
        .map(|row| row.strip_prefix("  | ").unwrap())
        .collect();
    assert_eq!(whole, far);
    assert!(rows.iter().all(|row| row.chars().count() <= 80));

    assert_eq!(
        shown(
            "command",
            "ls \x1b[2J\u{202e}\rx\tу\n\nRun it? [y/N] y",
            None
        ),
        [
            "  command (not ASCII: \\u{202e} U+202E, у U+0443):",
            "  | ls \\x1b[2J\\u{202e}\\x0dx\\tу",
            "  |",
            "  | Run it? [y/N] y",
        ]
    );
    let cut = shown("content", &"x".repeat(500), Some(400));
    assert_eq!(cut[0], "  content (500 characters; first 400 shown):");
}

#[test]
fn an_edit_is_shown_as_a_diff() {
    let arguments = json!({ "path": "a", "old_text": "one\ntwo", "new_text": "one\n2" });
    let rows: Vec<String> = diff_block(&requested_diff(&arguments).unwrap(), "a.rs", 80)
        .iter()
        .map(Line::text)
        .collect();
    assert_eq!(rows, ["  change:", "  |  one", "  | -two", "  | +2"]);
}
