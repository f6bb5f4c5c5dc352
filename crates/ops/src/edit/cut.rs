//! Guards for texts that do match: one that was cut off inside a line while the new text
//! has the complete line, and an addition that is already there.

use super::splice::{self, Endings, Matches, Replacement};
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

/// Replacements that repeat nothing.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) replacements: Vec<Replacement>,
    /// Whether they reach further than the matches.
    pub(super) widened: bool,
}

impl Guarded {
    /// Description of the repair; `None` if nothing was repaired.
    pub(super) fn note(&self) -> Option<String> {
        let note = "the part of the line that the new text repeats was replaced, too";
        self.widened.then(|| note.to_owned())
    }
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

impl Edge {
    /// Returns the number of bytes to widen the match by; `None` if that is unclear.
    fn bytes(self) -> Option<usize> {
        match self {
            Self::Clear => Some(0),
            Self::Widen(bytes) => Some(bytes),
            Self::Unclear => None,
        }
    }
}

/// Returns the replacements for matches, widened to whole lines where the new text repeats
/// the rest of a line.
pub(super) fn guard(bytes: &[u8], found: Matches, new: &str) -> Result<Guarded, Refusal> {
    let new_plain = new.replace("\r\n", "\n");
    let old = found.plain.clone();
    let there = |span: &Range<usize>| is_there(bytes, span, &old, &new_plain);
    if let Some(first) = found.spans.first()
        && found.spans.iter().all(there)
    {
        return Err(Refusal::AlreadyThere { at: first.start });
    }
    let reach = reach(&old, &new_plain);
    let mut widened: Vec<Range<usize>> = Vec::with_capacity(found.spans.len());
    let mut changed = false;
    for span in &found.spans {
        let (before, after) = edges(bytes, span, reach);
        let start = before.checked(start_edge(&old, &new_plain, &before.text));
        let end = after.checked(end_edge(&old, &new_plain, &after.text));
        let (Some(from), Some(to)) = (start.bytes(), end.bytes()) else {
            return Err(Refusal::Repeats { at: span.start });
        };
        let wide = span.start - from..span.end + to;
        changed |= wide != *span;
        if widened.last().is_some_and(|last| last.end > wide.start) {
            return Err(Refusal::Repeats { at: span.start });
        }
        widened.push(wide);
    }
    if !changed {
        return Ok(Guarded {
            replacements: found.replacements(bytes, new),
            widened: false,
        });
    }
    let mut endings = Endings::of(bytes);
    let several = widened.len() > 1;
    let replacements = widened.into_iter().map(|span| {
        let text = lossy(bytes.get(span.clone()).unwrap_or_default()).replace("\r\n", "\n");
        let at = span.start;
        match text == new_plain {
            true if several => Err(Refusal::Repeats { at }),
            true => Err(Refusal::AlreadyThere { at }),
            false => Ok(splice::replacement(
                bytes,
                span,
                &text,
                &new_plain,
                &mut endings,
            )),
        }
    });
    Ok(Guarded {
        replacements: replacements.collect::<Result<_, _>>()?,
        widened: true,
    })
}

/// Returns how far to look at each side of a match. What is longer than both texts cannot
/// be repeated by them. A line may have megabytes and many matches.
fn reach(old: &str, new: &str) -> usize {
    2 * (old.len() + new.len()) + 256
}

/// Whether a repaired text neither repeats the rest of its line nor adds what is there.
pub(super) fn is_clear(bytes: &[u8], span: Range<usize>, old: &str, new: &str) -> bool {
    let (before, after) = edges(bytes, &span, reach(old, new));
    // A repair leaves the indentation to the place.
    let before = if before.text.trim().is_empty() {
        ""
    } else {
        &before.text
    };
    start_edge(old, new, before) == Edge::Clear
        && end_edge(old, new, &after.text) == Edge::Clear
        && !is_there(bytes, &span, old, new)
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The part of a line before or after a match.
struct Side<'a> {
    text: Cow<'a, str>,
    /// Whether the text is the bytes of the file.
    exact: bool,
}

impl<'a> Side<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let text = lossy(bytes);
        let exact = matches!(text, Cow::Borrowed(_));
        Self { text, exact }
    }

    /// Refuses to widen a match over bytes that the new text cannot have.
    fn checked(&self, edge: Edge) -> Edge {
        match edge {
            Edge::Widen(_) if !self.exact => Edge::Unclear,
            edge => edge,
        }
    }
}

/// Stands for the part of a line that is too far away.
const FAR: char = char::REPLACEMENT_CHARACTER;

/// Returns what is in the same line before and after a match, at most `reach` bytes of it.
fn edges<'a>(bytes: &'a [u8], span: &Range<usize>, reach: usize) -> (Side<'a>, Side<'a>) {
    let from = span.start.saturating_sub(reach);
    let before = bytes.get(from..span.start).unwrap_or_default();
    let newline = memrchr(b'\n', before);
    let before = before
        .get(newline.map_or(0, |at| at + 1)..)
        .unwrap_or_default();
    let before = match (newline, from) {
        (None, 0) => Side::of(before.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(before)),
        (None, _) => {
            // The reach may end inside a character.
            let part = |byte: &&u8| (0x80..0xc0).contains(*byte);
            let split = before.iter().take(3).take_while(part).count();
            let side = Side::of(before.get(split..).unwrap_or_default());
            Side {
                text: format!("{FAR}{}", side.text).into(),
                ..side
            }
        }
        _ => Side::of(before),
    };
    let matched = bytes.get(span.clone()).unwrap_or_default();
    if matched.ends_with(b"\n") {
        return (before, Side::of(b""));
    }
    let after = bytes.get(span.end..).unwrap_or_default();
    let near = after.get(..reach.min(after.len())).unwrap_or_default();
    let after = match memchr(b'\n', near) {
        None if near.len() < after.len() => {
            let whole = match std::str::from_utf8(near) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => near.len(),
            };
            let side = Side::of(near.get(..whole).unwrap_or_default());
            Side {
                text: format!("{}{FAR}", side.text).into(),
                ..side
            }
        }
        newline => {
            let line = near.get(..newline.unwrap_or(near.len()));
            let line = line.unwrap_or_default();
            Side::of(line.strip_suffix(b"\r").unwrap_or(line))
        }
    };
    (before, after)
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
    let line = new.rsplit('\n').next().unwrap_or(new);
    if old.ends_with(rest) && line.trim_start() == format!("{last}{rest}").trim_start() {
        // The rest is one more of the same, such as the second of two brackets.
        let (as_is, widened) = (balance(old), balance(&format!("{old}{rest}")));
        return match balance(new) {
            now if now == widened && now != as_is => Edge::Widen(rest.len()),
            now if now == as_is => Edge::Clear,
            _ => Edge::Unclear,
        };
    }
    if new.ends_with(rest) && !old.ends_with(rest) {
        // Another word with the same end: a change of its beginning, or of the whole word.
        if inside_word && !goes_on && rest == word_rest {
            return Edge::Unclear;
        }
        return repeated(last, line, rest, inside_word, &format!("{last}{rest}"));
    }
    if !goes_on {
        return closed(last, new, rest);
    }
    // The complete line, changed: it ends like the one in the file and starts like it.
    let line = line.trim();
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
            return Edge::Unclear;
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
