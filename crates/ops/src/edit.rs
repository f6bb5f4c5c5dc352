//! Changing a part of a file. The new bytes are spliced in. Bytes outside the replaced span
//! do not change, which is checked before the file is written.

mod splice;
#[cfg(test)]
mod tests;

use crate::backend::Expect;
use crate::blocking::{self, Weight};
use crate::error::Lesson;
use crate::text::sniff::{self, Encoding};
use crate::text::{decode, diff, nearest, size};
use crate::{Backend, Error, FilePath, Result, read};
use splice::Replacement;
use std::sync::Arc;

/// Maximum size of a file to edit; the whole file is in memory meanwhile.
const MAX_FILE: u64 = 256 << 20;

/// Maximum number of attempts while another program keeps changing the file.
const MAX_TRIES: usize = 200;

/// Maximum size of a file to search for the most similar text after a failed edit.
const MAX_LESSON: usize = 16 << 20;

/// Occurrences to replace if the text occurs several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// The only occurrence; fails if there are none or several.
    ExactlyOne,
    /// The first occurrence.
    First,
    /// Every occurrence in the file.
    All,
}

/// How to treat an edit that changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoChange {
    /// As an error.
    Refuse,
    /// As a success.
    Accept,
}

/// Request to replace text in a file.
#[derive(Debug, Clone)]
pub struct Replace {
    /// The file to edit.
    pub path: FilePath,
    /// Text to find. A newline in it matches both LF and CRLF.
    pub old: String,
    /// Replacement. Its newlines become those used around the match.
    pub new: String,
    /// Occurrences to replace.
    pub occurrences: Occurrences,
    /// How to treat identical old and new text.
    pub no_change: NoChange,
}

/// Request to replace lines of a file, counted from 1, both ends included.
#[derive(Debug, Clone)]
pub struct ReplaceLines {
    /// The file to edit.
    pub path: FilePath,
    /// First line to replace.
    pub first: usize,
    /// Last line to replace.
    pub last: usize,
    /// Replacement; an empty one deletes the lines.
    pub new: String,
    /// How to treat an edit that changes nothing.
    pub no_change: NoChange,
}

/// Result of an edit.
#[derive(Debug, Clone)]
pub struct Edited {
    /// Number of replacements.
    pub replacements: usize,
    /// Size of the file in bytes after the edit.
    pub size: u64,
    /// First line that differs, counted from 1.
    pub first_changed_line: Option<usize>,
    /// The change as a unified diff.
    pub diff: String,
    /// Number of other hard links, which keep the old content.
    pub links_broken: u64,
}

/// Replaces text in a file.
///
/// # Errors
/// [`Error::TextNotFound`] with hints, [`Error::Ambiguous`] with the lines,
/// [`Error::EmptyOld`], [`Error::NoChange`]. The file is unchanged then.
pub async fn replace(backend: &dyn Backend, request: Replace) -> Result<Edited> {
    if request.old.is_empty() {
        return Err(Error::EmptyOld);
    }
    if request.old == request.new && request.no_change == NoChange::Refuse {
        return Err(Error::NoChange {
            path: request.path.given().to_owned(),
        });
    }
    let path = request.path.clone();
    let request = Arc::new(request);
    change(
        backend,
        &path,
        Arc::clone(&request).no_change,
        move |bytes| find_replacements(&request, bytes),
    )
    .await
}

/// Replaces a range of lines in a file.
///
/// # Errors
/// [`Error::LineRange`] if the file does not have these lines.
pub async fn replace_lines(backend: &dyn Backend, request: ReplaceLines) -> Result<Edited> {
    let path = request.path.clone();
    let no_change = request.no_change;
    let request = Arc::new(request);
    change(backend, &path, no_change, move |bytes| {
        splice::lines(bytes, request.first, request.last, &request.new)
            .map(|replacement| vec![replacement])
    })
    .await
}

/// Reads, splices and writes the file, and retries if it changed in between, so that no
/// acknowledged edit is lost.
async fn change(
    backend: &dyn Backend,
    path: &FilePath,
    no_change: NoChange,
    find: impl Fn(&[u8]) -> Result<Vec<Replacement>> + Send + Sync + 'static,
) -> Result<Edited> {
    let find = Arc::new(find);
    for _ in 0..MAX_TRIES {
        let old: Arc<[u8]> = read::whole(backend, path, MAX_FILE).await?.into();
        let (given, before, find) = (path.given().to_owned(), Arc::clone(&old), Arc::clone(&find));
        // Finding hints or computing a diff takes long for a large file.
        let weight = if before.len() <= 64 << 10 {
            Weight::Light
        } else {
            Weight::Heavy
        };
        let spliced = blocking::run(weight, move || {
            spliceable(&given, &before)?;
            let replacements = find(&before)?;
            let after = splice::apply(&before, &replacements)?;
            if *after == *before && no_change == NoChange::Refuse {
                return Err(Error::NoChange { path: given });
            }
            // Before writing, which consumes the bytes. This avoids another copy.
            let edited = Edited {
                replacements: replacements.len(),
                size: after.len() as u64,
                first_changed_line: diff::first_changed_line(&before, &after),
                diff: diff::unified_bytes(&before, &after, &given, 3),
                links_broken: 0,
            };
            Ok((edited, after))
        });
        let (edited, after) = spliced.await?;
        match backend.write(path, after, Expect::Exactly(old)).await {
            Err(Error::Contended { .. }) => {}
            written => {
                return Ok(Edited {
                    links_broken: written?.links_broken,
                    ..edited
                });
            }
        }
    }
    Err(Error::Contended {
        path: path.given().to_owned(),
    })
}

/// Rejects encodings that cannot be spliced as bytes.
fn spliceable(path: &str, bytes: &[u8]) -> Result<()> {
    match sniff::encoding(
        bytes
            .get(..sniff::SAMPLE_BYTES.min(bytes.len()))
            .unwrap_or_default(),
    ) {
        Encoding::Utf16Le | Encoding::Utf16Be => Err(Error::Encoding {
            path: path.to_owned(),
            encoding: "UTF-16",
        }),
        _ => Ok(()),
    }
}

fn find_replacements(request: &Replace, bytes: &[u8]) -> Result<Vec<Replacement>> {
    let found = splice::find(bytes, &request.old);
    let given = || request.path.given().to_owned();
    let count = found.spans.len();
    let chosen = match request.occurrences {
        _ if count == 0 => {
            let lesson = Box::new(lesson(bytes, &request.old, &request.new));
            return Err(Error::TextNotFound {
                path: given(),
                lesson,
            });
        }
        Occurrences::ExactlyOne if count > 1 => {
            let mut lines: Vec<usize> = found
                .spans
                .iter()
                .take(20)
                .map(|span| splice::line_of(bytes, span.start))
                .collect();
            lines.dedup();
            return Err(Error::Ambiguous {
                path: given(),
                count,
                lines,
            });
        }
        Occurrences::ExactlyOne | Occurrences::First => found.first(),
        Occurrences::All => found.without_overlaps(),
    };
    Ok(chosen.replacements(bytes, &request.new))
}

fn lesson(bytes: &[u8], old: &str, new: &str) -> Lesson {
    if bytes.len() > MAX_LESSON {
        return Lesson {
            nearest: None,
            text: format!(
                "the file is too large to find similar text ({}, at most {}): search it for a part of the text, read the lines around it, and copy the text exactly",
                size::size(bytes.len() as u64),
                size::size(MAX_LESSON as u64),
            ),
            already: lines_with_new_text(bytes, new, None),
        };
    }
    let text = decode::lossy(bytes);
    let text = decode::lf(&text);
    let old = decode::lf(old);
    let nearest = nearest::nearest(&text, &old);
    let already = lines_with_new_text(bytes, new, nearest.as_ref());
    let mut words = nearest
        .as_ref()
        .map(|nearest| nearest::lesson(nearest, &text, &old))
        .unwrap_or_default();
    for reason in invisible_differences(bytes, &old) {
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(reason);
    }
    Lesson {
        nearest,
        text: words,
        already,
    }
}

/// Returns the lines that already contain the new text. A short text may occur anywhere by
/// chance, so it counts only where the old text was expected.
fn lines_with_new_text(bytes: &[u8], new: &str, nearest: Option<&nearest::Nearest>) -> Vec<usize> {
    let length = new.trim().chars().count();
    let is_evidence = |line: usize| {
        length >= 16
            || nearest.is_some_and(|near| (near.first_line..=near.last_line).contains(&line))
    };
    if length < 4 {
        return Vec::new();
    }
    let found = splice::find(bytes, new).spans;
    found
        .iter()
        .take(20)
        .map(|span| splice::line_of(bytes, span.start))
        .filter(|line| is_evidence(*line))
        .collect()
}

/// Explains differences between the file and the text as the model has seen it.
fn invisible_differences(bytes: &[u8], old: &str) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if old.contains('\u{fffd}') && std::str::from_utf8(bytes).is_err() {
        reasons.push(
            "U+FFFD stands for bytes that are not UTF-8 and cannot be matched: use only text before or after them",
        );
    }
    if let Some(open) = old.strip_suffix('\n')
        && !bytes.ends_with(b"\n")
        && splice::find(bytes, open)
            .spans
            .last()
            .is_some_and(|span| span.end == bytes.len())
    {
        reasons.push("the file has no newline at its end: omit the last one");
    }
    let lone_cr = memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    if lone_cr && old.contains('\n') {
        reasons.push(
            "the file has carriage returns (CR) in the middle of lines: match each line by itself",
        );
    }
    reasons
}
