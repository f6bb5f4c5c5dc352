//! Other sessions, earlier messages, plan mode, effort, and what the model thought.

use crate::seat::{Seat, Seated};
use serde_json::{Value, json};

fn say(text: &str) -> Value {
    json!({ "say": text })
}

/// The session that the user went to.
fn next(seat: &mut Seated) -> Value {
    assert_eq!(seat.ended(), 70);
    assert!(seat.is_given_back());
    serde_json::from_slice(&std::fs::read(seat.state("next.json")).unwrap()).unwrap()
}

fn existing(id: &str) -> Value {
    json!({ "id": id, "planning": false, "prompt": null, "draft": "" })
}

#[test]
fn a_session_is_picked_from_a_menu() {
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("/resume\r");
    seat.wait("▸ fix the test");
    seat.keys("docs");
    seat.wait("▸ write the docs");
    seat.keys("\x1b");
    seat.wait_gone("▸");
    seat.keys("/resume\r");
    seat.wait("▸ fix the test");
    seat.keys("\r");
    assert_eq!(next(&mut seat), existing("s1"));
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("/new\r");
    assert_eq!(next(&mut seat)["id"], Value::Null);
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("/fork\r");
    assert_eq!(next(&mut seat), existing("copy"));
    assert_eq!(seat.received(), [json!({ "fork": null })]);
}

#[test]
fn escape_twice_returns_to_an_earlier_message() {
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("\x1b");
    seat.wait("Esc again returns to an earlier message");
    seat.keys("\x1b");
    seat.wait("▸ Then mend it");
    seat.keys("look");
    seat.wait("▸ Look at it");
    seat.keys("\r");
    let expected = json!({
        "id": "copy", "planning": false, "prompt": null, "draft": "Look at it"
    });
    assert_eq!(next(&mut seat), expected);
    assert_eq!(seat.received(), [json!({ "fork": "p1" })]);
    // What was typed before stays, and one Esc alone does nothing.
    let script = json!({ "draft": "Look at it" });
    let mut seat = Seat::new(script).sit();
    seat.wait("› Look at it");
    seat.keys(" again\x1b\x1b");
    seat.wait("› Look at it again");
    assert!(!seat.screen().iter().any(|row| row.contains("▸")));
}

#[test]
fn the_files_can_go_back_too() {
    for (key, received) in [
        (
            "y",
            vec![json!({ "undo_since": "p2" }), json!({ "fork": "p2" })],
        ),
        ("n", vec![json!({ "fork": "p2" })]),
    ] {
        let mut seat = Seat::new(json!({ "has_changes": true })).sit();
        seat.wait("›");
        seat.keys("\x1b");
        seat.wait("Esc again");
        seat.keys("\x1b");
        seat.wait("▸ Then mend it");
        seat.keys("\r");
        seat.wait("undo of all since p2");
        seat.wait("y: undo these changes too, n: keep the files");
        seat.wait("y\u{a0}yes · n\u{a0}no");
        seat.keys(key);
        assert_eq!(next(&mut seat)["draft"], "Then mend it");
        assert_eq!(seat.received(), received);
    }
}

#[test]
fn a_plan_is_shown_edited_and_carried_out() {
    let mut seat = Seat::new(json!({ "prompts": [[say("Hello.")]] })).sit();
    seat.wait("›");
    seat.keys("hi\r");
    seat.wait("Hello.");
    seat.keys("/plan Split the file\r");
    let expected = json!({
        "id": "s2", "planning": true, "prompt": "Split the file", "draft": ""
    });
    assert_eq!(next(&mut seat), expected);

    let script = json!({
        "plan": "# Plan\n\n1. Split *it*.\n",
        "first_prompt": "Split the file\nin two",
        "prompts": [[say("It is planned.")]]
    });
    let mut seat = Seat::new(script)
        .with("EDITOR", "sed -i s/Split/Cut/")
        .sit();
    seat.wait("› Split the file [1 more line]");
    seat.wait("It is planned.");
    seat.wait("scripted · plan mode");
    seat.keys("/plan\r");
    seat.wait("1. Split it.");
    seat.keys("/plan nonsense\r");
    seat.wait("/plan shows the plan, /plan edit");
    seat.keys("/plan edit\r");
    seat.wait("/plan go carries the plan out");
    seat.keys("/plan go\r");
    let expected = json!({
        "id": "s2", "planning": false, "draft": "",
        "prompt": "Carry out this plan.\n\n# Plan\n\n1. Cut *it*.\n",
    });
    assert_eq!(next(&mut seat), expected);

    let mut seat = Seat::new(json!({ "plan": "" })).sit();
    seat.wait("plan mode");
    seat.keys("/plan go\r");
    seat.wait("there is no plan yet");
    seat.keys("/plan off\r");
    assert_eq!(next(&mut seat)["planning"], false);
}

#[test]
fn effort_is_picked_from_a_menu() {
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("/effort\r");
    seat.wait("▸ low");
    seat.keys("hi\r");
    seat.wait("effort high from now on");
    seat.keys("/effort low\r");
    seat.wait("effort low from now on");
}

#[test]
fn reasoning_is_folded_and_can_be_shown() {
    let script = json!({ "prompts": [[
        { "think": "First this.\n\nThen that." },
        say("Done."),
    ]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("\x14");
    seat.wait("the model has not shown what it thinks");
    seat.keys("go\r");
    seat.wait("Done.");
    seat.wait(" · Ctrl-T shows it");
    assert!(!seat.screen().iter().any(|row| row.contains("First this.")));
    seat.keys("\x14");
    seat.wait("  First this.");
    seat.wait("  Then that.");
}

#[test]
fn a_line_with_a_hash_becomes_an_instruction() {
    for (variable, value) in [("HAFT_TEST", ""), ("TERM", "dumb")] {
        let script = json!({ "prompts": [[say("Done.")]] });
        let mut seat = Seat::new(script).with(variable, value).sit();
        seat.wait("1.2.3");
        seat.keys("# use tabs\r");
        seat.wait("added to AGENTS.md: use tabs");
        // The model learns it with the next prompt.
        seat.keys("go\r");
        seat.wait("Done.");
        let prompt = "I added this to the project's instructions: use tabs\n\ngo";
        assert_eq!(seat.received(), [json!({ "prompt": prompt })]);
    }
}

#[test]
fn plain_lines_have_the_same_commands() {
    let seat = |script: Value| Seat::new(script).with("TERM", "dumb").sit();
    let mut plain = seat(json!({ "plan": "1. Split it.", "first_prompt": "Split",
        "prompts": [[say("It is planned.")]] }));
    plain.wait("> Split");
    plain.wait("It is planned.");
    plain.keys("/effort\r");
    plain.wait("choose with: /effort low|high");
    plain.keys("/effort high\r");
    plain.wait("effort high from now on");
    plain.keys("/plan\r");
    plain.wait("1. Split it.");
    plain.keys("/plan edit\r");
    plain.wait("the plan is in ");
    plain.keys("/plan go\r");
    assert_eq!(
        next(&mut plain)["prompt"],
        "Carry out this plan.\n\n1. Split it."
    );
    let mut plain = seat(json!({}));
    plain.wait("1.2.3");
    plain.keys("/fork\r");
    assert_eq!(next(&mut plain), existing("copy"));
}
