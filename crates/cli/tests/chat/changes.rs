//! `/changes`, `/undo` and `/redo`.

use crate::seat::{Seat, Seated};
use serde_json::{Value, json};

const KEYS: &str = "y\u{a0}yes · n\u{a0}no";

fn sit(seat: Seat) -> Seated {
    let mut seat = seat.sit();
    seat.wait("›");
    seat
}

/// Undos and redos of the user.
fn done(seat: &Seated) -> Vec<Value> {
    let mut received = seat.received();
    received.retain(|one| one.get("undo").is_some() || one.get("redo").is_some());
    received
}

#[test]
fn an_undo_is_previewed_and_needs_a_yes() {
    let mut seat = sit(Seat::new(json!({})));
    seat.keys("/undo c1\r");
    seat.wait(KEYS);
    let screen = seat.screen();
    let start = screen
        .iter()
        .position(|row| row.contains("Undo this?"))
        .unwrap();
    let rows = screen[start + 1..start + 3].iter();
    let rows: Vec<&str> = rows.map(|row| row.trim_matches(['│', ' '])).collect();
    assert_eq!(rows, ["undo of c1", "remove   new.txt"]);
    assert_eq!(done(&seat), [] as [Value; 0]);
    // Neither Esc nor other keys are a yes.
    seat.keys("ae\x1b");
    seat.wait("nothing was changed");
    seat.keys("/undo c2\r");
    seat.wait(KEYS);
    seat.keys("n");
    seat.wait_gone(KEYS);
    assert_eq!(done(&seat), [] as [Value; 0]);
    seat.keys("/undo c3\r");
    seat.wait(KEYS);
    seat.keys("y");
    seat.wait("undid c3: 1 file");
    seat.keys("/redo\r");
    seat.wait(KEYS);
    seat.keys("y");
    seat.wait("redid c1: 1 file");
    assert_eq!(
        done(&seat),
        [json!({ "undo": "c3" }), json!({ "redo": true })]
    );
}

#[test]
fn an_undo_that_is_not_possible_asks_nothing() {
    let mut seat = sit(Seat::new(json!({})));
    seat.keys("/undo nothing\r");
    seat.wait("nothing to undo");
    assert!(!seat.screen().join("\n").contains(KEYS));
}

#[test]
fn a_diff_has_colours() {
    let mut seat = sit(Seat::new(json!({})));
    seat.keys("/changes a.txt\r");
    seat.wait("changes of a.txt");
    seat.wait("+new");
    assert_ne!(seat.colour("-old"), seat.colour("changes of"));
    assert_ne!(seat.colour("-old"), seat.colour("+new"));
}

#[test]
fn without_a_screen_a_second_command_confirms() {
    let mut seat = Seat::new(json!({})).with("TERM", "dumb").sit();
    seat.wait(">");
    seat.keys("/undo yesterday.txt\r");
    seat.wait("to do this: /undo yes yesterday.txt");
    assert_eq!(done(&seat), [] as [Value; 0]);
    seat.keys("/undo yes yesterday.txt\r");
    seat.wait("undid yesterday.txt: 1 file");
    seat.keys("/redo\r");
    seat.wait("to do this: /redo yes");
    seat.keys("/redo yes\r");
    seat.wait("redid c1: 1 file");
    assert_eq!(
        done(&seat),
        [json!({ "undo": "yesterday.txt" }), json!({ "redo": true })]
    );
}
