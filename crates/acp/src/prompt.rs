//! Combines text, pictures, links and embedded files into one prompt.

use crate::commands;
use crate::port::SlashCommand;
use haft::Content;
use haft_agent::UserInput;
use std::path::PathBuf;

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Image {
        data: String,
        media_type: String,
    },
    /// A file or page that the user mentions.
    Link {
        name: String,
        uri: String,
    },
    /// A file or selection whose text comes with it.
    Embedded {
        uri: String,
        text: String,
    },
    /// A file whose bytes come with it, in Base64.
    Blob {
        uri: String,
        media_type: Option<String>,
        data: String,
    },
}

/// Returns the path of a file; `None` for anything else.
fn path(uri: &str) -> Option<PathBuf> {
    let url = url::Url::parse(uri).ok()?;
    (url.scheme() == "file")
        .then(|| url.to_file_path().ok())
        .flatten()
}

/// Returns the path and the lines of a file, or the URI of anything else.
fn place(uri: &str) -> String {
    let Some(path) = path(uri) else {
        return uri.to_owned();
    };
    let parsed = url::Url::parse(uri).ok();
    let lines = parsed.as_ref().and_then(url::Url::fragment);
    let lines = lines.map(|lines| format!(" ({lines})")).unwrap_or_default();
    format!("{}{lines}", path.display())
}

/// A prompt after its slash command was recognised.
#[derive(Debug)]
pub(crate) enum Request {
    /// One of haft's own commands, with the words after it.
    Own(&'static str, String),
    /// A prompt for the model.
    Prompt(UserInput),
}

/// Way to write a file that is mentioned in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkStyle {
    /// As a Markdown link, for the model.
    Markdown,
    /// As its path alone, for haft's own commands.
    Path,
}

/// Returns the slash command of a prompt. Files and selections may stand before it: editors put
/// what the user attached first.
fn command(parts: &[Part], users: &[SlashCommand]) -> commands::Request {
    let first = parts.iter().find_map(|part| match part {
        Part::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    });
    first.map_or(commands::Request::None, |text| commands::find(text, users))
}

/// Whether a prompt is one of haft's own commands, which are not part of the conversation.
pub(crate) fn is_own_command(parts: &[Part], users: &[SlashCommand]) -> bool {
    matches!(command(parts, users), commands::Request::Own(..))
}

/// Reads a prompt. What comes with a slash command becomes part of its arguments.
pub(crate) fn read(mut parts: Vec<Part>, users: &[SlashCommand]) -> Request {
    let found = command(&parts, users);
    if found == commands::Request::None {
        return Request::Prompt(input(parts));
    }
    let is_text = |part: &Part| matches!(part, Part::Text(text) if !text.trim().is_empty());
    if let Some(at) = parts.iter().position(is_text) {
        let text = parts.remove(at);
        parts.insert(0, text);
    }
    let style = match found {
        commands::Request::Own(..) => LinkStyle::Path,
        _ => LinkStyle::Markdown,
    };
    let combined = Combined::of(parts, style);
    match commands::find(&combined.text, users) {
        commands::Request::Own(name, words) => Request::Own(name, words),
        commands::Request::Prompt(text) => Request::Prompt(Combined { text, ..combined }.input()),
        commands::Request::None => Request::Prompt(combined.input()),
    }
}

/// Combines the parts. Links keep their place in the text; embedded files follow below it.
fn input(parts: Vec<Part>) -> UserInput {
    Combined::of(parts, LinkStyle::Markdown).input()
}

/// The parts of a prompt, in one text.
#[derive(Debug, Default)]
struct Combined {
    text: String,
    /// Text of embedded files.
    below: String,
    pictures: Vec<Content>,
}

impl Combined {
    fn of(parts: Vec<Part>, style: LinkStyle) -> Self {
        let mut combined = Self::default();
        let mut was_text = false;
        for part in parts {
            let is_text = matches!(part, Part::Text(_));
            let separator = if was_text && is_text { "\n\n" } else { " " };
            if let Some(words) = combined.take(part, style) {
                combined.append(&words, separator);
                was_text = is_text;
            }
        }
        combined
    }

    /// Takes one part, and returns what stands for it in the text.
    fn take(&mut self, part: Part, style: LinkStyle) -> Option<String> {
        match part {
            Part::Text(text) => Some(text),
            Part::Image { data, media_type } => {
                self.pictures.push(Content::Image { data, media_type });
                None
            }
            Part::Link { uri, .. } | Part::Embedded { uri, .. } | Part::Blob { uri, .. }
                if style == LinkStyle::Path =>
            {
                Some(path(&uri).map_or(uri, |path| path.display().to_string()))
            }
            Part::Link { name, uri } => {
                let place = place(&uri);
                Some(match place == name || name.is_empty() {
                    true => place,
                    false => format!("[{name}]({place})"),
                })
            }
            Part::Embedded { uri, text } => {
                // A fence longer than any in the text.
                let ticks = text.split(|c| c != '`').map(str::len).max();
                let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
                let place = place(&uri);
                let below = format!("\n\n{place}:\n{fence}\n{text}\n{fence}");
                self.below.push_str(&below);
                Some(place)
            }
            Part::Blob {
                uri,
                media_type,
                data,
            } => {
                let place = place(&uri);
                match media_type.filter(|kind| kind.starts_with("image/")) {
                    Some(media_type) => {
                        self.pictures.push(Content::Image { data, media_type });
                    }
                    None => self.below.push_str(&format!(
                        "\n\n{place}: binary content, not shown; read the file if it is needed"
                    )),
                }
                Some(place)
            }
        }
    }

    /// Appends words, apart from what is there: most editors send no space between parts.
    fn append(&mut self, words: &str, separator: &str) {
        // Punctuation stays where it is: "(", a link, and ")," belong together.
        let ends_open = self
            .text
            .ends_with(|c: char| c.is_whitespace() || "([{<\"'`".contains(c));
        let starts_closed =
            words.starts_with(|c: char| c.is_whitespace() || ")]}>,.;:!?\"'`".contains(c));
        if !self.text.is_empty() && !ends_open && !starts_closed {
            self.text.push_str(separator);
        }
        self.text.push_str(words);
    }

    fn input(mut self) -> UserInput {
        self.text.push_str(&self.below);
        UserInput {
            pictures: self.pictures,
            ..UserInput::from(self.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_prompt() {
        let input = input(vec![
            Part::Text("Look at ".to_owned()),
            Part::Link {
                name: "a b.rs".to_owned(),
                uri: "file:///w/a%20b.rs".to_owned(),
            },
            Part::Text(" and ".to_owned()),
            Part::Embedded {
                uri: "file:///w/c.md#L1-L2".to_owned(),
                text: "```\nx\n```".to_owned(),
            },
            Part::Image {
                data: "AA==".to_owned(),
                media_type: "image/png".to_owned(),
            },
        ]);
        assert_eq!(
            input.text,
            "Look at [a b.rs](/w/a b.rs) and /w/c.md (L1-L2)\n\n\
             /w/c.md (L1-L2):\n````\n```\nx\n```\n````"
        );
        assert_eq!(input.pictures.len(), 1);
    }

    fn text(said: &str) -> Part {
        Part::Text(said.to_owned())
    }

    fn link() -> Part {
        Part::Link {
            name: "a.txt".to_owned(),
            uri: "file:///w/a.txt".to_owned(),
        }
    }

    fn selection() -> Part {
        Part::Embedded {
            uri: "file:///w/b.txt#L1-L2".to_owned(),
            text: "beta".to_owned(),
        }
    }

    #[test]
    fn parts_are_set_apart() {
        for (parts, expected) in [
            (vec![text("One."), text("Two.")], "One.\n\nTwo."),
            (vec![text("See"), link()], "See [a.txt](/w/a.txt)"),
            (
                vec![text("See ("), link(), text("), then")],
                "See ([a.txt](/w/a.txt)), then",
            ),
            (vec![link(), text("is it")], "[a.txt](/w/a.txt) is it"),
            (vec![link(), link()], "[a.txt](/w/a.txt) [a.txt](/w/a.txt)"),
            (
                vec![text("Explain this"), selection()],
                "Explain this /w/b.txt (L1-L2)\n\n/w/b.txt (L1-L2):\n```\nbeta\n```",
            ),
        ] {
            assert_eq!(input(parts).text, expected);
        }
    }

    #[test]
    fn a_slash_command_takes_what_comes_with_it() {
        let users = [SlashCommand {
            name: "review".to_owned(),
            description: String::new(),
            hint: None,
            prompt: "Review $ARGUMENTS. List mistakes first.".to_owned(),
        }];
        for (parts, expected) in [
            (
                vec![text("/review "), link()],
                "Review [a.txt](/w/a.txt). List mistakes first.",
            ),
            (
                vec![text("/review"), selection()],
                "Review /w/b.txt (L1-L2). List mistakes first.\n\n\
                 /w/b.txt (L1-L2):\n```\nbeta\n```",
            ),
            (
                vec![link(), text("/review foo")],
                "Review foo [a.txt](/w/a.txt). List mistakes first.",
            ),
        ] {
            let Request::Prompt(input) = read(parts, &users) else {
                panic!("not a prompt for the model: {expected}");
            };
            assert_eq!(input.text, expected);
        }
        let parts = vec![text("/changes "), link()];
        assert!(is_own_command(&parts, &users));
        let Request::Own(name, words) = read(parts, &users) else {
            panic!("not a command");
        };
        assert_eq!((name, words.as_str()), ("changes", "/w/a.txt"));
    }
}
