//! Slash commands of the chat.

use crate::driver::Driver;
use crate::styled_text::{Line, Style};
use crate::transcript::format_count;
use haft::ops::text::spelling::closest;
use haft_agent::Usage;

/// Name, arguments and description of each command.
pub(crate) const COMMANDS: [(&str, &str, &str); 10] = [
    ("/help", "", "show this help"),
    ("/tools", "", "list the tools the model can call"),
    (
        "/model",
        "[NAME]",
        "show the model, or switch to another one",
    ),
    (
        "/changes",
        "[CALL] [PATH]",
        "show what the last run changed",
    ),
    (
        "/undo",
        "[CALL] [PATH]",
        "take back what the last run changed",
    ),
    ("/redo", "", "take the last undo back"),
    ("/compact", "", "compact the conversation"),
    ("/sessions", "", "list sessions that can be resumed"),
    ("/cost", "", "show tokens and cost so far"),
    ("/quit", "", "quit (also: quit, exit, Ctrl-D)"),
];

/// Keys that `/help` lists.
pub(crate) const KEYS: [(&str, &str); 9] = [
    ("Enter", "send; also while the agent works"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "insert a new line"),
    ("Ctrl-C, Esc", "stop the agent; Ctrl-C twice: quit"),
    ("Up, Down, Ctrl-R", "browse or search the history"),
    ("@file Tab", "complete a file name"),
    (
        "!command",
        "run a command yourself; the model sees its output",
    ),
    ("Ctrl-O", "show the whole last call"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend (fg returns)"),
];

/// Kind of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserInput {
    /// A prompt for the model.
    Prompt(String),
    /// A command line that the user runs.
    ShellCommand(String),
    /// A slash command, with the rest of the line.
    SlashCommand(&'static str, String),
    /// An unknown slash command, as a message for the user.
    UnknownCommand(String),
    /// End of the chat.
    Quit,
    /// Empty input.
    Empty,
}

impl UserInput {
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() {
            return Self::Empty;
        }
        if matches!(text, "quit" | "exit") {
            return Self::Quit;
        }
        if let Some(line) = text.strip_prefix('!') {
            return match line.trim() {
                "" => Self::Empty,
                line => Self::ShellCommand(line.to_owned()),
            };
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A path is not a command.
        if !word.starts_with('/') || word.get(1..).is_some_and(|word| word.contains('/')) {
            return Self::Prompt(text.to_owned());
        }
        match COMMANDS.iter().find(|(name, ..)| *name == word) {
            Some(("/quit", ..)) => Self::Quit,
            Some((name, ..)) => Self::SlashCommand(name, rest.trim().to_owned()),
            None => Self::UnknownCommand(unknown_command(word)),
        }
    }
}

fn unknown_command(word: &str) -> String {
    let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
    match closest(word, names, 1).first() {
        Some(near) => format!("unknown command: {word}; did you mean {near}?"),
        None => format!("unknown command: {word}; /help lists all commands"),
    }
}

/// Rows of `/help`.
pub(crate) fn help_rows() -> Vec<(String, String)> {
    let commands = COMMANDS
        .iter()
        .map(|(name, takes, does)| (format!("{name} {takes}").trim_end().to_owned(), *does));
    let keys = KEYS.iter().map(|(key, does)| ((*key).to_owned(), *does));
    commands
        .chain(keys)
        .map(|(name, does)| (name, does.to_owned()))
        .collect()
}

/// Rows of `/cost`.
pub(crate) fn cost_rows(usage: &Usage) -> Vec<(String, String)> {
    let mut rows = vec![
        (
            "sent".to_owned(),
            format!("{} tokens", format_count(usage.input)),
        ),
        (
            "received".to_owned(),
            format!("{} tokens", format_count(usage.output)),
        ),
    ];
    if usage.cache_read > 0 {
        let words = format!("{} tokens of those sent", format_count(usage.cache_read));
        rows.push(("from cache".to_owned(), words));
    }
    let cost = match usage.cost {
        Some(cost) => format!("${cost:.4}"),
        None => "unknown for this model".to_owned(),
    };
    rows.push(("cost".to_owned(), cost));
    rows
}

/// Text of `/model` without a name.
pub(crate) fn model_text(driver: &dyn Driver) -> String {
    format!("the model is {}", driver.model())
}

/// List of sessions that can be resumed.
pub(crate) fn session_list(sessions: &[String]) -> String {
    match sessions.is_empty() {
        true => "no other sessions in this folder".to_owned(),
        false => format!("{}\nresume with: haft resume ID", sessions.join("\n")),
    }
}

/// Formats rows as two columns.
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
    use super::UserInput;

    #[test]
    fn classifies_input() {
        let parse = UserInput::parse;
        assert_eq!(parse("  "), UserInput::Empty);
        assert_eq!(parse("quit"), UserInput::Quit);
        assert_eq!(parse("/quit"), UserInput::Quit);
        assert_eq!(
            parse("quit smoking"),
            UserInput::Prompt("quit smoking".to_owned())
        );
        assert_eq!(
            parse("! ls -l"),
            UserInput::ShellCommand("ls -l".to_owned())
        );
        assert_eq!(parse("!"), UserInput::Empty);
        assert_eq!(
            parse("/model  x"),
            UserInput::SlashCommand("/model", "x".to_owned())
        );
        assert_eq!(
            parse("/etc/passwd?"),
            UserInput::Prompt("/etc/passwd?".to_owned())
        );
        let near =
            UserInput::UnknownCommand("unknown command: /modle; did you mean /model?".to_owned());
        assert_eq!(parse("/modle"), near);
        let none = UserInput::UnknownCommand(
            "unknown command: /zzzzzz; /help lists all commands".to_owned(),
        );
        assert_eq!(parse("/zzzzzz"), none);
    }
}
