//! Spelling new text as the file does: its typography and its Unicode form.

use super::fold::{Unit, composed, is_invisible, units};
use super::place::{Place, Wanted};
use crate::text::nearest::plain;
use icu_normalizer::DecomposingNormalizerBorrowed;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::{BTreeMap, BTreeSet};

/// Letters that the text spells differently than the file.
#[derive(Debug, Default)]
pub(super) struct Letters {
    /// The file's spelling of each unit of the text that differs somewhere.
    spelled: BTreeMap<String, Vec<String>>,
    /// Plain characters of the file for which the text has typographic ones.
    plain: BTreeSet<char>,
    /// Characters that both have.
    same: BTreeSet<char>,
    /// The text has characters that cannot be seen.
    invisible: bool,
    /// The form of the file's letters, where that of the text differs.
    form: Option<Form>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Composed,
    Decomposed,
}

impl Letters {
    pub(super) fn of(place: &Place<'_>, wanted: &Wanted<'_>) -> Option<Self> {
        let mut letters = Self::default();
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (row, text) in place.rows.iter().zip(&wanted.lines) {
            let body_at = row.span.start + row.line.indent_bytes;
            let matched = row.line.body.get(
                row.matched.start.checked_sub(body_at)?..row.matched.end.checked_sub(body_at)?,
            )?;
            let (Ok(text), Ok(matched)) =
                (std::str::from_utf8(text.body), std::str::from_utf8(matched))
            else {
                if matched == text.body {
                    continue;
                }
                return None;
            };
            if text == matched && text.is_ascii() {
                continue;
            }
            let (texts, files) = (units(text), units(matched));
            if texts.len() != files.len() {
                return None;
            }
            for (text, file) in texts.iter().zip(&files) {
                let known = seen.entry(text.raw.to_owned()).or_default();
                if !known.iter().any(|known| known == file.raw) {
                    known.push(file.raw.to_owned());
                }
                letters.note(text, file);
            }
        }
        // Typography that the file has as well is meant so.
        for (text, files) in &seen {
            if files.contains(text) {
                letters.same.extend(text.chars());
            }
        }
        letters.spelled = seen
            .into_iter()
            .filter(|(text, files)| files.iter().any(|file| file != text))
            .collect();
        Some(letters)
    }

    fn note(&mut self, text: &Unit<'_>, file: &Unit<'_>) {
        if text.raw == file.raw {
            return;
        }
        self.invisible |= text.raw.chars().any(is_invisible);
        if composed(text.raw) == composed(file.raw) {
            let form = if composed(file.raw) == file.raw {
                Form::Composed
            } else {
                Form::Decomposed
            };
            self.form = Some(form);
        } else {
            let typographic = text.raw.chars().filter(|c| plain(*c) != *c).map(plain);
            self.plain.extend(typographic);
        }
    }

    /// Whether the text spells every letter as the file does.
    fn is_plain(&self) -> bool {
        self.spelled.is_empty()
    }

    /// Writes a changed line: words that it shares with the old one as the file has them.
    pub(super) fn merge(
        &self,
        old: &[u8],
        file: &[u8],
        new: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        if old == file && self.is_plain() {
            bytes.extend_from_slice(new);
            return Some(());
        }
        let (old, file) = (
            std::str::from_utf8(old).ok()?,
            std::str::from_utf8(file).ok()?,
        );
        let new = std::str::from_utf8(new).ok()?;
        let files = units(file);
        let (old_words, new_words) = (words(old), words(new));
        let raw = |words: &[Vec<Unit<'_>>]| -> Vec<String> {
            words
                .iter()
                .map(|word| word.iter().map(|unit| unit.raw).collect())
                .collect()
        };
        // The units of the file from which each word starts.
        let mut starts = vec![0];
        for word in &old_words {
            starts.push(starts.last()? + word.len());
        }
        for operation in difference(&raw(&old_words), &raw(&new_words))? {
            let (tag, olds, news) = operation.as_tag_tuple();
            if tag == similar::DiffTag::Equal {
                let kept = files.get(*starts.get(olds.start)?..*starts.get(olds.end)?)?;
                for unit in kept {
                    bytes.extend_from_slice(unit.raw.as_bytes());
                }
            } else {
                let added: String = raw(new_words.get(news)?).concat();
                self.convert(&added, bytes)?;
            }
        }
        Some(())
    }

    /// Writes text that the file does not have, spelled as the file spells it; `None` if
    /// it may be spelled in two ways.
    pub(super) fn convert(&self, text: &str, bytes: &mut Vec<u8>) -> Option<()> {
        if self.is_plain() {
            bytes.extend_from_slice(text.as_bytes());
            return Some(());
        }
        for unit in units(text) {
            bytes.extend_from_slice(self.spell(&unit)?.as_bytes());
        }
        Some(())
    }

    fn spell(&self, unit: &Unit<'_>) -> Option<String> {
        let mut raw = unit.raw.to_owned();
        if self.invisible {
            raw.retain(|c| !is_invisible(c));
        }
        match self.spelled.get(unit.raw).map(Vec::as_slice) {
            // A space is a space, whatever stood for one elsewhere.
            Some(_) if raw == " " => return Some(raw),
            Some([only]) if unit.raw != unit.folded => return Some(only.clone()),
            Some(_) => return None,
            None => {}
        }
        let raw = match self.form {
            Some(Form::Composed) => composed(&raw),
            Some(Form::Decomposed) => DecomposingNormalizerBorrowed::new_nfd()
                .normalize(&raw)
                .into_owned(),
            None => raw,
        };
        let spelled = |c: char| {
            if self.plain.contains(&plain(c)) && !self.same.contains(&c) {
                plain(c)
            } else {
                c
            }
        };
        Some(raw.chars().map(spelled).collect())
    }
}

/// Maximum number of pairs to compare of two lists that differ.
const MAX_PAIRS: usize = 4 << 20;

/// Compares two lists; `None` if they differ in so much that it takes too long.
pub(super) fn difference<T: Eq + std::hash::Hash + Ord>(
    old: &[T],
    new: &[T],
) -> Option<Vec<DiffOp>> {
    let same = |(one, other): &(&T, &T)| one == other;
    let head = old.iter().zip(new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most);
    let same = head + tail.take_while(same).count();
    let pairs = (old.len() - same).saturating_mul(new.len() - same);
    (pairs <= MAX_PAIRS).then(|| capture_diff_slices(Algorithm::Myers, old, new))
}

/// Splits a text into words and single other units.
fn words(text: &str) -> Vec<Vec<Unit<'_>>> {
    let mut words: Vec<Vec<Unit<'_>>> = Vec::new();
    let mut in_word = false;
    for unit in units(text) {
        let letter = unit
            .folded
            .chars()
            .next()
            .is_some_and(char::is_alphanumeric);
        match words.last_mut().filter(|_| letter && in_word) {
            Some(word) => word.push(unit),
            None => words.push(vec![unit]),
        }
        in_word = letter;
    }
    words
}
