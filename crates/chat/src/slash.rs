//! Slash commands of the chat.

use crate::driver::{Driver, SessionEntry};
use crate::menu::Item;
use crate::setup::SavedPrompt;
use crate::styled_text::{Line, Style};
use crate::transcript::format_count;
use haft::ops::text::spelling::closest;
use haft_agent::Usage;

/// Name, arguments and description of each command.
pub(crate) const COMMANDS: [(&str, &str, &str); 22] = [
    ("/help", "", "show this help"),
    ("/new", "", "start a new session"),
    ("/clear", "", "the same as /new"),
    ("/resume", "[SESSION]", "go on with another session"),
    ("/sessions", "", "list sessions that can be resumed"),
    ("/model", "[NAME]", "choose another model"),
    ("/effort", "[LEVEL]", "choose how much the model thinks"),
    ("/plan", "[TASK]", "plan first: only read, until you say go"),
    ("/fork", "", "go on in a copy of the session"),
    ("/theme", "[NAME]", "choose other colours"),
    ("/context", "", "show how full the context is"),
    ("/compact", "", "compact the conversation"),
    ("/cost", "", "show tokens and cost so far"),
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
    ("/export", "[FILE]", "write the session to a Markdown file"),
    ("/tools", "", "list the tools the model can call"),
    ("/permissions", "", "show the rules for calls"),
    ("/mcp", "", "show the MCP servers"),
    ("/doctor", "", "check what works on this machine"),
    ("/quit", "", "quit (also: quit, exit, Ctrl-D)"),
];

/// Keys that `/help` lists.
pub(crate) const KEYS: [(&str, &str); 13] = [
    ("Enter", "send; also while the agent works"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "insert a new line"),
    ("Ctrl-C, Esc", "stop the agent; Ctrl-C twice: quit"),
    ("Up, Down, Ctrl-R", "browse or search the history"),
    ("/ and @", "open a menu of commands or files"),
    (
        "!command",
        "run a command yourself; the model sees its output",
    ),
    ("#note", "add a note to AGENTS.md"),
    ("Esc Esc", "return to an earlier message"),
    ("Ctrl-O", "show the whole last call"),
    ("Ctrl-T", "show all that the model thought"),
    ("Ctrl-G", "write the message in your editor"),
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
    /// A line for the project's instructions.
    Instruction(String),
    /// A slash command, with the rest of the line.
    SlashCommand(&'static str, String),
    /// A command of the user's own, as its prompt.
    Saved(String),
    /// An unknown slash command, as a message for the user.
    UnknownCommand(String),
    /// End of the chat.
    Quit,
    /// Empty input.
    Empty,
}

impl UserInput {
    pub(crate) fn parse(text: &str, saved: &[SavedPrompt]) -> Self {
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
        if let Some(line) = instruction(text) {
            return Self::Instruction(line.to_owned());
        }
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        // A path is not a command.
        if !word.starts_with('/') || word.get(1..).is_some_and(|word| word.contains('/')) {
            return Self::Prompt(text.to_owned());
        }
        match COMMANDS.iter().find(|(name, ..)| *name == word) {
            Some(("/quit", ..)) => Self::Quit,
            Some((name, ..)) => Self::SlashCommand(name, rest.trim().to_owned()),
            None => match saved
                .iter()
                .find(|one| word.get(1..) == Some(one.name.as_str()))
            {
                Some(one) => Self::Saved(one.with_arguments(rest.trim())),
                None => Self::UnknownCommand(unknown_command(word, saved)),
            },
        }
    }
}

/// Returns the instruction after a `#`. `#12` is the number of something, and several lines
/// are Markdown with a heading.
fn instruction(text: &str) -> Option<&str> {
    let line = text.strip_prefix('#')?.trim_start_matches('#').trim();
    let is_number = line.starts_with(|c: char| c.is_ascii_digit());
    (!line.is_empty() && !is_number && !line.contains('\n')).then_some(line)
}

fn unknown_command(word: &str, saved: &[SavedPrompt]) -> String {
    let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
    let saved = saved.iter().map(|one| format!("/{}", one.name));
    match closest(word, names.chain(saved), 1).first() {
        Some(near) => format!("unknown command: {word}; did you mean {near}?"),
        None => format!("unknown command: {word}; /help lists all commands"),
    }
}

/// The menu of commands.
pub(crate) fn menu_items(saved: &[SavedPrompt]) -> Vec<Item> {
    let own = COMMANDS.iter().map(|(name, _, does)| Item::new(name, does));
    let saved = saved.iter().map(|one| {
        let about = match &one.hint {
            Some(hint) => format!("{} ({hint})", one.description),
            None => one.description.clone(),
        };
        Item::new(&format!("/{}", one.name), &about)
    });
    own.chain(saved).collect()
}

/// Text of `/effort`.
pub(crate) fn effort_text(driver: &dyn Driver) -> String {
    let current = driver.effort();
    let current = current
        .as_deref()
        .unwrap_or("not set; the provider decides");
    match driver.efforts().as_slice() {
        [] => "this model has no effort to set".to_owned(),
        levels => format!(
            "effort: {current}\nchoose with: /effort {}",
            levels.join("|")
        ),
    }
}

/// Text of `/context`.
pub(crate) fn context_text(driver: &dyn Driver) -> String {
    let Some((used, window)) = driver.context() else {
        return "the size of the context is not known".to_owned();
    };
    let percent = percent(used, window);
    let full = usize::try_from(percent.min(100) / 5).unwrap_or(0);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(20 - full));
    format!(
        "{bar} {percent} % of the context: {} of {} tokens\n/compact makes room",
        format_count(used),
        format_count(window)
    )
}

/// A part in percent.
pub(crate) fn percent(used: u64, window: u64) -> u64 {
    used.saturating_mul(100) / window.max(1)
}

/// Rows of `/help`.
pub(crate) fn help_rows(saved: &[SavedPrompt]) -> Vec<(String, String)> {
    let saved = saved.iter().map(|one| {
        let name = format!("/{} {}", one.name, one.hint.as_deref().unwrap_or_default());
        (name.trim_end().to_owned(), one.description.clone())
    });
    let commands = COMMANDS
        .iter()
        .map(|(name, takes, does)| (format!("{name} {takes}").trim_end().to_owned(), *does));
    let keys = KEYS.iter().map(|(key, does)| ((*key).to_owned(), *does));
    let own = |(name, does): (String, &str)| (name, does.to_owned());
    commands
        .map(own)
        .chain(saved)
        .chain(keys.map(own))
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
pub(crate) fn session_list(sessions: &[SessionEntry]) -> String {
    let line = |one: &SessionEntry| format!("{}  {}  {}", one.id, one.about, one.title);
    let lines: Vec<String> = sessions.iter().map(line).collect();
    match lines.is_empty() {
        true => "no other sessions in this folder".to_owned(),
        false => format!("{}\nresume with: /resume ID", lines.join("\n")),
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
    use crate::setup::SavedPrompt;

    #[test]
    fn classifies_input() {
        let saved = SavedPrompt {
            name: "review".to_owned(),
            prompt: "Review $ARGUMENTS.".to_owned(),
            ..SavedPrompt::default()
        };
        let parse = |text| UserInput::parse(text, std::slice::from_ref(&saved));
        let review = UserInput::Saved("Review a.rs.".to_owned());
        assert_eq!(parse("/review a.rs"), review);
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
        let instruction = UserInput::Instruction("use tabs".to_owned());
        assert_eq!(parse("# use tabs"), instruction);
        assert_eq!(parse("#use tabs"), instruction);
        for prompt in ["#12 is broken", "# Title\nText", "#"] {
            assert_eq!(parse(prompt), UserInput::Prompt(prompt.to_owned()));
        }
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
