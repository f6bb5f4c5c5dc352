//! Guards for texts that do match: one that was cut off inside a line while the new text
//! has the complete line, and an addition that is already there.

use super::splice::{Matches, Replacement};
use memchr::{memchr, memrchr};
use std::borrow::Cow;
use std::ops::Range;

/// Reason to refuse an edit that matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The new text repeats the rest of the line in which the old one ends, or its start.
    Repeats {
        /// Offset of the match.
        at: usize,
    },
    /// The file already has what the edit adds.
    AlreadyThere {
        /// Offset of the match.
        at: usize,
    },
}

/// Decision about an edge of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Nothing: the text ends where it was meant to.
    Clear,
    /// The match has to reach this many bytes further.
    Widen(usize),
    /// Unclear: the edit is refused.
    Unclear,
}

/// Returns the replacements for matches, widened to whole lines where the new text repeats
/// the rest of a line.
pub(super) fn guard(
    bytes: &[u8],
    mut found: Matches,
    new: &str,
) -> Result<Vec<Replacement>, Refusal> {
    let new_plain = new.replace("\r\n", "\n");
    let old = found.plain.clone();
    let there = |span: &Range<usize>| is_there(bytes, span, &old, &new_plain);
    if let Some(first) = found.spans.first()
        && found.spans.iter().all(there)
    {
        return Err(Refusal::AlreadyThere { at: first.start });
    }
    let mut widened = Vec::new();
    for span in &found.spans {
        let (before, after) = edges(bytes, span);
        let start = start_edge(&old, &new_plain, &lossy(before));
        let end = end_edge(&old, &new_plain, &lossy(after));
        if start == Edge::Unclear || end == Edge::Unclear {
            return Err(Refusal::Repeats { at: span.start });
        }
        let more = |edge: Edge| match edge {
            Edge::Widen(more) => more,
            _ => 0,
        };
        let (from, to) = (more(start).min(before.len()), more(end).min(after.len()));
        widened.push((span.start - from..span.end + to, from, to));
    }
    if widened.iter().all(|(_, from, to)| from + to == 0) {
        return Ok(found.replacements(bytes, new));
    }
    let mut replacements = Vec::new();
    for (span, _, _) in widened {
        let text = lossy(bytes.get(span.clone()).unwrap_or_default()).replace("\r\n", "\n");
        if text == new_plain {
            return Err(Refusal::AlreadyThere { at: span.start });
        }
        found.plain = text;
        found.spans = vec![span];
        replacements.extend(found.clone().replacements(bytes, new));
    }
    Ok(replacements)
}

/// Whether a repaired text neither repeats the rest of its line nor adds what is there.
pub(super) fn is_clear(bytes: &[u8], span: Range<usize>, old: &str, new: &str) -> bool {
    let (before, after) = edges(bytes, &span);
    // A repair leaves the indentation to the place.
    let before = if before.trim_ascii().is_empty() {
        b""
    } else {
        before
    };
    start_edge(old, new, &lossy(before)) == Edge::Clear
        && end_edge(old, new, &lossy(after)) == Edge::Clear
        && !is_there(bytes, &span, old, new)
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Returns what is in the same line before and after a match.
fn edges<'a>(bytes: &'a [u8], span: &Range<usize>) -> (&'a [u8], &'a [u8]) {
    let before = bytes.get(..span.start).unwrap_or_default();
    let before = before
        .get(memrchr(b'\n', before).map_or(0, |at| at + 1)..)
        .unwrap_or_default();
    let before = before.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(before);
    let matched = bytes.get(span.clone()).unwrap_or_default();
    if matched.ends_with(b"\n") {
        return (before, b"");
    }
    let after = bytes.get(span.end..).unwrap_or_default();
    let end = memchr(b'\n', after).unwrap_or(after.len());
    let after = after.get(..end).unwrap_or_default();
    (before, after.strip_suffix(b"\r").unwrap_or(after))
}

/// Whether the file already has the new text around this match of the old one.
fn is_there(bytes: &[u8], span: &Range<usize>, old: &str, new: &str) -> bool {
    let Some(at) = new.find(old).filter(|_| new.len() > old.len()) else {
        return false;
    };
    let (before, after) = (
        new.get(..at).unwrap_or_default(),
        new.get(at + old.len()..).unwrap_or_default(),
    );
    if !format!("{before}{after}").contains(char::is_alphanumeric) {
        return false;
    }
    let head = bytes.get(..span.start).unwrap_or_default();
    let tail = bytes.get(span.end..).unwrap_or_default();
    ends_with(head, before.as_bytes()) && starts_with(tail, after.as_bytes())
}

/// Whether bytes start with a text, whatever their line endings.
fn starts_with(bytes: &[u8], text: &[u8]) -> bool {
    let mut bytes = bytes.iter().enumerate().filter_map(|(at, byte)| {
        (*byte != b'\r' || bytes.get(at + 1) != Some(&b'\n')).then_some(byte)
    });
    text.iter().all(|byte| bytes.next() == Some(byte))
}

fn ends_with(bytes: &[u8], text: &[u8]) -> bool {
    let mut next = b'\0';
    let mut bytes = bytes.iter().rev().filter(move |byte| {
        let keep = **byte != b'\r' || next != b'\n';
        next = **byte;
        keep
    });
    text.iter().rev().all(|byte| bytes.next() == Some(byte))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Checks the end of a match: `rest` follows it in the line.
fn end_edge(old: &str, new: &str, rest: &str) -> Edge {
    let rest = rest.trim_end();
    if rest.is_empty() || new.is_empty() {
        return Edge::Clear;
    }
    let new = new.trim_end_matches([' ', '\t']);
    let inside_word = old.ends_with(is_word) && rest.starts_with(is_word);
    // The word that the old text cuts goes on in the new one.
    let word_rest = rest.split(|c| !is_word(c)).next().unwrap_or_default();
    let last = old.rsplit('\n').next().unwrap_or(old);
    let cut_word = last.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    let goes_on = inside_word
        && new.split('\n').any(|line| {
            line.match_indices(&format!("{cut_word}{word_rest}"))
                .any(|(at, _)| {
                    let head = line.get(..at).unwrap_or_default();
                    last.trim_start()
                        .strip_suffix(cut_word)
                        .is_some_and(|before| head.ends_with(before.trim_start()))
                })
        });
    if new.ends_with(rest) && !old.ends_with(rest) {
        // Another word with the same end, as in a change of its beginning.
        if inside_word && !goes_on && rest == word_rest {
            return Edge::Clear;
        }
        let line = new.rsplit('\n').next().unwrap_or(new);
        return repeated(last, line, rest, inside_word, &format!("{last}{rest}"));
    }
    if !goes_on {
        return closed(last, new, rest);
    }
    // The complete line, changed: it ends like the one in the file and starts like it.
    let line = new.rsplit('\n').next().unwrap_or(new).trim();
    let whole = format!("{}{rest}", last.trim_start());
    let head = line
        .chars()
        .zip(whole.chars())
        .take_while(|(new, old)| new == old)
        .count();
    let same_end = line.chars().next_back() == rest.chars().next_back();
    if same_end && 2 * head >= whole.chars().count() && !line.ends_with(is_word) {
        Edge::Widen(rest.len())
    } else {
        Edge::Unclear
    }
}

/// Checks whether the new text closes brackets or quotation marks that the old one left
/// open, and that the rest of the line closes, too.
fn closed(last: &str, new: &str, rest: &str) -> Edge {
    let line = new.rsplit('\n').next().unwrap_or(new);
    let closing: String = rest.chars().take_while(|c| NESTING.contains(c)).collect();
    let both = line.ends_with(&closing) && !last.ends_with(&closing);
    let open = balance(last) != balance(line);
    if !closing.is_empty() && both && open && balance(&format!("{last}{closing}")) == balance(line)
    {
        Edge::Widen(closing.len())
    } else {
        Edge::Clear
    }
}

/// Checks the start of a match: `pre` is before it in the line.
fn start_edge(old: &str, new: &str, pre: &str) -> Edge {
    if pre.is_empty() || new.is_empty() {
        return Edge::Clear;
    }
    let own = |text: &str| text.len() - text.trim_start_matches([' ', '\t']).len();
    if pre.trim().is_empty() {
        // The new text has the indentation that the old one left out.
        let line = new.split('\n').next().unwrap_or(new);
        let indented = !old.starts_with([' ', '\t', '\n'])
            && line.starts_with(pre)
            && own(line) == pre.len()
            && !line.trim().is_empty();
        // A single line whose indentation alone changes is meant so.
        let shifted = !new.contains('\n') && new.trim_start() == old;
        return if indented && !shifted {
            Edge::Widen(pre.len())
        } else {
            Edge::Clear
        };
    }
    let inside_word = old.starts_with(is_word) && pre.ends_with(is_word);
    let word_pre = pre.rsplit(|c| !is_word(c)).next().unwrap_or_default();
    let first = old.split('\n').next().unwrap_or(old);
    let cut_word = first.split(|c| !is_word(c)).next().unwrap_or_default();
    let goes_on = inside_word
        && new.split('\n').any(|line| {
            line.match_indices(&format!("{word_pre}{cut_word}"))
                .any(|(at, word)| {
                    let tail = line.get(at + word.len()..).unwrap_or_default();
                    first
                        .trim_end()
                        .strip_prefix(cut_word)
                        .is_some_and(|after| tail.starts_with(after.trim_end()))
                })
        });
    // With or without the indentation.
    let repeats = [pre, pre.trim_start()]
        .into_iter()
        .find(|pre| new.starts_with(pre) && !old.starts_with(pre));
    if let Some(pre) = repeats {
        if inside_word && !goes_on && pre.trim_start() == word_pre {
            return Edge::Clear;
        }
        let line = new.split('\n').next().unwrap_or(new);
        return repeated(first, line, pre, inside_word, &format!("{pre}{first}"));
    }
    if goes_on { Edge::Unclear } else { Edge::Clear }
}

/// Characters that come in pairs.
const NESTING: [char; 9] = ['(', ')', '[', ']', '{', '}', '"', '\'', '`'];

/// Counts what a text leaves open.
fn balance(text: &str) -> [i64; 6] {
    let count = |c: char| i64::try_from(text.matches(c).count()).unwrap_or_default();
    [
        count('(') - count(')'),
        count('[') - count(']'),
        count('{') - count('}'),
        count('"') % 2,
        count('\'') % 2,
        count('`') % 2,
    ]
}

/// Decides about a new text that has the rest of the line: it repeats it, or it has the
/// same characters by chance. `old` and `new` are the lines at this edge, `whole` is the
/// old one with the rest.
fn repeated(old: &str, new: &str, rest: &str, inside_word: bool, whole: &str) -> Edge {
    // Twice is never meant, as with a semicolon.
    let nests = rest.contains(NESTING);
    if inside_word || !nests || rest.chars().filter(|c| is_word(*c)).count() > 1 {
        return Edge::Widen(rest.len());
    }
    let (as_is, widened, now) = (balance(old), balance(whole), balance(new));
    match (now == as_is, now == widened) {
        // The rest closes what the old text left open.
        (_, true) => Edge::Widen(rest.len()),
        (true, false) if rest.trim().chars().all(|c| NESTING.contains(&c)) => Edge::Clear,
        _ => Edge::Unclear,
    }
}

#[cfg(test)]
mod tests;
