//! The commands of the chat: `/help` and its like.

use super::driver::Driver;
use super::ink::{Line, Style};
use super::transcript::counted;
use haft::ops::text::spelling::closest;
use haft_agent::Usage;

/// A command with what it takes and what it does.
pub(crate) const COMMANDS: [(&str, &str, &str); 7] = [
    ("/help", "", "this"),
    ("/tools", "", "what the model can call"),
    ("/model", "[NAME]", "which model answers, or another one"),
    ("/compact", "", "make the conversation shorter"),
    ("/sessions", "", "what can be gone on with"),
    ("/cost", "", "what this took so far"),
    ("/quit", "", "end (also: quit, exit, Ctrl-D)"),
];

/// Keys worth knowing.
pub(crate) const KEYS: [(&str, &str); 9] = [
    ("Enter", "send; while it works: say something to it"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Ctrl-C, Esc", "stop what it does; Ctrl-C twice: end"),
    ("Up, Down, Ctrl-R", "what was typed before"),
    ("@file Tab", "the name of a file"),
    (
        "!command",
        "run it yourself; the model sees what came of it",
    ),
    ("Ctrl-O", "all of the last call"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "back to the shell for a while (fg returns)"),
];

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// For the model.
    Prompt(String),
    /// A command line to run.
    Command(String),
    /// A command of the chat, with the rest of the line.
    Slash(&'static str, String),
    /// None of those, and what may have been meant.
    Unknown(String),
    /// The end.
    Quit,
    /// Nothing.
    Nothing,
}

impl Typed {
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Nothing;
        }
        if matches!(text, "quit" | "exit") {
            return Self::Quit;
        }
        if let Some(line) = text.strip_prefix('!') {
            return match line.trim() {
                "" => Self::Nothing,
                line => Self::Command(line.to_owned()),
            };
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A path is no command.
        if !word.starts_with('/') || word.get(1..).is_some_and(|word| word.contains('/')) {
            return Self::Prompt(text.to_owned());
        }
        match COMMANDS.iter().find(|(name, ..)| *name == word) {
            Some(("/quit", ..)) => Self::Quit,
            Some((name, ..)) => Self::Slash(name, rest.trim().to_owned()),
            None => Self::Unknown(unknown(word)),
        }
    }
}

fn unknown(word: &str) -> String {
    let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
    match closest(word, names, 1).first() {
        Some(near) => format!("there is no {word}; did you mean {near}?"),
        None => format!("there is no {word}; /help lists what there is"),
    }
}

/// What there is to know, in rows.
pub(crate) fn help() -> Vec<(String, String)> {
    let commands = COMMANDS
        .iter()
        .map(|(name, takes, does)| (format!("{name} {takes}").trim_end().to_owned(), *does));
    let keys = KEYS.iter().map(|(key, does)| ((*key).to_owned(), *does));
    commands
        .chain(keys)
        .map(|(name, does)| (name, does.to_owned()))
        .collect()
}

/// What a session took, in rows.
pub(crate) fn cost(usage: &Usage) -> Vec<(String, String)> {
    let mut rows = vec![
        (
            "sent".to_owned(),
            format!("{} tokens", counted(usage.input)),
        ),
        (
            "came back".to_owned(),
            format!("{} tokens", counted(usage.output)),
        ),
    ];
    if usage.cache_read > 0 {
        let words = format!("{} tokens of those sent", counted(usage.cache_read));
        rows.push(("from cache".to_owned(), words));
    }
    let cost = match usage.cost {
        Some(cost) => format!("${cost:.4}"),
        None => "not known for this model".to_owned(),
    };
    rows.push(("cost".to_owned(), cost));
    rows
}

/// Which model answers, and which others could.
pub(crate) fn model(driver: &dyn Driver) -> String {
    let mut words = format!("the model is {}", driver.model());
    let others = driver.models();
    if !others.is_empty() {
        words.push_str(&format!("\nalso: {}", others.join(", ")));
    }
    words
}

/// What can be gone on with.
pub(crate) fn listed(sessions: &[String]) -> String {
    match sessions.is_empty() {
        true => "there is no other session in this folder".to_owned(),
        false => format!("{}\nhaft resume ID goes on with one", sessions.join("\n")),
    }
}

/// Names and words beside each other.
pub(crate) fn table(rows: &[(String, String)], columns: usize) -> Vec<Line> {
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max();
    let names = widest.unwrap_or(0).min(columns / 2);
    rows.iter()
        .map(|(name, words)| {
            Line::new(&format!("  {name:<names$}  "), Style::BOLD)
                .and(words, Style::PLAIN)
                .hanging(names + 4)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Typed;

    #[test]
    fn what_was_typed_is_understood() {
        let of = Typed::of;
        assert_eq!(of("  "), Typed::Nothing);
        assert_eq!(of("quit"), Typed::Quit);
        assert_eq!(of("/quit"), Typed::Quit);
        assert_eq!(of("quit smoking"), Typed::Prompt("quit smoking".to_owned()));
        assert_eq!(of("! ls -l"), Typed::Command("ls -l".to_owned()));
        assert_eq!(of("!"), Typed::Nothing);
        assert_eq!(of("/model  x"), Typed::Slash("/model", "x".to_owned()));
        assert_eq!(of("/etc/passwd?"), Typed::Prompt("/etc/passwd?".to_owned()));
        let near = Typed::Unknown("there is no /modle; did you mean /model?".to_owned());
        assert_eq!(of("/modle"), near);
        let none = Typed::Unknown("there is no /zzzzzz; /help lists what there is".to_owned());
        assert_eq!(of("/zzzzzz"), none);
    }
}
