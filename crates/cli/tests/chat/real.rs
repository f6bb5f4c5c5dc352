//! The command itself: the chat with the real agent and a scripted model.

use crate::seat::Seat;
use haft_testing::bed::Bed;
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::json;

struct Stage {
    bed: Bed,
    model: Scripted,
}

fn stage(turns: Vec<Turn>) -> Stage {
    let model = Scripted::start(turns);
    let bed = Bed::new(env!("CARGO_BIN_EXE_haft"), env!("CARGO_TARGET_TMPDIR"));
    bed.user(&format!(
        "provider: openai-completions\nmodel: scripted\nbase_url: \"{}\"\napi_key: key\n",
        model.url()
    ));
    Stage { bed, model }
}

fn write(text: &str) -> Turn {
    let arguments = json!({ "path": "notes.txt", "content": text });
    ModelReply::calling(text.trim(), "write", &arguments).into()
}

impl Stage {
    /// Texts of the user that the model received last.
    fn prompts(&self) -> Vec<String> {
        let request = self.model.received().last().unwrap().json();
        let messages = request["messages"].as_array().unwrap().iter();
        let prompts = messages.filter(|message| message["role"] == "user");
        prompts
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.bed.work("notes.txt")).unwrap_or_default()
    }
}

#[test]
fn an_earlier_message_takes_the_files_and_the_conversation_back() {
    let stage = stage(vec![
        write("one\n"),
        Turn::text("Written once."),
        write("two\n"),
        Turn::text("Written again."),
        Turn::text("Something else."),
    ]);
    let mut seat = Seat::real(&stage.bed).sit();
    seat.wait("›");
    seat.keys("Write one\r");
    seat.wait("Written once.");
    seat.keys("Write two\r");
    seat.wait("Written again.");
    assert_eq!(stage.notes(), "two\n");
    seat.keys("\x1b");
    seat.wait("Esc again");
    seat.keys("\x1b");
    seat.wait("▸ Write two");
    seat.keys("\r");
    seat.wait("y: undo these changes too");
    seat.wait("y\u{a0}yes");
    seat.keys("y");
    // The message is in the editor again, after the conversation before it.
    seat.wait("│ › Write two");
    let screen = seat.screen();
    let resumed = screen.iter().position(|row| row.contains("(4 messages)"));
    let shown = &screen[resumed.unwrap()..];
    assert!(shown.contains(&"Written once.".to_owned()), "{shown:?}");
    assert!(!shown.contains(&"Written again.".to_owned()), "{shown:?}");
    assert_eq!(stage.notes(), "one\n");
    seat.keys(", but differently\r");
    seat.wait("Something else.");
    let prompts = stage.prompts();
    assert_eq!(prompts.first().unwrap(), "Write one");
    assert!(
        prompts
            .last()
            .unwrap()
            .ends_with("Write two, but differently"),
        "{prompts:?}"
    );
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    seat.keys("exit\r");
    assert_eq!(seat.ended(), 0);
    // The session that was left is kept.
    let listed = stage.bed.says(&["sessions", "list", "--json"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn a_plan_is_made_without_writing_and_then_carried_out() {
    let stage = stage(vec![
        write("too early\n"),
        Turn::text("1. Write the notes."),
        write("as planned\n"),
        Turn::text("All done."),
    ]);
    let mut seat = Seat::real(&stage.bed).sit();
    seat.wait("›");
    seat.keys("/plan Keep notes\r");
    seat.wait("1. Write the notes.");
    // Said when the run is over.
    seat.wait("plan:");
    seat.wait("plan mode");
    assert_eq!(stage.notes(), "");
    let plans = stage.bed.state("plans");
    let files = || std::fs::read_dir(&plans).unwrap().count();
    assert_eq!(files(), 1);
    seat.keys("/plan go\r");
    seat.wait("All done.");
    assert_eq!(stage.notes(), "as planned\n");
    let prompts = stage.prompts();
    let last = prompts.last().unwrap();
    assert!(
        last.contains("Carry out this plan.\n\n1. Write the notes."),
        "{last}"
    );
    seat.keys("exit\r");
    assert_eq!(seat.ended(), 0);
    // A plan goes with its session.
    for line in stage.bed.says(&["sessions", "list", "--json"]).lines() {
        let session: serde_json::Value = serde_json::from_str(line).unwrap();
        stage.bed.says(&[
            "sessions",
            "delete",
            "--yes",
            session["id"].as_str().unwrap(),
        ]);
    }
    assert_eq!(files(), 0);
}

#[test]
fn a_line_with_a_hash_is_in_the_next_session_too() {
    let stage = stage(vec![Turn::text("Hello."), Turn::text("Hello again.")]);
    let mut seat = Seat::real(&stage.bed).sit();
    seat.wait("›");
    seat.keys("# Indent with tabs\r");
    seat.wait("added to AGENTS.md: Indent with tabs");
    let text = std::fs::read_to_string(stage.bed.work("AGENTS.md")).unwrap();
    assert!(text.ends_with("Indent with tabs\n"), "{text}");
    seat.keys("/new\r");
    seat.until("a new session", |rows| {
        rows.iter().filter(|row| row.starts_with("haft ")).count() == 2
            && rows.iter().any(|row| row.starts_with("│ › Ask"))
    });
    seat.keys("hi\r");
    seat.wait("Hello.");
    let request = stage.model.received().last().unwrap().json().to_string();
    assert!(request.contains("Indent with tabs"), "{request}");
}
