//! Changing part of a file. The new bytes are spliced in; everything outside the
//! replaced span is the same bytes as before, and that is checked before the
//! file is written.

mod splice;
#[cfg(test)]
mod tests;

use crate::backend::Expect;
use crate::blocking::{self, Weight};
use crate::error::Lesson;
use crate::text::sniff::{self, Encoding};
use crate::text::{decode, diff, nearest, size};
use crate::{Backend, Error, FilePath, Result, read};
use splice::Place;
use std::sync::Arc;

/// Larger files are not edited: the whole of one is in memory while it is.
const MAX_FILE: u64 = 256 << 20;

/// How often an edit is tried again on a file that somebody else is changing.
const MAX_TRIES: usize = 200;

/// A lesson is sought in files up to this size.
const MAX_LESSON: usize = 16 << 20;

/// Which of several occurrences are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// The only one: none and several are errors.
    ExactlyOne,
    /// The first of any number.
    First,
    /// All of them.
    All,
}

/// What an edit that changes nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoChange {
    /// An error.
    Refuse,
    /// Done.
    Accept,
}

/// Text to replace.
#[derive(Debug, Clone)]
pub struct Replace {
    /// In which file.
    pub path: FilePath,
    /// The text to find. A newline in it matches CRLF as well as LF.
    pub old: String,
    /// The text to put there. Its newlines become those of the place.
    pub new: String,
    /// Which occurrences.
    pub occurrences: Occurrences,
    /// What to do when old and new are the same.
    pub no_change: NoChange,
}

/// Lines to replace, counted from 1, both ends included.
#[derive(Debug, Clone)]
pub struct ReplaceLines {
    /// In which file.
    pub path: FilePath,
    /// The first line.
    pub first: usize,
    /// The last line.
    pub last: usize,
    /// What to put there; empty deletes the lines.
    pub new: String,
    /// What to do when nothing changes.
    pub no_change: NoChange,
}

/// What an edit did.
#[derive(Debug, Clone)]
pub struct Edited {
    /// How many places were replaced.
    pub replacements: usize,
    /// The file's size in bytes afterwards.
    pub size: u64,
    /// The first line that differs, counted from 1.
    pub first_changed_line: Option<usize>,
    /// The change as a unified diff.
    pub diff: String,
    /// How many other names the file had, which keep the old content.
    pub links_broken: u64,
}

/// Replaces text.
///
/// # Errors
/// [`Error::TextNotFound`] with a lesson, [`Error::Ambiguous`] with the lines,
/// [`Error::EmptyOld`], [`Error::NoChange`]; the file is untouched then.
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
        move |bytes| places(&request, bytes),
    )
    .await
}

/// Replaces a range of lines.
///
/// # Errors
/// [`Error::LineRange`] when the file has no such lines.
pub async fn replace_lines(backend: &dyn Backend, request: ReplaceLines) -> Result<Edited> {
    let path = request.path.clone();
    let no_change = request.no_change;
    let request = Arc::new(request);
    change(backend, &path, no_change, move |bytes| {
        splice::lines(bytes, request.first, request.last, &request.new).map(|place| vec![place])
    })
    .await
}

/// Reads, splices, writes; again when the file changed in between, so that no
/// edit that was acknowledged is ever lost.
async fn change(
    backend: &dyn Backend,
    path: &FilePath,
    no_change: NoChange,
    find: impl Fn(&[u8]) -> Result<Vec<Place>> + Send + Sync + 'static,
) -> Result<Edited> {
    let find = Arc::new(find);
    for _ in 0..MAX_TRIES {
        let old: Arc<[u8]> = read::whole(backend, path, MAX_FILE).await?.into();
        let (given, before, find) = (path.given().to_owned(), Arc::clone(&old), Arc::clone(&find));
        // Small files only: a lesson or a diff of a large one takes its time.
        let weight = if before.len() <= 64 << 10 {
            Weight::Light
        } else {
            Weight::Heavy
        };
        let spliced = blocking::run(weight, move || {
            spliceable(&given, &before)?;
            let places = find(&before)?;
            let after = splice::apply(&before, &places)?;
            if *after == *before && no_change == NoChange::Refuse {
                return Err(Error::NoChange { path: given });
            }
            // Before it is written, which takes the bytes: there is one copy of each.
            let edited = Edited {
                replacements: places.len(),
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

/// Refuses what cannot be spliced as bytes.
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

fn places(request: &Replace, bytes: &[u8]) -> Result<Vec<Place>> {
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
        Occurrences::All => found.apart(),
    };
    Ok(chosen.places(bytes, &request.new))
}

fn lesson(bytes: &[u8], old: &str, new: &str) -> Lesson {
    if bytes.len() > MAX_LESSON {
        return Lesson {
            nearest: None,
            text: format!(
                "the file is too large to look for what is near ({}, at most {}): search it for a part of the text, read that place, and copy the text exactly",
                size::size(bytes.len() as u64),
                size::size(MAX_LESSON as u64),
            ),
            already: already(bytes, new, None),
        };
    }
    let text = decode::lossy(bytes);
    let text = decode::lf(&text);
    let old = decode::lf(old);
    let nearest = nearest::nearest(&text, &old);
    let already = already(bytes, new, nearest.as_ref());
    let mut words = nearest
        .as_ref()
        .map(|nearest| nearest::lesson(nearest, &text, &old))
        .unwrap_or_default();
    for reason in unseen(bytes, &old) {
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

/// Lines on which the new text is, where that means something: a word or two
/// may be anywhere, unless they are just where the old text would have been.
fn already(bytes: &[u8], new: &str, nearest: Option<&nearest::Nearest>) -> Vec<usize> {
    let length = new.trim().chars().count();
    let telling = |line: usize| {
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
        .filter(|line| telling(*line))
        .collect()
}

/// What differs between the file and what a reader sees of it.
fn unseen(bytes: &[u8], old: &str) -> Vec<&'static str> {
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
        reasons.push("the file has no newline at its end: leave out the last one");
    }
    let lone_cr = memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    if lone_cr && old.contains('\n') {
        reasons
            .push("the file has carriage returns (CR) that end no line: match each line by itself");
    }
    reasons
}
