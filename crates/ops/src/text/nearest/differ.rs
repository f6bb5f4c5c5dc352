//! Describing the differences between a line to find and the line in the file.

use similar::{Algorithm, DiffTag, capture_diff_slices};

use super::fold::{loose, lower, name, plain, similarity};
use crate::text::decode::is_deceptive;

/// Maximum number of characters of a line to quote.
const MAX_QUOTED: usize = 80;

/// Maximum length of a text to compare character by character.
const MAX_CHARS: usize = 4_096;

/// The ends of the line to find that may be within a line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    None,
    Start,
    End,
    Both,
}

impl Edges {
    pub(super) fn start(self) -> bool {
        matches!(self, Self::Start | Self::Both)
    }

    pub(super) fn end(self) -> bool {
        matches!(self, Self::End | Self::Both)
    }

    /// Whether the file's line contains the line to find exactly.
    pub(super) fn fit(self, wanted: &str, found: &str) -> bool {
        match self {
            Self::None => wanted == found,
            Self::Start => found.ends_with(wanted),
            Self::End => found.starts_with(wanted),
            Self::Both => found.contains(wanted),
        }
    }
}

/// Differences in one line.
#[derive(Default)]
pub(super) struct Differences {
    /// One clause for each.
    pub(super) clauses: Vec<String>,
    /// The first character of the file's line that differs.
    pub(super) column: Option<usize>,
    /// Whether one of them is about indentation.
    pub(super) indentation: bool,
}

impl Differences {
    fn add(&mut self, column: usize, text: String) {
        self.column.get_or_insert(column);
        self.clauses.push(text);
    }
}

/// Describes the differences between a line to find and a line of the file.
pub(super) fn describe(wanted: &str, found: &str, edges: Edges) -> Differences {
    let mut differences = Differences::default();
    if edges.fit(wanted, found) {
        return differences;
    }
    if wanted.trim().is_empty() || found.trim().is_empty() {
        differences.add(0, blank(wanted, found));
        return differences;
    }
    let (wanted_indent, wanted_body, wanted_end) = parts(wanted);
    let (found_indent, found_body, found_end) = parts(found);
    // A text that starts within a line may omit the indentation or have only its end.
    let begins_within = edges.start() && found_indent.ends_with(wanted_indent);
    // The indentation of a completely different text is irrelevant.
    let another = edges == Edges::None && similarity(wanted_body, found_body) < 0.4;
    if wanted_indent != found_indent && !begins_within && !another {
        differences.indentation = true;
        let (wanted, found) = (whitespace(wanted_indent), whitespace(found_indent));
        let none = || "no indentation".to_owned();
        let text = format!(
            "{} wanted, {} found",
            wanted.unwrap_or_else(none),
            found.unwrap_or_else(none)
        );
        differences.add(0, text);
    }
    let body_at = found_indent.chars().count();
    body(&mut differences, wanted_body, found_body, body_at, edges);
    let ends_within = edges.end() && found_end.starts_with(wanted_end);
    if wanted_end != found_end && !ends_within {
        let at = body_at + found_body.chars().count();
        let none = || "no trailing whitespace".to_owned();
        let wanted =
            whitespace(wanted_end).map_or_else(none, |space| format!("{space} at the end"));
        let found = whitespace(found_end).map_or_else(none, |space| format!("{space} at the end"));
        differences.add(at, format!("{wanted} wanted, {found} found"));
    }
    differences
}

fn blank(wanted: &str, found: &str) -> String {
    let side = |text: &str| match (text.is_empty(), text.trim().is_empty()) {
        (true, _) => "an empty line".to_owned(),
        (_, true) => format!("a line of {}", whitespace(text).unwrap_or_default()),
        _ => quote(text, 0),
    };
    if found.trim().is_empty() {
        return format!("{} wanted, {} found", side(wanted), side(found));
    }
    format!("{} wanted", side(wanted))
}

/// Splits a text into leading whitespace, body and trailing whitespace.
fn parts(text: &str) -> (&str, &str, &str) {
    let rest = text.trim_start();
    let body = rest.trim_end();
    let indent = text.strip_suffix(rest).unwrap_or_default();
    let end = rest.strip_prefix(body).unwrap_or_default();
    (indent, body, end)
}

/// Describes whitespace in order, as in `2 tabs and 1 space`; `None` if there is none.
pub(crate) fn whitespace(text: &str) -> Option<String> {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for c in text.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == c => *count += 1,
            _ => runs.push((c, 1)),
        }
    }
    let named = |&(c, count): &(char, usize)| {
        let plural = if count == 1 { "" } else { "s" };
        match c {
            ' ' => format!("{count} space{plural}"),
            '\t' => format!("{count} tab{plural}"),
            '\r' => format!("{count} carriage return{plural}"),
            other => format!("{count} of {}", name(other)),
        }
    };
    // More than four runs would be confusing, so only the number of each kind is given.
    if runs.len() > 4 {
        runs.sort_by_key(|(c, _)| *c);
        runs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }
    let (last, before) = runs.split_last()?;
    if before.is_empty() {
        return Some(named(last));
    }
    let before: Vec<String> = before.iter().map(named).collect();
    Some(format!("{} and {}", before.join(", "), named(last)))
}

/// Compares the text between leading and trailing whitespace.
fn body(differences: &mut Differences, wanted: &str, found: &str, body_at: usize, edges: Edges) {
    if edges.fit(wanted, found) {
        return;
    }
    let (found, narrowed_at) = narrow(wanted, found, edges);
    if wanted == found {
        return;
    }
    let at = wanted
        .chars()
        .zip(found.chars())
        .take_while(|(a, b)| a == b)
        .count();
    let column = body_at + narrowed_at + at;
    let same = |map: fn(char) -> Option<char>| {
        wanted
            .chars()
            .filter_map(map)
            .eq(found.chars().filter_map(map))
    };
    if same(|c| Some(plain(c))) {
        let pairs = wanted.chars().zip(found.chars()).filter(|(a, b)| a != b);
        let mut pairs: Vec<String> = pairs
            .map(|(a, b)| format!("{} wanted, {} found", name(a), name(b)))
            .collect();
        pairs.dedup();
        pairs.truncate(3);
        differences.add(column, pairs.join("; "));
    } else if same(|c| (!is_deceptive(c)).then_some(c)) {
        let hidden = |text: &str| text.chars().find(|c| is_deceptive(*c)).map(name);
        let none = || "no invisible character".to_owned();
        let (wanted, found) = (
            hidden(wanted).unwrap_or_else(none),
            hidden(found).unwrap_or_else(none),
        );
        differences.add(column, format!("{wanted} wanted, {found} found"));
    } else if same(|c| (!c.is_whitespace()).then_some(c)) {
        let (wanted, found) = (seen(&quote(wanted, at)), seen(&quote(found, at)));
        differences.add(
            column,
            format!("whitespace differs: {wanted} wanted, {found} found"),
        );
    } else {
        // The line that was found is shown above, and the model knows its own text.
        let clause = if same(|c| Some(lower(c))) {
            "letter case differs".to_owned()
        } else {
            format!("{} wanted", quote(wanted, at))
        };
        differences.add(column, clause);
    }
}

/// Makes spaces and tabs visible.
fn seen(text: &str) -> String {
    text.replace(' ', "\u{b7}").replace('\t', "\u{2192}")
}

/// Returns the part of the file's line that corresponds to the text to find, which may
/// start or end within a line, and its offset.
fn narrow<'a>(wanted: &str, found: &'a str, edges: Edges) -> (&'a str, usize) {
    let whole = (found, 0);
    if edges == Edges::None || wanted.len() > MAX_CHARS || found.len() > MAX_CHARS {
        return whole;
    }
    let wanted_loose: Vec<char> = loose(wanted).map(|(_, c)| c).collect();
    let found_loose: Vec<(usize, char)> = loose(found).collect();
    let fits = |part: &[(usize, char)]| part.iter().map(|(_, c)| c).eq(&wanted_loose);
    let count = wanted_loose.len().max(1);
    let part = match edges {
        Edges::Start => found_loose
            .len()
            .checked_sub(count)
            .and_then(|at| found_loose.get(at..))
            .filter(|p| fits(p)),
        Edges::End => found_loose.get(..count).filter(|part| fits(part)),
        _ => found_loose.windows(count).find(|part| fits(part)),
    };
    let range = match part {
        Some([(only, _)]) => Some((*only, *only)),
        Some([(first, _), .., (last, _)]) => Some((*first, *last)),
        _ => alike(wanted, found),
    };
    let Some((first, last)) = range else {
        return whole;
    };
    let first = if edges.start() { first } else { 0 };
    let bytes_at = |index: usize| {
        found
            .char_indices()
            .nth(index)
            .map_or(found.len(), |(at, _)| at)
    };
    let end = if edges.end() {
        bytes_at(last + 1)
    } else {
        found.len()
    };
    found
        .get(bytes_at(first)..end)
        .map_or(whole, |part| (part, first))
}

/// Returns the first and last character that both texts share, if they are close to each
/// other; a single shared letter elsewhere is a coincidence.
fn alike(wanted: &str, found: &str) -> Option<(usize, usize)> {
    let (wanted, found): (Vec<char>, Vec<char>) =
        (wanted.chars().collect(), found.chars().collect());
    if wanted.len() > 1_000 || found.len() > 1_000 {
        return None;
    }
    let operations = capture_diff_slices(Algorithm::Myers, &wanted, &found);
    let mut same = operations
        .iter()
        .filter(|op| op.tag() == DiffTag::Equal && op.new_range().len() > 2);
    let first = same.next()?;
    let last = same.next_back().unwrap_or(first);
    // The parts of the text to find outside the shared range belong to it, too.
    let start = first
        .new_range()
        .start
        .saturating_sub(first.old_range().start);
    let after = wanted.len() - last.old_range().end;
    let end = (last.new_range().end + after).min(found.len());
    (end > start && end - start <= wanted.len() * 3 / 2 + 8).then(|| (start, end - 1))
}

/// Quotes a text in backquotes, shortened around the character at `at` and on a single
/// line.
pub(super) fn quote(text: &str, at: usize) -> String {
    let text = shorten(text, at, MAX_QUOTED);
    format!("`{}`", text.replace('\r', "\\r").replace('\n', "\\n"))
}

/// Returns at most `chars` characters of a line around the one at `at`.
pub(super) fn shorten(text: &str, at: usize, chars: usize) -> String {
    let total = text.chars().count();
    if total <= chars {
        return text.to_owned();
    }
    let start = at.saturating_sub(chars / 2).min(total - chars);
    let part: String = text.chars().skip(start).take(chars).collect();
    let before = if start > 0 { "\u{2026}" } else { "" };
    let after = if start + chars < total {
        "\u{2026}"
    } else {
        ""
    };
    format!("{before}{part}{after}")
}
