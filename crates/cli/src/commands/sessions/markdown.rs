//! Formats a session as Markdown.

use super::transcript::{self, Part};
use haft::ops::text::decode::visible;

/// Formats a part.
pub(super) fn of(piece: &Part) -> String {
    match piece {
        Part::Session(info) => format!(
            "# {}\n\nSession `{}` · {}\n\n",
            on_a_line(info.title.as_deref().unwrap_or("Session")),
            info.id,
            on_a_line(&transcript::about(info))
        ),
        Part::Words { text, .. } if text.is_empty() => String::new(),
        Part::Words { who, text, .. } => {
            let quoted: String = match *who {
                "thinking" => text.lines().map(|line| format!("> {line}\n")).collect(),
                _ => format!("{text}\n"),
            };
            format!("## {}\n\n{}\n", capital(who), visible(&quoted))
        }
        Part::Call { tool, arguments } => {
            format!("**{}**\n\n{}\n", on_a_line(tool), fenced("json", arguments))
        }
        Part::Result { text, is_error, .. } => {
            let word = if *is_error { "Failed:" } else { "Result:" };
            format!("{word}\n\n{}\n", fenced("text", text))
        }
        Part::Changes { summary, lines } => {
            let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
            format!("**changed:** {summary}\n\n{lines}\n")
        }
        Part::Unknown { call_id, note } => format!("*Call {}: {note}.*\n\n", on_a_line(call_id)),
    }
}

/// Formats a code block whose fence is longer than any in the text.
fn fenced(language: &str, text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| {
            line.trim_start()
                .bytes()
                .take_while(|byte| *byte == b'`')
                .count()
        })
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!(
        "{fence}{language}\n{}\n{fence}\n",
        visible(text).trim_end_matches('\n')
    )
}

fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_in_the_text_does_not_end_the_block() {
        let shown = fenced("text", "a\n````\n# not a heading");
        assert_eq!(shown, "`````text\na\n````\n# not a heading\n`````\n");
    }
}
