//! Writing the new text into the place that was found: lines that stay keep the file's
//! bytes, lines that change take over its indentation, typography and Unicode form.

use super::fold::Line;
use super::indent::Relation;
use super::letters::{Letters, difference};
use super::place::{Place, Row, Wanted};
use similar::DiffOp;
use std::collections::HashSet;

/// Returns the bytes that replace the place from the first matched byte on; `None` if the
/// new text could mean two things.
pub(super) fn content(
    place: &Place<'_>,
    wanted: &Wanted<'_>,
    old: &str,
    new: &str,
    ending: &str,
) -> Option<Vec<u8>> {
    if new.is_empty() {
        return Some(Vec::new());
    }
    // Whether the last line keeps its newline would be a guess.
    if wanted.finished != new.ends_with('\n') {
        return None;
    }
    let old_lines: Vec<&str> = old.strip_suffix('\n').unwrap_or(old).split('\n').collect();
    let new_lines: Vec<&str> = new.strip_suffix('\n').unwrap_or(new).split('\n').collect();
    let writer = Writer {
        place,
        wanted,
        letters: Letters::of(place, wanted)?,
        scheme: scheme(place, wanted, &old_lines, &new_lines)?,
        extra_trail: place
            .rows
            .iter()
            .zip(&wanted.lines)
            .any(|(row, text)| !text.trail.is_empty() && row.line.trail.is_empty()),
    };
    writer.write(&old_lines, &new_lines, ending)
}

/// Owner of the indentation that the new text uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// That of the old text: it is converted.
    Text,
    /// That of the file: it stays.
    File,
}

/// Finds out whose indentation the new text uses; `None` if it may be either.
fn scheme(
    place: &Place<'_>,
    wanted: &Wanted<'_>,
    old_lines: &[&str],
    new_lines: &[&str],
) -> Option<Scheme> {
    let indents = || {
        let lines = new_lines.iter().map(|line| Line::of(line.as_bytes()));
        let skip = usize::from(place.bare_start);
        lines
            .skip(skip)
            .filter(|line| !line.is_blank())
            .map(|line| line.indent.into_owned())
    };
    match place.relation {
        Relation::Same => return Some(Scheme::Text),
        Relation::TabsInFile(_) | Relation::TabsInText(_) => {
            let (tabs, spaces) = (
                indents().any(|indent| indent.contains('\t')),
                indents().any(|indent| indent.contains(' ')),
            );
            let in_file = matches!(place.relation, Relation::TabsInFile(_));
            return match (tabs, spaces) {
                // Nothing shows how the new text would be indented.
                (true, true) | (false, false) => None,
                (true, false) if in_file => Some(Scheme::File),
                (false, true) if !in_file => Some(Scheme::File),
                _ => Some(Scheme::Text),
            };
        }
        Relation::Deeper(_) | Relation::Shallower(_) => {}
    }
    let skip = usize::from(place.bare_start);
    let pairs = wanted.lines.iter().zip(&place.rows).skip(skip);
    let (text, row) = pairs
        .clone()
        .find(|(text, row)| !text.is_blank() && !row.line.is_blank())?;
    let Some(first) = indents().next() else {
        return Some(Scheme::Text);
    };
    let known: HashSet<&str> = new_lines.iter().copied().collect();
    let shared = old_lines
        .iter()
        .skip(skip)
        .any(|line| !line.trim().is_empty() && known.contains(line));
    if shared || first == text.indent.as_ref() {
        // The two could be mixed; then the file's own lines are among the new ones.
        return Some(Scheme::Text);
    }
    (first == row.line.indent.as_ref()).then_some(Scheme::File)
}

struct Writer<'a> {
    place: &'a Place<'a>,
    wanted: &'a Wanted<'a>,
    letters: Letters,
    scheme: Scheme,
    /// Whether the text has whitespace at the ends of lines where the file has none.
    extra_trail: bool,
}

/// The line of the file that a line of the new text corresponds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Stays(usize),
    Changes(usize),
    Added,
}

impl Writer<'_> {
    fn write(&self, old_lines: &[&str], new_lines: &[&str], ending: &str) -> Option<Vec<u8>> {
        let sources = self.sources(old_lines, new_lines)?;
        let count = sources.len();
        let last_row = self.place.rows.len() - 1;
        // Whether whitespace after the text belongs to its last line or to what comes next
        // cannot be told once the line moves.
        let trail = !self.place.rows.last()?.line.trail.is_empty() && !self.wanted.finished;
        let stays = matches!(sources.last(), Some(Source::Stays(row) | Source::Changes(row)) if *row == last_row);
        if trail && !stays {
            return None;
        }
        let mut bytes = Vec::new();
        for (index, (source, line)) in sources.iter().zip(new_lines).enumerate() {
            let (first, last) = (index == 0, index + 1 == count);
            // A text that starts or ends within a line has to stay there.
            let moved = |row: usize| {
                (row == 0 && !first && !self.whole_start())
                    || (row == last_row && !last && !self.whole_end())
            };
            let row = match *source {
                Source::Stays(row) | Source::Changes(row) if !moved(row) => {
                    self.place.rows.get(row)
                }
                Source::Added => None,
                _ => return None,
            };
            match (*source, row) {
                (Source::Stays(at), Some(row)) => {
                    bytes.extend_from_slice(self.kept(at, row, first)?);
                }
                (Source::Changes(at), Some(row)) => {
                    self.changed(at, row, line, first, last, &mut bytes)?;
                }
                _ => self.added(line, first, &mut bytes)?,
            }
            if !last || self.wanted.finished {
                let own = row.map(|row| row.ending).filter(|own| !own.is_empty());
                let at_end = last && self.place.rows.last()?.ending.is_empty();
                if !at_end {
                    bytes.extend_from_slice(own.unwrap_or(ending.as_bytes()));
                }
            }
        }
        Some(bytes)
    }

    /// Whether the place starts at the start of a line, its indentation included.
    fn whole_start(&self) -> bool {
        !self.place.bare_start && self.place.rows.first().is_some_and(Row::at_start)
    }

    fn whole_end(&self) -> bool {
        self.place.rows.last().is_some_and(Row::at_end)
    }

    /// Pairs the lines of the new text with those of the file.
    /// `None` if that takes too long.
    fn sources(&self, old_lines: &[&str], new_lines: &[&str]) -> Option<Vec<Source>> {
        let file_lines: Vec<String>;
        let mut olds: Vec<&str> = old_lines.to_vec();
        if self.scheme == Scheme::File {
            // The new text is compared with the lines as the file indents them.
            file_lines = self
                .place
                .rows
                .iter()
                .zip(&self.wanted.lines)
                .map(|(row, text)| format!("{}{}", row.line.indent, lossy(text.body)))
                .collect();
            olds = file_lines.iter().map(String::as_str).collect();
        }
        let mut sources = vec![Source::Added; new_lines.len()];
        let mut set = |at: usize, source| {
            if let Some(known) = sources.get_mut(at) {
                *known = source;
            }
        };
        for operation in difference(&olds, new_lines)? {
            match operation {
                DiffOp::Equal {
                    old_index,
                    new_index,
                    len,
                } => (0..len).for_each(|n| set(new_index + n, Source::Stays(old_index + n))),
                DiffOp::Replace {
                    old_index,
                    old_len,
                    new_index,
                    new_len,
                } if old_len == new_len => {
                    (0..new_len).for_each(|n| set(new_index + n, Source::Changes(old_index + n)));
                }
                _ => {}
            }
        }
        Some(sources)
    }

    /// Returns the bytes of a line that stays.
    fn kept<'r>(&self, at: usize, row: &'r Row<'r>, first: bool) -> Option<&'r [u8]> {
        let line = &row.line;
        let body_at = row.span.start + line.indent_bytes;
        let from = row.matched.start.checked_sub(body_at)?;
        let to = row.matched.end.checked_sub(body_at)?;
        let open = at + 1 == self.wanted.lines.len() && !self.wanted.finished;
        if first && !self.whole_start() || at == 0 && !row.at_start() {
            return if open && !row.at_end() {
                line.body.get(from..to)
            } else {
                row.rest(from)
            };
        }
        // Text after an unfinished one stays in the file anyway.
        if open && !row.at_end() {
            return row.raw.get(..line.indent_bytes + to);
        }
        Some(row.raw)
    }

    /// Writes a line that changes: what it has in common with the old one keeps the file's
    /// bytes.
    fn changed(
        &self,
        at: usize,
        row: &Row<'_>,
        new: &str,
        first: bool,
        last: bool,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        let text = self.wanted.lines.get(at)?;
        let new = Line::of(new.as_bytes());
        if new.is_blank() {
            return Some(());
        }
        self.indentation(&new, first, bytes)?;
        let body_at = row.span.start + row.line.indent_bytes;
        let matched = row
            .line
            .body
            .get(row.matched.start.checked_sub(body_at)?..row.matched.end.checked_sub(body_at)?)?;
        self.letters.merge(text.body, matched, new.body, bytes)?;
        let open = last && !self.wanted.finished && !row.at_end();
        if new.trail != text.trail {
            bytes.extend_from_slice(new.trail);
        } else if !open {
            bytes.extend_from_slice(row.line.trail);
        }
        Some(())
    }

    /// Writes a line that the file does not have.
    fn added(&self, new: &str, first: bool, bytes: &mut Vec<u8>) -> Option<()> {
        let new = Line::of(new.as_bytes());
        if new.is_blank() {
            return Some(());
        }
        self.indentation(&new, first, bytes)?;
        self.letters.convert(lossy(new.body).as_ref(), bytes)?;
        if !self.extra_trail {
            bytes.extend_from_slice(new.trail);
        }
        Some(())
    }

    fn indentation(&self, new: &Line<'_>, first: bool, bytes: &mut Vec<u8>) -> Option<()> {
        let row = self.place.rows.first()?;
        if first && !self.whole_start() {
            // The indentation is in the file already.
            let own = row.line.indent.as_ref();
            let repeated = row.at_start() && new.indent.as_ref() == own;
            let shifted = matches!(&self.place.relation, Relation::Shallower(more) if new.indent.as_ref() == more);
            return (new.indent.is_empty() || repeated || shifted).then_some(());
        }
        let indent = match self.scheme {
            Scheme::Text => self.place.relation.apply(&new.indent)?,
            Scheme::File => new.indent.to_string(),
        };
        bytes.extend_from_slice(indent.as_bytes());
        Some(())
    }
}

fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
