//! Talking to an agent: its answers and calls, and input typed meanwhile.

use crate::seat::Seat;
use serde_json::json;

fn say(text: &str) -> serde_json::Value {
    json!({ "say": text })
}

const PLACEHOLDER: &str = "Ask, or type / for commands, @ for files, ! for the shell";

/// Border of the input line on a screen with 80 columns.
fn border(left: char, right: char) -> String {
    format!("{left}{}{right}", "─".repeat(78))
}

#[test]
fn an_answer_appears_above_the_input_line() {
    let script = json!({ "prompts": [[
        say("# Plan\nSome *words*.\n\n```rust\nfn main() {}\n```\n"),
        { "call": { "tool": "bash", "with": { "command": "echo one; echo two; exit 3" } } },
        { "call": { "tool": "edit", "with": { "path": "a.txt", "old_text": "old", "new_text": "new" } } },
        { "call": { "tool": "read", "with": { "path": "none" } } },
        say("Done.")
    ]] });
    let seat = Seat::new(script).file("a.txt", "x\nold\n").size(40, 80);
    let mut seat = seat.sit();
    seat.wait("›");
    seat.keys("do it\r");
    seat.wait("Done.");
    seat.wait("/help");
    assert_eq!(
        seat.screen()[2..],
        [
            "",
            "› do it",
            "",
            "Plan",
            "Some words.",
            "",
            "╭ rust",
            "fn main() {}",
            "╰",
            "",
            "● bash echo one; echo two; exit 3 · exit 3",
            "  one",
            "  two",
            "",
            "● edit a.txt · +1 −1",
            "   1  x",
            "   2 -old",
            "   2 +new",
            "",
            "✗ read none · failed",
            "  file not found: none",
            "  Use find or ls to see what is there.",
            "",
            "Done.",
            "",
            &border('╭', '╮'),
            &format!(
                "│ › {PLACEHOLDER}{}│",
                " ".repeat(76 - 1 - PLACEHOLDER.chars().count())
            ),
            &border('╰', '╯'),
            " scripted · sandbox full · 1.2k tokens · $0.01 · /help"
        ]
    );
    seat.keys("\x04");
    assert_eq!(seat.ended(), 0);
    assert_eq!(seat.screen().last().unwrap(), "resume with: haft resume s2");
    assert!(seat.is_given_back());
}

#[test]
fn input_while_the_agent_works_steers_it() {
    let script = json!({ "prompts": [[say("Working."), "steered"], ["wait"], [say("Next.")]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Working.");
    seat.keys("more please\r");
    seat.wait("You said: more please");
    seat.wait("/help");
    // It is stopped before the agent reads it, so it returns to the input line.
    seat.keys("again\r");
    seat.wait("thinking");
    seat.keys("not heard\r");
    seat.wait("queued: not heard");
    seat.keys("\x03");
    seat.wait("stopped");
    seat.wait("› not heard");
    seat.keys("\x15fresh\r");
    seat.wait("Next.");
    let received = seat.received();
    assert_eq!(
        received,
        [
            json!({ "prompt": "go" }),
            json!({ "steer": "more please" }),
            json!({ "prompt": "again" }),
            json!({ "steer": "not heard" }),
            json!("abort"),
            json!({ "prompt": "fresh" }),
        ]
    );
}

#[test]
fn a_running_command_shows_the_end_of_what_it_says_and_can_be_stopped() {
    let command = "for i in 1 2 3 4 5 6 7 8; do echo line $i; done; sleep 600";
    let script = json!({ "prompts": [[
        { "call": { "tool": "bash", "with": { "command": command } } }, say("not reached")
    ]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.until("the tail", |rows| {
        rows.iter().any(|row| row == "  line 8") && !rows.iter().any(|row| row == "  line 4")
    });
    seat.wait(" s");
    seat.keys("\x03");
    seat.wait("stopped");
    seat.wait("/help");
    assert!(!seat.raw().contains("not reached"));
    // The second Ctrl-C ends the chat.
    seat.keys("\x03\x03");
    assert_eq!(seat.ended(), 0);
    assert!(seat.is_given_back());
}

#[test]
fn lines_can_be_many_and_come_back() {
    let script = json!({ "prompts": [[say("A.")], [say("B.")], [say("C.")], [say("D.")]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("one\\\rtwo\x1b\rthree\nfour");
    seat.wait("  four");
    assert_eq!(seat.cursor().1, 8);
    seat.keys("\r");
    seat.wait("A.");
    // A paste is one piece, with any line endings.
    seat.keys("\x1b[200~pasted\rlines\nhere\x1b[201~");
    seat.wait("  here");
    seat.keys("\r");
    seat.wait("B.");
    seat.wait("/help");
    seat.keys("\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\x1b[A\r");
    seat.wait("C.");
    seat.wait("/help");
    seat.keys("\x12paste");
    seat.wait("search: paste  pasted");
    seat.keys("\r");
    seat.wait("  here");
    seat.keys("\r");
    seat.wait("D.");
    let prompts: Vec<String> = seat
        .received()
        .iter()
        .map(|received| received["prompt"].as_str().unwrap().to_owned())
        .collect();
    let (four, paste) = ("one\ntwo\nthree\nfour", "pasted\nlines\nhere");
    assert_eq!(prompts, [four, paste, four, paste]);
    let history = std::fs::read_to_string(seat.seat.state("history")).unwrap();
    assert_eq!(history.lines().next().unwrap(), "one\\ntwo\\nthree\\nfour");
}

#[test]
fn the_model_sees_commands_the_user_ran() {
    let script = json!({ "prompts": [[say("I see.")]] });
    let mut seat = Seat::new(script).file("a.txt", "here ``` it is\n").sit();
    seat.wait("›");
    seat.keys("!cat a.txt\r");
    seat.wait("● bash cat a.txt");
    seat.wait("  here ``` it is");
    seat.wait("/help");
    seat.keys("what is this?\r");
    seat.wait("I see.");
    assert_eq!(
        seat.received(),
        [json!({ "prompt":
            "I ran `cat a.txt` myself. It said:\n\n````\nhere ``` it is\n````\n\nwhat is this?" })]
    );
    // A command that does not end is stopped without a message.
    seat.wait("/help");
    seat.keys("!sleep 600\r");
    seat.wait("⠋ bash sleep 600");
    seat.keys("\x03");
    seat.wait("stopped");
    seat.wait("Ctrl-C again");
}

#[test]
fn names_are_completed() {
    let seat = Seat::new(json!({ "prompts": [[say("Read.")]] }))
        .file("src/main.rs", "")
        .file("src/domain.rs", "")
        .file("ignored/main.rs", "")
        .file(".gitignore", "ignored\n")
        .size(50, 80);
    let mut seat = seat.sit();
    seat.wait("›");
    seat.keys("look at @dom\t");
    seat.wait("› look at @src/domain.rs");
    // The menu opens while typing.
    seat.keys("\x15@main");
    seat.wait("▸ src/main.rs");
    seat.keys("\x1b[B");
    seat.wait("▸ src/domain.rs");
    seat.keys("\x1b[A\r");
    seat.wait("› @src/main.rs");
    seat.wait_gone("▸");
    assert!(!seat.raw().contains("ignored"));
    seat.keys("now\r");
    seat.wait("Read.");
    assert_eq!(seat.received(), [json!({ "prompt": "@src/main.rs now" })]);
    seat.wait("/help");
    // Esc closes it, and it stays closed for this word.
    seat.keys("@ma");
    seat.wait("▸ src/main.rs");
    seat.keys("\x1b");
    seat.wait_gone("▸");
    seat.keys("i");
    seat.wait("› @mai");
    assert!(!seat.screen().iter().any(|row| row.contains('▸')));
    seat.keys("\x15/to\t\r");
    seat.wait("  bash   Run a command");
}

#[test]
fn slash_commands() {
    let mut seat = Seat::new(json!({})).size(50, 80).sit();
    seat.wait("›");
    for (typed, words) in [
        ("/help", "Ctrl-Z                      suspend"),
        ("/tools", "  bash  "),
        ("/model", "the model is scripted"),
        ("/context", "the size of the context is not known"),
        ("/doctor", "nothing is known about this"),
        ("/export", "this session cannot be exported"),
        ("/model other", "using other from now on"),
        ("/model nobody", "there is no model nobody"),
        ("/cost", "  received  0 tokens"),
        ("/sessions", "s1  yesterday  fix the test"),
        ("/review a.rs", "the script is over"),
        ("/compact", "there was nothing to make shorter"),
        ("/modle", "unknown command: /modle; did you mean /model?"),
        ("prompt", "the script is over"),
    ] {
        seat.keys(&format!("{typed}\r"));
        seat.wait(words);
    }
    seat.wait("other · sandbox full");
    seat.keys("quit\r");
    assert_eq!(seat.ended(), 0);
}

#[test]
fn a_key_shows_the_whole_last_call() {
    let script = json!({ "prompts": [[
        { "call": { "tool": "bash", "with": { "command": "seq 30" } } }
    ]] });
    let mut seat = Seat::new(script).size(60, 80).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("… 25 lines before (Ctrl-O shows all)");
    assert!(!seat.screen().contains(&"  7".to_owned()));
    seat.keys("\x0f");
    seat.wait("  7");
    let screen = seat.screen();
    let first = screen.iter().rposition(|row| row == "  1").unwrap();
    let all: Vec<String> = (1..=30).map(|number| format!("  {number}")).collect();
    assert_eq!(screen[first..first + 30], all);
}

#[test]
fn provider_failures_are_shown() {
    let script = json!({ "prompts": [[
        { "think": "let me see" },
        { "retry": "the server said 529" },
        { "fail": "no key for \x1b[31mred\nset API_KEY" }
    ]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("retrying in 2.0 s (1 of 3)");
    seat.wait("no key for \\x1b[31mred");
    seat.wait("set API_KEY");
    seat.wait("/help");
}

#[test]
fn a_large_paste_is_sent_whole() {
    let mut seat = Seat::new(json!({ "prompts": [[say("Long.")], [say("Short.")]] })).sit();
    seat.wait("›");
    let text: String = (0..20_000)
        .map(|number| format!("row {number}\n"))
        .collect();
    seat.paste(text.trim_end());
    seat.wait("› [pasted 20000 lines]");
    seat.keys("\r");
    seat.wait("Long.");
    assert_eq!(seat.received(), [json!({ "prompt": text.trim_end() })]);
    // One key deletes the whole paste.
    seat.wait("/help");
    seat.paste(&"row\n".repeat(9));
    seat.wait("› [pasted 9 lines]");
    seat.keys("\x7fhi\r");
    seat.wait("Short.");
    assert_eq!(seat.received()[1], json!({ "prompt": "hi" }));
}

#[test]
fn a_resumed_chat_shows_the_conversation_and_enter_continues() {
    for (variable, value) in [("HAFT_TEST", ""), ("TERM", "dumb")] {
        let script = json!({
            "left": true,
            "before": ["Mend it", "Half **done**."],
            "prompts": [[say("Gone on.")]]
        });
        let mut seat = Seat::new(script).with(variable, value).sit();
        seat.wait("Mend it");
        seat.wait("Half done.");
        seat.keys("\r");
        seat.wait("Gone on.");
        // Nothing is unfinished now, so an empty prompt does nothing.
        seat.keys("\r");
        seat.keys("/model\r");
        seat.wait("scripted");
        seat.keys("quit\r");
        assert_eq!(seat.ended(), 0);
        assert_eq!(seat.received(), [json!({ "prompt": "" })]);
    }
}

#[test]
fn background_events_are_shown_while_idle() {
    let command = "while [ ! -e go ]; do sleep 0.02; done";
    let script = json!({ "prompts": [[
        { "behind": { "tool": "bash", "with": { "command": command } } },
        say("Started.")
    ]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Started.");
    seat.wait("/help");
    seat.wait("in the background: researcher: find the tests · ");
    seat.wait("bash while");
    // Typing still works.
    seat.keys("meanwhile");
    seat.wait("› meanwhile");
    std::fs::write(seat.work("go"), "").unwrap();
    seat.wait("background task t1 (researcher: find the tests): done");
    seat.until("no spinner", |rows| {
        let has = |text: &str| rows.iter().any(|row| row.contains(text));
        has("↳ bash while") && !has("in the background") && has("› meanwhile")
    });
}

#[test]
fn commands_have_a_menu() {
    let mut seat = Seat::new(json!({ "prompts": [[say("Reviewed.")]] })).sit();
    seat.wait("›");
    seat.keys("/");
    seat.wait("▸ /help");
    seat.wait("show this help");
    seat.keys("rev");
    seat.wait("▸ /review");
    seat.wait("Reviews a file (FILE)");
    // A command with arguments waits for them.
    seat.keys("\r");
    seat.wait("› /review");
    seat.keys("a.rs\r");
    seat.wait("Reviewed.");
    assert_eq!(seat.received(), [json!({ "prompt": "Review a.rs." })]);
    seat.wait("/help");
    // Another one runs at once.
    seat.keys("/mod\r");
    seat.wait("the model is scripted");
}

#[test]
fn a_message_can_be_written_in_an_editor() {
    let script = json!({ "prompts": [[say("Done.")]] });
    let mut seat = Seat::new(script).with("EDITOR", "sed -i s/one/two/").sit();
    seat.wait("›");
    seat.keys("Write one\x07");
    seat.wait("│ › Write two");
    seat.keys(" more\r");
    seat.wait("Done.");
    assert_eq!(seat.received(), [json!({ "prompt": "Write two more" })]);
    // The draft outlives an editor that fails, and a chat without one.
    let mut seat = Seat::new(json!({})).with("EDITOR", "false").sit();
    seat.wait("›");
    seat.keys("Write one\x07");
    seat.wait("nothing was changed");
    seat.wait("│ › Write one");
    let mut seat = Seat::new(json!({})).sit();
    seat.wait("›");
    seat.keys("Write one\x07");
    seat.wait("set EDITOR");
    seat.wait("│ › Write one");
}
