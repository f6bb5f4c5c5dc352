//! Diffs: line numbers, colours of the language, a background for what was added or removed,
//! and a stronger one for the words that differ.

#[cfg(test)]
mod tests;

use crate::highlight::{Highlighter, Piece};
use crate::styled_text::{Background, Line, Style};
use std::ops::Range;

/// A row of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Row {
    /// Lines are left out here.
    Gap,
    Same(usize, String),
    Removed(usize, String),
    Added(usize, String),
    /// A remark of the diff, such as a missing newline.
    Note(String),
}

/// Whether the line numbers are those of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Shown,
    /// The diff is about a piece, whose place is not known.
    Hidden,
}

/// Reads a unified diff. File names above the first hunk are left out.
pub(crate) fn parse(diff: &str) -> Vec<Row> {
    // Split at `\n` only: carriage returns belong to the rows of the file.
    let text = diff.strip_suffix('\n').unwrap_or(diff);
    let mut rows = Vec::new();
    let (mut old, mut new) = (1, 1);
    let mut in_hunk = false;
    for row in text.split('\n') {
        let mut letters = row.chars();
        let first = letters.next();
        let rest = letters.as_str().to_owned();
        match first {
            Some('@') if row.starts_with("@@") => {
                if in_hunk {
                    rows.push(Row::Gap);
                }
                in_hunk = true;
                (old, new) = starts(row).unwrap_or((old, new));
            }
            _ if !in_hunk => {}
            Some('-') => {
                rows.push(Row::Removed(old, rest));
                old += 1;
            }
            Some('+') => {
                rows.push(Row::Added(new, rest));
                new += 1;
            }
            Some('\\') => rows.push(Row::Note(rest.trim().to_owned())),
            _ => {
                rows.push(Row::Same(new, rest));
                (old, new) = (old + 1, new + 1);
            }
        }
    }
    rows
}

/// First lines of a hunk, from `@@ -3,4 +5,6 @@`.
fn starts(header: &str) -> Option<(usize, usize)> {
    let mut parts = header.split(' ').skip(1);
    let mut next = |sign| {
        let range = parts.next()?.strip_prefix(sign)?;
        range.split(',').next()?.parse().ok()
    };
    Some((next('-')?, next('+')?))
}

/// The rows of a whole file that was added.
pub(crate) fn of_new_file(content: &str) -> Vec<Row> {
    let rows = content.strip_suffix('\n').unwrap_or(content).split('\n');
    rows.enumerate()
        .map(|(at, row)| Row::Added(at + 1, row.to_owned()))
        .collect()
}

/// Formats rows for a screen with this many columns. `path` decides about the language.
pub(crate) fn lines(rows: &[Row], path: &str, numbers: Numbers, columns: usize) -> Vec<Line> {
    let largest = rows.iter().map(|row| match row {
        Row::Same(at, _) | Row::Removed(at, _) | Row::Added(at, _) => *at,
        Row::Gap | Row::Note(_) => 0,
    });
    let digits = match numbers {
        Numbers::Shown => largest.max().unwrap_or(0).to_string().len().max(2),
        Numbers::Hidden => 0,
    };
    let words = changed_words(rows);
    let (mut before, mut after) = (Highlighter::of_file(path), Highlighter::of_file(path));
    let mut out = Vec::new();
    for (row, word) in rows.iter().zip(words) {
        let (number, sign, text, pieces, grounds) = match row {
            Row::Gap => {
                (before, after) = (Highlighter::of_file(path), Highlighter::of_file(path));
                let gap = format!("{:>digits$}", "⋮");
                out.push(Line::new(&gap, Style::DIM));
                continue;
            }
            Row::Note(note) => {
                let indent = " ".repeat(digits + 2);
                out.push(Line::new(&format!("{indent}{note}"), Style::DIM));
                continue;
            }
            Row::Same(number, text) => {
                let _ = before.line(text);
                (*number, " ", text, after.line(text), None)
            }
            Row::Removed(number, text) => {
                let grounds = (Background::Removed, Background::RemovedWord);
                (*number, "-", text, before.line(text), Some(grounds))
            }
            Row::Added(number, text) => {
                let grounds = (Background::Added, Background::AddedWord);
                (*number, "+", text, after.line(text), Some(grounds))
            }
        };
        let base = grounds.map_or(Style::PLAIN, |(row, _)| Style::PLAIN.on(row));
        let strong = grounds.map_or(Style::PLAIN, |(_, word)| Style::PLAIN.on(word));
        let body = painted(
            Line::default(),
            text,
            &pieces,
            base,
            &word.map(|range| (range, strong)),
        );
        let number = match numbers {
            Numbers::Shown => format!("{number:>digits$} "),
            Numbers::Hidden => String::new(),
        };
        let gutter = digits + usize::from(digits > 0) + 1;
        let room = columns.saturating_sub(gutter).max(8);
        for (at, piece) in body.broken_at(room).into_iter().enumerate() {
            let margin = match at {
                0 => Line::new(&number, Style::DIM).and(sign, base),
                _ => Line::plain(&" ".repeat(gutter)),
            };
            let line = piece.with_margin(margin);
            out.push(match grounds {
                Some((ground, _)) => line.filled(ground),
                None => line,
            });
        }
    }
    out
}

/// Appends a text in colours. `word` is a part with another style.
pub(crate) fn painted(
    mut line: Line,
    text: &str,
    pieces: &[Piece],
    base: Style,
    word: &Option<(Range<usize>, Style)>,
) -> Line {
    let mut ends: Vec<usize> = pieces
        .iter()
        .flat_map(|(range, _)| [range.start, range.end])
        .collect();
    ends.extend(word.iter().flat_map(|(range, _)| [range.start, range.end]));
    ends.push(text.len());
    ends.sort_unstable();
    let mut start = 0;
    for end in ends {
        let Some(part) = text.get(start..end).filter(|part| !part.is_empty()) else {
            continue;
        };
        let piece = pieces.iter().find(|(range, _)| range.contains(&start));
        let mut style = piece.map_or(base, |(_, colour)| base.and(Style::of(*colour)));
        if let Some((range, strong)) = word
            && range.contains(&start)
        {
            style = style.and(*strong);
        }
        line.push(part, style);
        start = end;
    }
    line
}

/// The words that differ, for each row: removed rows are compared with the added rows that
/// follow them.
fn changed_words(rows: &[Row]) -> Vec<Option<Range<usize>>> {
    let mut words = vec![None; rows.len()];
    let mut at = 0;
    while at < rows.len() {
        let count = |from: usize, is: fn(&Row) -> bool| {
            rows.iter().skip(from).take_while(|row| is(row)).count()
        };
        let removed = count(at, |row| matches!(row, Row::Removed(..)));
        let added = count(at + removed, |row| matches!(row, Row::Added(..)));
        // Blocks of another length are rewritten, and comparing their lines would mislead.
        if removed == added {
            for pair in at..at + removed {
                if let (Some(Row::Removed(_, old)), Some(Row::Added(_, new))) =
                    (rows.get(pair), rows.get(pair + removed))
                    && let Some((old, new)) = difference(old, new)
                    && let Some(place) = words.get_mut(pair)
                {
                    *place = Some(old);
                    if let Some(place) = words.get_mut(pair + removed) {
                        *place = Some(new);
                    }
                }
            }
        }
        at += (removed + added).max(1);
    }
    words
}

/// The parts of two lines that differ, in whole words; none if little is the same.
fn difference(old: &str, new: &str) -> Option<(Range<usize>, Range<usize>)> {
    let mut same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    let mut start: usize = same.by_ref().map(|(c, _)| c.len_utf8()).sum();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let head = old.get(..start)?;
    start = head.trim_end_matches(is_word).len();
    let (rest_old, rest_new) = (old.get(start..)?, new.get(start..)?);
    let same = rest_old.chars().rev().zip(rest_new.chars().rev());
    let mut end: usize = same
        .take_while(|(a, b)| a == b)
        .map(|(c, _)| c.len_utf8())
        .sum();
    let tail = old.get(old.len() - end..)?;
    end = tail.trim_start_matches(is_word).len();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let kept = old.get(..start)?.trim().len() + old.get(old_end..)?.trim().len();
    let is_similar = kept * 4 >= old.trim().len().max(new.trim().len());
    is_similar.then_some((start..old_end, start..new_end))
}
