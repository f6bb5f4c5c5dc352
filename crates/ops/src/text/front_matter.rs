//! Front matter as people write it, even where YAML would require quotes.

/// Front matter without the line `---` that ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed;

/// Splits a text into its front matter, which lies between two lines `---`, and the rest.
/// The first is `None` if the text does not start with such a line.
///
/// # Errors
/// [`Unclosed`] if the second line is missing.
pub fn split(text: &str) -> Result<(Option<&str>, &str), Unclosed> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Ok((None, text));
    };
    let inside: usize = lines.take_while(|line| !is_fence(line)).map(str::len).sum();
    let rest = text.get(first.len()..).unwrap_or_default();
    let (front, below) = rest.split_at_checked(inside).unwrap_or_default();
    if below.is_empty() {
        return Err(Unclosed);
    }
    let (_, body) = below.split_once('\n').unwrap_or_default();
    Ok((Some(front), body))
}

/// Reads front matter that starts on the second line of its file. Descriptions are read as
/// plain text, and if the text is not valid YAML, so are other values.
///
/// # Errors
/// The parser's error about the original text. Lines are counted from the start of the
/// file.
pub fn read<T, E>(front: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, E> {
    let below = |text: &str| parse(&format!("\n{text}"));
    below(&quoted(front, Which::Descriptions))
        .or_else(|_| below(front))
        .or_else(|error| below(&quoted(front, Which::All)).map_err(|_| error))
}

/// The values to quote.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Descriptions that YAML would read as a list, an alias or a partial comment:
    /// `description: Issue #5: fix`.
    Descriptions,
    /// Also every plain value with a colon, which YAML would take for another key: `title:
    /// Deploys: to prod`.
    All,
}

/// Returns the front matter with quotes around some of its plain values.
fn quoted(front: &str, which: Which) -> String {
    let mut out = String::with_capacity(front.len() + 16);
    let mut lines = front.lines().peekable();
    while let Some(line) = lines.next() {
        let indent = indent(line);
        let is_below = |next: &&str| next.trim().is_empty() || self::indent(next) > indent;
        let Some((start, value)) = plain(line, which) else {
            out.push_str(line);
            out.push('\n');
            // The lines of a block are text, whatever they look like.
            if starts_block(line) {
                while let Some(text) = lines.next_if(is_below) {
                    out.push_str(text);
                    out.push('\n');
                }
            }
            continue;
        };
        let mut value = value.to_owned();
        let mut joined = 0;
        // A plain value may continue on indented lines.
        while let Some(more) = lines.next_if(|next| is_below(next) && !next.trim().is_empty()) {
            value.push(' ');
            value.push_str(more.trim());
            joined += 1;
        }
        let escaped = value.trim_end().replace('\\', "\\\\").replace('"', "\\\"");
        out.push_str(&format!("{start}: \"{escaped}\"\n"));
        out.push_str(&"\n".repeat(joined));
    }
    out
}

/// Returns the indentation of the key in a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-']).len()
}

fn starts_block(line: &str) -> bool {
    let value = line.split_once(": ").map(|(_, value)| value.trim());
    value.is_some_and(|value| {
        value.starts_with(['|', '>'])
            && value
                .chars()
                .skip(1)
                .all(|c| "+-".contains(c) || c.is_ascii_digit())
    })
}

/// Splits a line at its colon if the value needs quotes.
fn plain(line: &str, which: Which) -> Option<(&str, &str)> {
    let (start, value) = line.split_once(": ")?;
    let key = start.trim_start_matches([' ', '-']);
    let is_key = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let value = value.trim();
    let is_plain = !value.starts_with(|c| "\"'[{|>&*!#".contains(c));
    let has_colon = value.contains(": ") || value.ends_with(':');
    // A description cannot be a list. A single word after a star is an alias.
    let is_markup =
        value.starts_with('[') || (value.starts_with('*') && value.contains([' ', ',', '.', ':']));
    let is_cut = value
        .split(" #")
        .skip(1)
        .any(|after| after.starts_with(|c: char| !c.is_whitespace()));
    let is_misread = key == "description" && (is_markup || (is_plain && is_cut));
    let is_meant = is_misread || (which == Which::All && is_plain && has_colon);
    (is_key && is_meant).then_some((start, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_lies_between_two_lines() {
        for (text, front, body) in [
            ("---\na: 1\n---\nBody", Some("a: 1\n"), "Body"),
            (
                "---\na: 1\n----\nb\n---\nBody",
                Some("a: 1\n----\nb\n"),
                "Body",
            ),
            ("--- \n---\nBody\n", Some(""), "Body\n"),
            ("---\na: 1\n---", Some("a: 1\n"), ""),
            ("# Title\n---\n", None, "# Title\n---\n"),
            ("---- \n---\n", None, "---- \n---\n"),
            ("", None, ""),
        ] {
            assert_eq!(split(text), Ok((front, body)), "{text:?}");
        }
        for open in ["---", "---\n", "---\na: 1\n\nBody\n"] {
            assert_eq!(split(open), Err(Unclosed), "{open:?}");
        }
    }

    #[test]
    fn plain_values_get_quotes_and_others_are_unchanged() {
        for (given, wanted) in [
            (
                "description: Deploys: to prod\nparameters:\n  type: object\n",
                "description: \"Deploys: to prod\"\nparameters:\n  type: object\n",
            ),
            (
                "description: Say \"hi\": twice\n  and more\nname: x\n",
                "description: \"Say \\\"hi\\\": twice and more\"\n\nname: x\n",
            ),
            (
                "parameters:\n  properties:\n    a:\n      description: what: ever\n      type: string\n",
                "parameters:\n  properties:\n    a:\n      description: \"what: ever\"\n      type: string\n",
            ),
        ] {
            assert_eq!(quoted(given, Which::All), wanted);
        }
        let unchanged = "list: [a, b]\ntext: |\n  a: b: c\nquoted: \"a: b\"\n";
        assert_eq!(quoted(unchanged, Which::All), unchanged);
    }

    #[test]
    fn descriptions_are_plain_text() {
        for description in ["Issue #5: fix", "[beta] Deploys it", "*bold* words", "C #1"] {
            let given = format!("a: b\ndescription: {description}\n");
            let wanted = format!("a: b\ndescription: \"{description}\"\n");
            assert_eq!(quoted(&given, Which::Descriptions), wanted);
        }
        for unchanged in [
            "description: Deploys # a comment\n",
            "description: *common\n",
            "description: {type: string}\n",
            "description: \"a #5\"\n",
            "description: |\n  description: [x]\n",
            "title: Deploys #5\n",
        ] {
            assert_eq!(quoted(unchanged, Which::Descriptions), unchanged);
        }
    }

    #[test]
    fn errors_are_about_the_original_text_counted_from_line_two() {
        let read = read("a: b\n", |text| match text {
            "\na: b\n" => Ok(()),
            other => Err(other.to_owned()),
        });
        assert_eq!(read, Ok(()));
    }
}
