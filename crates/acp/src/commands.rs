//! Slash commands: haft's own, and the user's.

use crate::port::SlashCommand;

/// A command that the client offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) hint: Option<String>,
}

/// haft's own commands: name, description, hint.
const OWN: [(&str, &str, Option<&str>); 5] = [
    (
        "changes",
        "Show what the last run changed",
        Some("[CALL] [PATH]"),
    ),
    (
        "undo",
        "Take back what the last run changed",
        Some("[CALL] [PATH]"),
    ),
    ("redo", "Take the last undo back", None),
    ("compact", "Replace older messages with a summary", None),
    (
        "export",
        "Write the conversation to a Markdown file",
        Some("[FILE]"),
    ),
];

/// A prompt after its command was recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// One of haft's own commands, with the rest of the line.
    Own(&'static str, String),
    /// A prompt from one of the user's commands.
    Prompt(String),
    /// Not a command; the prompt goes to the model as it is.
    None,
}

/// Returns all commands. The user's own may not replace haft's.
pub(crate) fn all(users: &[SlashCommand]) -> Vec<Command> {
    let own = OWN.iter().map(|(name, description, hint)| Command {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        hint: hint.map(str::to_owned),
    });
    let users = users
        .iter()
        .filter(|command| !is_own(&command.name))
        .map(|command| Command {
            name: command.name.clone(),
            description: command.description.clone(),
            hint: command.hint.clone(),
        });
    own.chain(users).collect()
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|(own, ..)| *own == name)
}

/// Finds the command at the start of a prompt.
pub(crate) fn find(text: &str, users: &[SlashCommand]) -> Request {
    let text = text.trim();
    let Some(line) = text.strip_prefix('/') else {
        return Request::None;
    };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if let Some((own, ..)) = OWN.iter().find(|(own, ..)| *own == name) {
        return Request::Own(own, rest.trim().to_owned());
    }
    match users.iter().find(|command| command.name == name) {
        Some(command) => Request::Prompt(expand(&command.prompt, rest.trim())),
        None => Request::None,
    }
}

/// Inserts the arguments; text without a place for them gets them at the end.
fn expand(prompt: &str, arguments: &str) -> String {
    const PLACE: &str = "$ARGUMENTS";
    if prompt.contains(PLACE) {
        return prompt.replace(PLACE, arguments);
    }
    match arguments.is_empty() {
        true => prompt.to_owned(),
        false => format!("{}\n\n{arguments}", prompt.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_at_the_start_of_a_prompt() {
        let users = [SlashCommand {
            name: "review".to_owned(),
            description: String::new(),
            hint: None,
            prompt: "Review $ARGUMENTS now".to_owned(),
        }];
        for (text, expected) in [
            ("/undo a b", Request::Own("undo", "a b".to_owned())),
            (" /compact\n", Request::Own("compact", String::new())),
            (
                "/review src/a.rs",
                Request::Prompt("Review src/a.rs now".to_owned()),
            ),
            ("/usr/bin/env is a path", Request::None),
            ("/unknown", Request::None),
            ("undo", Request::None),
        ] {
            assert_eq!(find(text, &users), expected, "{text}");
        }
    }

    #[test]
    fn arguments_without_a_place_follow_the_text() {
        assert_eq!(expand("Fix it.\n", "a"), "Fix it.\n\na");
        assert_eq!(expand("Fix it.\n", ""), "Fix it.\n");
        assert_eq!(expand("$ARGUMENTS, $ARGUMENTS", "a"), "a, a");
    }
}
