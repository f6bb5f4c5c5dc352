//! Combines text, pictures, links and embedded files into one prompt.

use haft::Content;
use haft_agent::UserInput;

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

/// Returns the path of a file, or the URI of anything else.
fn place(uri: &str) -> String {
    let parsed = url::Url::parse(uri).ok();
    let path = parsed.as_ref().and_then(|url| match url.scheme() {
        "file" => url.to_file_path().ok(),
        _ => None,
    });
    let Some(path) = path else {
        return uri.to_owned();
    };
    let lines = parsed.as_ref().and_then(url::Url::fragment);
    let lines = lines.map(|lines| format!(" ({lines})")).unwrap_or_default();
    format!("{}{lines}", path.display())
}

/// Returns the text of the first part, if a slash command may be in it.
pub(crate) fn first_text(parts: &[Part]) -> Option<&str> {
    match parts.first()? {
        Part::Text(text) => Some(text),
        _ => None,
    }
}

/// Combines the parts. Links keep their place in the text; embedded files follow below it.
pub(crate) fn input(parts: Vec<Part>) -> UserInput {
    let mut input = UserInput::default();
    let mut below = String::new();
    for part in parts {
        match part {
            Part::Text(text) => input.text.push_str(&text),
            Part::Image { data, media_type } => {
                input.pictures.push(Content::Image { data, media_type });
            }
            Part::Link { name, uri } => {
                let place = place(&uri);
                let link = match place == name || name.is_empty() {
                    true => place,
                    false => format!("[{name}]({place})"),
                };
                input.text.push_str(&link);
            }
            Part::Embedded { uri, text } => {
                // A fence longer than any in the text.
                let ticks = text.split(|c| c != '`').map(str::len).max();
                let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
                let place = place(&uri);
                input.text.push_str(&place);
                below.push_str(&format!("\n\n{place}:\n{fence}\n{text}\n{fence}"));
            }
            Part::Blob {
                uri,
                media_type,
                data,
            } => {
                let place = place(&uri);
                input.text.push_str(&place);
                match media_type.filter(|kind| kind.starts_with("image/")) {
                    Some(media_type) => {
                        input.pictures.push(Content::Image { data, media_type });
                    }
                    None => below.push_str(&format!(
                        "\n\n{place}: binary content, not shown; read the file if it is needed"
                    )),
                }
            }
        }
    }
    input.text.push_str(&below);
    input
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
}
