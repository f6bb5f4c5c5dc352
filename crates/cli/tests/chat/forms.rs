//! The user fills in a form of a tool.

use crate::seat::{Seat, Seated};
use serde_json::{Value, json};

const KEYS: &str = "y\u{a0}answer · n\u{a0}decline · Esc\u{a0}stop";

fn fields() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Name", "pattern": "^[A-Z]" },
            "colour": { "type": "string", "enum": ["red", "green"], "default": "green" },
            "age": { "type": "integer", "minimum": 18 },
        },
        "required": ["name", "colour"],
    })
}

fn form(with: Value) -> Value {
    json!({ "call": { "tool": "form", "with": with } })
}

fn seat(steps: Value) -> Seat {
    Seat::new(json!({ "prompts": [steps] }))
}

/// A chat with a form on the screen.
fn sit(seat: Seat) -> Seated {
    let mut seat = seat.sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait(KEYS);
    seat
}

/// Waits for the tool's result and checks the answers it got.
fn filled(seat: &mut Seated, expected: &str) {
    seat.wait("● form");
    let filled = std::fs::read_to_string(seat.work("filled")).unwrap();
    assert_eq!(filled, expected);
}

fn usual() -> Seated {
    sit(seat(json!([
        form(json!({ "message": "Who are you?", "fields": fields() })),
        { "say": "Thanks." },
    ])))
}

#[test]
fn fields_are_filled_in_one_by_one() {
    let mut seat = usual();
    let screen = seat.screen();
    let start = screen
        .iter()
        .position(|row| row.contains("form is running"));
    assert_eq!(
        screen[start.unwrap()..][..6],
        [
            "form is running and asks for input:",
            "  message:",
            "  | Who are you?",
            "  fields: Name, colour, age",
            "  your answer goes to form; do not enter passwords or keys",
            "",
        ]
    );
    assert!(
        seat.raw()
            .contains("\x1b]9;haft waits for your answer\x1b\\")
    );
    // Other keys do not answer it, nor does a paste.
    seat.keys("xq\r\t\x1b[200~y\x1b[201~");
    seat.keys("y");
    seat.wait("1/3 Name (required) ›");
    // Errors are shown and can be corrected.
    seat.keys("\r");
    seat.wait("a value is required");
    seat.keys("da\r");
    seat.wait("validation error: ");
    seat.wait("1/3 Name (required) › da");
    seat.keys("\x01A\r");
    seat.wait("2/3 colour (1 red, 2 green; Enter: green)");
    seat.keys("blue\r");
    seat.wait("not one of the options: \"blue\"");
    seat.keys("\x15\r");
    seat.wait("3/3 age (a whole number, at least 18; Enter: skip)");
    seat.keys("17\r");
    seat.wait("expected a number, at least 18");
    seat.keys("\x7f8\r");
    seat.wait("  answered");
    filled(&mut seat, r#"{"name":"Ada","colour":"green","age":18}"#);
    seat.wait("Thanks.");
    seat.wait("/help");
}

#[test]
fn optional_fields_can_be_skipped() {
    let mut seat = usual();
    seat.keys("y");
    seat.wait("1/3 Name");
    seat.paste("Ada");
    seat.wait("› Ada");
    seat.keys("\r");
    seat.wait("2/3 colour");
    seat.keys("1\r");
    seat.wait("3/3 age");
    seat.keys("\r");
    filled(&mut seat, r#"{"name":"Ada","colour":"red"}"#);
}

#[test]
fn one_key_declines_a_form() {
    let mut seat = usual();
    seat.keys("n");
    seat.wait("  declined");
    filled(&mut seat, "Declined");
    seat.wait("Thanks.");
}

#[test]
fn going_back_starts_with_the_first_field() {
    let mut seat = usual();
    seat.keys("y");
    seat.wait("1/3 Name");
    seat.keys("Adda\r");
    seat.wait("2/3 colour");
    seat.keys("re");
    seat.wait("› re");
    seat.keys("\x1b");
    seat.wait(KEYS);
    seat.keys("y");
    seat.wait("1/3 Name (required) › Adda");
    seat.keys("\x15Ada\r");
    seat.wait("› re");
    seat.keys("d\r");
    seat.wait("3/3 age");
    seat.keys("\x1b");
    seat.wait(KEYS);
    seat.keys("n");
    filled(&mut seat, "Declined");
}

#[test]
fn it_can_be_stopped_instead() {
    for keys in ["\x1b", "\x03", "y\x03"] {
        let mut seat = usual();
        seat.keys(keys);
        seat.wait("stopp");
        seat.wait("/help");
        assert!(!seat.raw().contains("Thanks."));
        assert_eq!(seat.received().last().unwrap(), &json!("abort"));
    }
}

#[test]
fn keys_typed_before_are_not_an_answer() {
    let steps = json!([{ "say": "Wait for it." }, "steered", form(json!({ "fields": fields() }))]);
    let mut seat = seat(steps).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Wait for it.");
    seat.keys("now\ryyy");
    seat.wait(KEYS);
    let moment = "one moment: keys typed now do not answer this";
    assert!(seat.raw().contains(moment));
    assert!(!seat.raw().contains("1/3 Name"));
    seat.keys("n");
    filled(&mut seat, "Declined");
}

#[test]
fn a_cancelled_form_disappears() {
    let steps = json!([
        form(json!({ "fields": fields(), "until": "enough" })),
        { "say": "Too late." },
    ]);
    let mut seat = sit(seat(steps));
    seat.keys("y");
    seat.wait("1/3 Name");
    std::fs::write(seat.work("enough"), "").unwrap();
    seat.wait("the question was withdrawn");
    seat.wait("Too late.");
    seat.wait("/help");
    // The input line is back.
    seat.keys("typed");
    seat.wait("› typed");
}

#[test]
fn text_of_a_form_is_sanitized_and_limited() {
    let hostile = "\x1b[2J\u{202e}\nRun it? [y/N] y";
    let choices: Vec<String> = (0..40).map(|n| format!("choice number {n}")).collect();
    let fields = json!({
        "type": "object",
        "properties": { "which": { "title": hostile, "description": hostile, "enum": choices } },
        "required": ["which"],
    });
    let with = json!({ "message": hostile, "fields": fields });
    let mut seat = sit(seat(json!([form(with)])).size(40, 80));
    seat.wait("  | \\x1b[2J\\u{202e}");
    seat.wait("  | Run it? [y/N] y");
    seat.keys("y");
    // It is printed above in full, and the input line shows only its name.
    seat.wait("30 choice number 29, and 10");
    seat.wait("    more; required)");
    seat.wait("1/1 \\x1b[2J\\u{202e} Run it? [y/N] y ›");
    let raw = seat.raw();
    assert!(!raw.contains("\x1b[2J\\u") && !raw.contains('\u{202e}'));
    seat.keys("40\r");
    filled(&mut seat, r#"{"which":"choice number 39"}"#);
}

#[test]
fn a_form_that_cannot_be_shown_is_declined() {
    let many = (0..51).map(|n| (format!("f{n}"), json!({ "type": "string" })));
    let many = json!({ "properties": many.collect::<serde_json::Map<_, _>>() });
    let broken = json!({ "properties": { "a": { "type": 5 } } });
    for (fields, why) in [(many, "the form has 51 fields"), (broken, "cannot be used")] {
        let mut seat = seat(json!([form(json!({ "fields": fields }))])).sit();
        seat.wait("›");
        seat.keys("go\r");
        seat.wait("declined a form from form: ");
        seat.wait(why);
        filled(&mut seat, "Declined");
    }
}

#[test]
fn a_form_in_plain_lines() {
    let steps =
        json!([form(json!({ "message": "Who?", "fields": fields() })), { "say": "Thanks." }]);
    let sit = || {
        let mut seat = seat(steps.clone()).with("TERM", "dumb").sit();
        seat.wait(">");
        seat.keys("go\n");
        seat.wait("Answer? [y/N]");
        seat
    };
    let mut one = sit();
    one.wait("  | Who?");
    one.wait("  fields: Name, colour, age");
    one.wait("  your answer goes to form; do not enter passwords or keys");
    one.keys("y\n");
    one.wait("  1/3 Name (required)");
    one.keys("\n");
    one.wait("  a value is required");
    one.keys("Ada\n");
    one.wait("  2/3 colour (1 red, 2 green; Enter: green)");
    one.keys("\n");
    one.wait("  3/3 age");
    one.keys("old\n");
    one.wait("  not a whole number");
    one.keys("36\n");
    filled(&mut one, r#"{"name":"Ada","colour":"green","age":36}"#);
    one.wait("Thanks.");

    let mut no = sit();
    no.keys("n\n");
    filled(&mut no, "Declined");

    // End of input.
    for before in ["", "y\n"] {
        let mut end = sit();
        end.keys(before);
        if !before.is_empty() {
            end.wait("1/3 Name");
        }
        end.keys("\x04");
        filled(&mut end, "Dismissed");
        end.wait("Thanks.");
        assert_eq!(end.ended(), 0);
    }
}

#[test]
fn a_withdrawn_form_in_plain_lines() {
    let with = json!({ "fields": fields(), "until": "enough" });
    let steps = json!([form(with), "steered"]);
    let mut seat = seat(steps).with("TERM", "dumb").sit();
    seat.wait(">");
    seat.keys("go\n");
    seat.wait("Answer? [y/N]");
    std::fs::write(seat.work("enough"), "").unwrap();
    seat.wait("the question was withdrawn");
    // Input now goes to the agent.
    seat.keys("never mind\n");
    seat.wait("You said: never mind");
}

#[test]
fn fields_that_do_not_fit_together_are_asked_for_again() {
    let mut fields = fields();
    fields["dependentRequired"] = json!({ "age": ["mail"] });
    fields["properties"]["mail"] = json!({ "type": "string" });
    let mut seat = sit(seat(json!([form(json!({ "fields": fields }))])));
    seat.keys("y");
    seat.wait("1/4 Name");
    seat.keys("Ada\r");
    seat.wait("2/4 colour");
    seat.keys("\r");
    seat.wait("3/4 age");
    seat.keys("36\r");
    seat.wait("4/4 mail");
    seat.keys("\r");
    seat.wait("start over: ");
    seat.wait("1/4 Name (required) › Ada");
    seat.keys("\r");
    seat.wait("2/4 colour");
    seat.keys("\r");
    seat.wait("› 36");
    seat.keys("\r");
    seat.wait("4/4 mail");
    seat.keys("a@b\r");
    filled(
        &mut seat,
        r#"{"name":"Ada","colour":"green","age":36,"mail":"a@b"}"#,
    );
}

#[test]
fn a_small_screen_shows_the_name_of_the_field() {
    let fields = json!({
        "properties": { "it": { "type": "string", "description": "word ".repeat(20) } },
    });
    let mut seat = sit(seat(json!([form(json!({ "fields": fields }))])).size(9, 40));
    seat.keys("y");
    seat.wait("1/1 it ›");
    seat.keys("this");
    seat.wait("1/1 it › this");
    seat.keys("\r");
    filled(&mut seat, r#"{"it":"this"}"#);
}
