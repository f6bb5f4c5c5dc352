//! Laying out text in columns.

/// Columns that help and other pages are wrapped to.
pub(crate) const WIDTH: usize = 80;

/// Returns the first sentence of a text.
pub(crate) fn first_sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(". ")) {
        let end = from + at + 1;
        let next = text
            .get(end..)
            .and_then(|rest| rest.trim_start().chars().next());
        let so_far = text.get(..end).unwrap_or_default();
        let short = so_far.ends_with("e.g.") || so_far.ends_with("i.e.");
        if !short && !next.is_some_and(char::is_lowercase) {
            return text.get(..end).unwrap_or(&text).to_owned();
        }
        from = end;
    }
    text
}

/// Wraps a text at spaces into lines of at most `width` characters. Existing line breaks
/// stay.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        // Unchanged if it fits: several spaces in a row may be deliberate.
        if paragraph.chars().count() <= width {
            lines.push(paragraph.to_owned());
            continue;
        }
        let mut line = String::new();
        for word in paragraph.split(' ') {
            let room = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && room > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// Lays out rows in columns. With a width, the last cell is wrapped within its column.
pub(crate) fn table(rows: &[Vec<String>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns.saturating_sub(1))
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        })
        .collect();
    let indent: usize = widths.iter().map(|width| width + 2).sum();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        let last = row
            .get(widths.len())
            .map(String::as_str)
            .unwrap_or_default();
        let cells = match width {
            Some(width) => wrap(last, width.saturating_sub(indent).max(20)),
            None => vec![last.to_owned()],
        };
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                line.push('\n');
                line.push_str(&" ".repeat(indent));
            }
            line.push_str(cell);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Escapes newlines, so that the text stays on one line.
pub(crate) fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// Quotes a word for a shell. The word may come from a model or a server and contain
/// characters that a shell acts on.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", on_one_line(&word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_does_not_end_a_sentence() {
        assert_eq!(
            first_sentence("Reads, e.g. this.\nThen more."),
            "Reads, e.g. this."
        );
        assert_eq!(first_sentence("One. `two` three."), "One.");
        assert_eq!(first_sentence("No end"), "No end");
    }

    #[test]
    fn the_last_cell_wraps_beside_the_others() {
        let rows = [vec![
            "ab".to_owned(),
            "one two three four five six".to_owned(),
        ]];
        assert_eq!(
            table(&rows, Some(24)),
            "ab  one two three four\n    five six\n"
        );
        assert_eq!(table(&rows, None), "ab  one two three four five six\n");
    }

    #[test]
    fn a_quoted_word_is_inert_in_a_shell() {
        assert_eq!(shell_word("call_1=approve"), "call_1=approve");
        assert_eq!(shell_word("$(id);x=approve"), "'$(id);x=approve'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("a\nb"), r"'a\nb'");
    }
}
