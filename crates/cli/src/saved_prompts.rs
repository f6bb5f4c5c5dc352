//! The user's own slash commands, in the chat and in editors: `commands/*.md` in the config folder.
#![expect(
    clippy::disallowed_methods,
    reason = "the user's own configuration, which no tool may touch"
)]

use haft::ops::text::{brief, front_matter};
use haft_chat::SavedPrompt;
use std::path::Path;

/// Folder in the config folder.
const FOLDER: &str = "commands";

/// Maximum number of commands.
const MAX_COMMANDS: usize = 200;

/// Larger files are left out.
const MAX_BYTES: u64 = 256 << 10;

/// Maximum characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// Reads the commands, sorted by name.
pub(crate) fn read(config: Option<&Path>) -> Vec<SavedPrompt> {
    let folder = config.map(|config| config.join(FOLDER));
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let mut commands: Vec<_> = files
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_COMMANDS)
        .filter_map(|file| command(&file.path()))
        .collect();
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands
}

fn command(path: &Path) -> Option<SavedPrompt> {
    let is_markdown = path.extension().is_some_and(|kind| kind == "md");
    let name = path.file_stem()?.to_str()?;
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if !is_markdown || name.is_empty() || !name.chars().all(fits) {
        return None;
    }
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(parse(name, &text))
}

/// Reads `description` and `argument-hint` of the front matter; the rest is the prompt.
fn parse(name: &str, text: &str) -> SavedPrompt {
    let text = text.replace("\r\n", "\n");
    let (front, prompt) = match front_matter::split(&text) {
        Ok((front, prompt)) => (front.unwrap_or_default(), prompt),
        Err(_) => ("", text.as_str()),
    };
    let value = |key: &str| {
        front.lines().find_map(|line| {
            let value = line.strip_prefix(key)?.trim_start().strip_prefix(':')?;
            let value = value.trim().trim_matches(['"', '\'']);
            (!value.is_empty()).then(|| brief(value, MAX_DESCRIPTION))
        })
    };
    let first_line = || {
        let line = prompt.lines().find(|line| !line.trim().is_empty())?;
        Some(brief(
            line.trim().trim_start_matches(['#', ' ']),
            MAX_DESCRIPTION,
        ))
    };
    let description = value("description").or_else(first_line);
    let takes_arguments = prompt.contains("$ARGUMENTS");
    SavedPrompt {
        name: name.to_owned(),
        description: description.unwrap_or_else(|| name.to_owned()),
        hint: value("argument-hint").or(takes_arguments.then(|| "arguments".to_owned())),
        prompt: prompt.trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_prompt_with_a_description() {
        let text = "---\ndescription: \"Reviews a file\"\n---\nReview $ARGUMENTS.\n";
        let expected = SavedPrompt {
            name: "review".to_owned(),
            description: "Reviews a file".to_owned(),
            hint: Some("arguments".to_owned()),
            prompt: "Review $ARGUMENTS.".to_owned(),
        };
        assert_eq!(parse("review", text), expected);
        let plain = parse("tidy", "# Tidy up\n\nRemove what nobody uses.");
        assert_eq!((plain.description.as_str(), plain.hint), ("Tidy up", None));
    }

    #[test]
    fn only_markdown_files_with_plain_names_are_commands() {
        let folder = tempfile::tempdir().unwrap();
        let commands = folder.path().join(FOLDER);
        std::fs::create_dir(&commands).unwrap();
        for name in ["b.md", "a.md", "c.txt", "d e.md"] {
            std::fs::write(commands.join(name), "Do it").unwrap();
        }
        let names: Vec<_> = read(Some(folder.path()))
            .into_iter()
            .map(|command| command.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert!(read(None).is_empty());
    }
}
