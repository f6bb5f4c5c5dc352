//! Repairing a replacement whose old text is not in the file exactly, if it can mean only
//! one place and only one change.
//!
//! A repair undoes mistakes that models make when they copy a text: line numbers in front,
//! escapes, another indentation, whitespace at the ends of lines, typography, composed and
//! decomposed letters. It never drops, adds or reorders lines, ignores case, or chooses
//! between places.

mod fold;
mod indent;
mod letters;
mod place;
mod rewrite;
mod spelling;

use super::cut;
use super::splice::{self, Endings, Replacement};
use crate::text::decode;
use crate::text::nearest::Haystack;
use place::{Place, Wanted};
use std::ops::Range;

/// Similarity of another place that makes a repair a guess.
const TOO_SIMILAR: f32 = 0.8;

/// A repaired replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repaired {
    pub(super) replacement: Replacement,
    /// Descriptions of what was repaired.
    pub(super) notes: Vec<String>,
}

/// Repairs a replacement in a file, also given as its text is seen; `None` if it could mean more than one change.
pub(super) fn repair(bytes: &[u8], seen: &Haystack<'_>, old: &str, new: &str) -> Option<Repaired> {
    let (old, new) = (decode::lf(old), decode::lf(new));
    let mut only: Option<(Repaired, String)> = None;
    for spelling in spelling::spellings(&old, &new) {
        let Some(found) = spelled(bytes, &spelling) else {
            continue;
        };
        match &only {
            // Two readings that come to the same are one.
            Some((known, _)) if known.replacement == found.replacement => {}
            Some(_) => return None,
            None => only = Some((found, spelling.old)),
        }
    }
    let (repaired, old) = only?;
    let first = splice::line_of(bytes, repaired.replacement.span.start);
    let last = splice::line_of(bytes, repaired.replacement.span.end);
    let rival = seen.has_another(&old, first..=last, TOO_SIMILAR);
    (!rival).then_some(repaired)
}

/// Repairs one spelling of the texts.
fn spelled(bytes: &[u8], spelling: &spelling::Spelling) -> Option<Repaired> {
    let mut notes: Vec<String> = Vec::new();
    if !spelling.note.is_empty() {
        notes.push(spelling.note.to_owned());
        if spelling.old.trim().is_empty() || spelling.old == spelling.new {
            return None;
        }
        let found = splice::find(bytes, &spelling.old);
        match found.spans.as_slice() {
            [] => {}
            [span] => {
                let inside = [span.start, span.end];
                if inside.iter().any(|at| place::cuts_word(bytes, *at))
                    || !is_numbered_place(bytes, span.clone(), spelling)
                {
                    return None;
                }
                let guarded = cut::guard(bytes, found, &spelling.new).ok()?;
                notes.extend(guarded.note());
                let replacement = guarded.replacements.into_iter().next()?;
                return Some(Repaired { replacement, notes });
            }
            _ => return None,
        }
    }
    let wanted = Wanted::new(&spelling.old);
    let place = place::only(bytes, &wanted)?;
    notes.extend(differences(&place, &wanted));
    let replacement = replacement(bytes, &place, &wanted, spelling)?;
    Some(Repaired { replacement, notes })
}

fn replacement(
    bytes: &[u8],
    place: &Place<'_>,
    wanted: &Wanted<'_>,
    spelling: &spelling::Spelling,
) -> Option<Replacement> {
    let (first, last) = (place.rows.first()?, place.rows.last()?);
    let start = if !place.bare_start && first.at_start() {
        first.span.start
    } else {
        first.matched.start
    };
    let end = match (wanted.finished, last.at_end()) {
        (true, _) => last.span.end + last.ending.len(),
        (false, true) => last.span.end,
        (false, false) => last.matched.end,
    };
    let span = start..end;
    if !is_numbered_place(bytes, span.clone(), spelling) {
        return None;
    }
    if !cut::is_clear(bytes, span.clone(), &spelling.old, &spelling.new) {
        return None;
    }
    let ending = Endings::of(bytes).at(span.clone());
    let new = rewrite::content(place, wanted, &spelling.old, &spelling.new, ending)?;
    Some(splice::narrowed(bytes, span, new))
}

/// Whether a place is where the removed line numbers say, or consists of whole lines, as
/// numbered ones do. A few letters elsewhere in a line are a coincidence.
fn is_numbered_place(bytes: &[u8], span: Range<usize>, spelling: &spelling::Spelling) -> bool {
    let Some(number) = spelling.number else {
        return true;
    };
    let before = bytes.get(..span.start).unwrap_or_default();
    let blank = |byte: &&u8| matches!(**byte, b' ' | b'\t');
    let indentation = before.iter().rev().take_while(blank).count();
    let before = before.get(..before.len() - indentation).unwrap_or_default();
    let after = bytes.get(span.end..).unwrap_or_default();
    let whole = (before.is_empty() || before.ends_with(b"\n"))
        && (spelling.old.ends_with('\n')
            || after.is_empty()
            || after.starts_with(b"\n")
            || after.starts_with(b"\r\n"));
    whole || splice::line_of(bytes, span.start) as u64 == number
}

/// Describes how the place differs from the text.
fn differences(place: &Place<'_>, wanted: &Wanted<'_>) -> Vec<String> {
    let mut notes: Vec<String> = place.relation.note().into_iter().collect();
    let pairs = || place.rows.iter().zip(&wanted.lines);
    if pairs().any(|(row, text)| row.line.trail != text.trail && row.at_end()) {
        notes.push("whitespace at the ends of lines ignored".to_owned());
    }
    let letters = |row: &place::Row<'_>, text: &fold::Line<'_>| {
        let from = row.matched.start - row.span.start;
        let to = row.matched.end - row.span.start;
        row.raw.get(from..to) != Some(text.body)
    };
    if pairs().any(|(row, text)| letters(row, text)) {
        let note = "quotation marks, dashes, spaces and accents taken as the file has them";
        notes.push(note.to_owned());
    }
    if wanted.finished && place.rows.last().is_some_and(|row| row.ending.is_empty()) {
        notes.push("the newline after the last line left out".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests;
