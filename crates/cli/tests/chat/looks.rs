//! All kinds of terminals, and none.

use crate::seat::Seat;
use rustix::process::Signal;
use serde_json::json;

fn everything() -> serde_json::Value {
    json!({ "ask": ["write"], "prompts": [[
        { "say": "# 日本語 heading\nA paragraph with **bold** words that is longer than forty columns.\n\n" },
        { "call": { "tool": "bash", "with": { "command": "echo out; false" } } },
        { "call": { "tool": "write", "with": { "path": "a", "content": "one\n" } } },
        { "say": "Done." }
    ]] })
}

#[test]
fn colours_are_those_of_the_terminal() {
    let mut seat = Seat::new(everything()).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("approve");
    assert_eq!(seat.colour("exit 1"), vt100::Color::Idx(1));
    seat.keys("y");
    seat.wait("Done.");
    assert_eq!(seat.colour("+one"), vt100::Color::Idx(2));
    // Only the 16 colours that the user can configure.
    let raw = seat.raw();
    assert!(!raw.contains("38;5;") && !raw.contains("38;2;") && !raw.contains("48;"));
}

#[test]
fn a_theme_has_backgrounds_and_colours_for_code() {
    let script = json!({ "theme": "dark", "prompts": [[
        { "say": "```rust\nlet x = 1;\n```\n" },
        { "call": { "tool": "bash", "with": { "command": "printf '\\033[31m'; echo re''d" } } },
        { "call": { "tool": "write", "with": { "path": "a.rs", "content": "fn new() {}\n" } } },
        { "say": "Done." }
    ]] });
    let seat = Seat::new(script).with("COLORTERM", "truecolor");
    let mut seat = seat.file("a.rs", "fn old() {}\n").size(40, 80).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Done.");
    assert_eq!(seat.colour("let"), vt100::Color::Rgb(0xc7, 0x92, 0xea));
    // A command's own colours, not its escape sequences.
    assert_eq!(seat.colour("red"), vt100::Color::Idx(1));
    assert!(!seat.screen().iter().any(|row| row.contains("\\x1b")));
    // Overwriting a file shows what is lost.
    seat.wait("1 -fn old() {}");
    seat.wait("1 +fn new() {}");
    seat.keys("/theme\r");
    seat.wait("▸ dark");
    seat.keys("light\r");
    seat.wait("chat: { theme: light }");
}

#[test]
fn no_colour_means_none() {
    let mut seat = Seat::new(everything()).with("NO_COLOR", "1").sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("approve");
    seat.keys("y");
    seat.wait("Done.");
    let raw = seat.raw();
    let styled = raw.split("\x1b[").skip(1).filter(|rest| {
        rest.split(|c: char| c.is_ascii_alphabetic())
            .next()
            .is_some_and(|codes| rest.chars().nth(codes.len()) == Some('m'))
    });
    assert_eq!(styled.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let mut seat = Seat::new(everything())
        .with("TERM", "dumb")
        .size(60, 80)
        .sit();
    seat.wait(">");
    let begun = seat.raw().len();
    seat.keys("go\n");
    seat.wait("Run it? [y/N]");
    seat.keys("y\n");
    seat.wait("Done.");
    seat.until("the next prompt", |rows| {
        rows.last().is_some_and(|row| row == ">")
    });
    seat.keys("exit\n");
    assert_eq!(seat.ended(), 0);
    assert!(!seat.raw().get(begun..).unwrap().contains('\x1b'));
    assert_eq!(seat.screen().last().unwrap(), "resume with: haft resume s2");
}

#[test]
fn output_to_a_pipe_is_plain() {
    let mut seat = Seat::new(everything()).piped().size(60, 80).sit();
    seat.wait("a note on trust");
    seat.keys("go\n");
    seat.wait("Run it? [y/N]");
    seat.keys("n because\n");
    seat.wait("user said no: because");
    seat.wait("Done.");
    seat.keys("\x04");
    assert_eq!(seat.ended(), 0);
    let raw = seat.raw();
    let (_, printed) = raw.split_once("haft 1.2.3").unwrap();
    assert!(!printed.contains(['\x1b', '\r', '\x07']), "{printed:?}");
}

#[test]
fn small_and_large_screens() {
    for (rows, columns) in [(15, 40), (6, 20), (50, 200)] {
        let mut seat = Seat::new(everything()).size(rows, columns).sit();
        seat.wait("›");
        seat.keys("go\r");
        seat.wait("approve");
        seat.keys("y");
        seat.wait("Done.");
        seat.keys("a long line that has to be wrapped somewhere: Z");
        seat.wait("Z");
        seat.keys("\r");
        seat.wait("the script is over");
        seat.keys("exit\r");
        assert_eq!(seat.ended(), 0, "{rows} {columns}");
    }
}

#[test]
fn another_size_leaves_no_rows_behind() {
    let script = json!({ "prompts": [[{ "say": "Words that stay." }, "wait"]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("answering");
    let mut typed = "› ".to_owned();
    for (rows, columns) in [(24, 120), (30, 90), (24, 100), (12, 100), (40, 110)] {
        seat.resize(rows, columns);
        seat.keys("x");
        typed.push('x');
        seat.wait(&typed);
        let screen = seat.screen();
        for words in [
            "Words that stay.",
            "answering",
            "sandbox full · 1.2k",
            "╭",
            "╰",
        ] {
            // A low screen has no border.
            if rows < 20 && matches!(words, "╭" | "╰") {
                continue;
            }
            let count = screen.iter().filter(|row| row.contains(words)).count();
            assert_eq!(count, 1, "{words} {screen:#?}");
        }
    }
}

#[test]
fn nothing_of_a_model_or_a_tool_reaches_the_terminal_raw() {
    let evil = "\x1b[2J\x1b]0;title\x07\x1b]52;c;AAAA\x07\u{9b}31m\u{202e}\u{200b}\x1bP+q\x1b\\";
    let script = json!({ "prompts": [[
        { "think": evil },
        { "say": format!("Text {evil}\n\n```{evil}\n{evil}\n```\n[a](http://x/{evil}) | {evil} |") },
        { "call": { "tool": "bash", "with": { "command": format!("printf '%s' '{evil}' >&2; exit 1") } } },
        { "call": { "tool": "read", "with": { "path": evil } } },
        { "call": { "tool": "write", "with": { "path": "x", "content": evil } } },
        { "fail": evil }
    ]] });
    let mut seat = Seat::new(script).size(60, 100).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("/help");
    seat.wait("\\x1b]52");
    seat.keys("\x0f");
    seat.keys("exit\r");
    assert_eq!(seat.ended(), 0);
    let raw = seat.raw();
    let (_, printed) = raw.split_once("haft 1.2.3").unwrap();
    for part in [
        "\x1b[2J", "\x1b]0", "\x1b]52", "\u{9b}", "\u{202e}", "\u{200b}", "\x1bP", "\x07",
    ] {
        assert!(!printed.contains(part), "{part:?}");
    }
}

#[test]
fn the_terminal_is_restored_however_the_chat_ends() {
    let script = || json!({ "prompts": [[{ "say": "Here." }, "wait"]] });
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut seat = Seat::new(script()).sit();
        seat.wait("›");
        seat.keys("go\r");
        seat.wait("Here.");
        assert!(!seat.is_given_back());
        seat.signal(signal);
        assert_eq!(seat.ended(), code);
        assert!(seat.is_given_back());
        assert!(seat.raw().ends_with("\x1b[?25h\x1b[0m"), "{:?}", seat.raw());
        assert_eq!(seat.screen().last().unwrap(), "resume with: haft resume s2");
    }
}

#[test]
fn a_panic_elsewhere_spoils_nothing() {
    let script = json!({ "prompts": [[{ "say": "Before." }, { "panic": "boom \x1b[2J" }]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    seat.keys("go\r");
    seat.wait("Before.");
    seat.wait("the run ended without a reason");
    seat.wait("/help");
    assert!(!seat.raw().contains("boom"));
    seat.keys("exit\r");
    assert_eq!(seat.ended(), 0);
    assert!(seat.is_given_back());
    // Printed after the terminal is restored.
    assert!(seat.raw().contains("boom \\x1b[2J"), "{}", seat.raw());
}

#[test]
fn a_flood_is_drawn_in_few_frames() {
    let text: String = (0..3000).map(|number| format!("word{number} ")).collect();
    let script = json!({ "prompts": [[{ "say": format!("{text}\n\nEnd.") }]] });
    let mut seat = Seat::new(script).sit();
    seat.wait("›");
    let before = seat.raw().matches("\x1b[?2026h").count();
    seat.keys("go\r");
    seat.wait("End.");
    seat.wait("/help");
    // About 10,000 chunks.
    let frames = seat.raw().matches("\x1b[?2026h").count() - before;
    assert!(frames < 600, "{frames}");
    let ends = seat.raw().matches("\x1b[?2026l").count();
    assert_eq!(ends, before + frames);
}
