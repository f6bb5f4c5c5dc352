//! Front matter as people write it, where YAML would want quotes.

/// Reads front matter that begins on the second line of its file. Descriptions are taken as
/// people mean them, and if the text is not valid YAML as it stands, so are other values.
///
/// # Errors
/// Returns what the parser has against the text as it was written. Lines are counted from the
/// beginning of the file.
pub fn read<T, E>(front: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, E> {
    let below = |text: &str| parse(&format!("\n{text}"));
    below(&quoted(front, Which::Descriptions))
        .or_else(|_| below(front))
        .or_else(|error| below(&quoted(front, Which::All)).map_err(|_| error))
}

/// Which values get quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Descriptions that YAML would read as a list, an alias or half a comment:
    /// `description: Issue #5: fix`.
    Descriptions,
    /// Those too, and every plain value that has a colon, which YAML takes for another key:
    /// `title: Deploys: to prod`.
    All,
}

/// The same front matter, line by line, with quotes around some of its plain values.
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
        // A plain value may go on in lines that are indented.
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

/// How far the key of a line is from its beginning.
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

/// A line up to its colon and the value behind it, if that is to get quotes.
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
    // A list has no place there; one word after a star is an alias.
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
    fn plain_values_get_quotes_and_the_rest_stays() {
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
        let kept = "list: [a, b]\ntext: |\n  a: b: c\nquoted: \"a: b\"\n";
        assert_eq!(quoted(kept, Which::All), kept);
    }

    #[test]
    fn descriptions_mean_what_they_say() {
        for description in ["Issue #5: fix", "[beta] Deploys it", "*bold* words", "C #1"] {
            let given = format!("a: b\ndescription: {description}\n");
            let wanted = format!("a: b\ndescription: \"{description}\"\n");
            assert_eq!(quoted(&given, Which::Descriptions), wanted);
        }
        for kept in [
            "description: Deploys # a comment\n",
            "description: *common\n",
            "description: {type: string}\n",
            "description: \"a #5\"\n",
            "description: |\n  description: [x]\n",
            "title: Deploys #5\n",
        ] {
            assert_eq!(quoted(kept, Which::Descriptions), kept);
        }
    }

    #[test]
    fn what_is_read_begins_on_the_second_line_and_falls_back_to_what_was_written() {
        let read = read("a: b\n", |text| match text {
            "\na: b\n" => Ok(()),
            other => Err(other.to_owned()),
        });
        assert_eq!(read, Ok(()));
    }
}
