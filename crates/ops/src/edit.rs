//! Changing a part of a file. The new bytes are spliced in. Bytes outside the replaced span
//! do not change, which is checked before the file is written.

mod cut;
mod lesson;
mod repair;
mod splice;
#[cfg(test)]
mod tests;

use crate::backend::Expect;
use crate::blocking::{self, Weight};
use crate::text::nearest::Haystack;
use crate::text::sniff::{self, Encoding};
use crate::text::{decode, diff};
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

/// How to treat a text that is not in the file exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repairs {
    /// Repair it if it can mean only one place and one change.
    Safe,
    /// Refuse the edit.
    Off,
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
    /// How to treat a text that is not in the file exactly.
    pub repairs: Repairs,
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
    /// Lines where the replacements start, counted from 1 in the file before the edit; the
    /// first hundred.
    pub lines: Vec<usize>,
    /// Repairs of a text that is not in the file exactly, as clauses.
    pub repaired: Vec<String>,
}

/// Maximum number of lines to report.
const MAX_LINES: usize = 100;

/// The replacements of an edit.
struct Found {
    replacements: Vec<Replacement>,
    repaired: Vec<String>,
}

impl From<Vec<Replacement>> for Found {
    fn from(replacements: Vec<Replacement>) -> Self {
        Self {
            replacements,
            repaired: Vec::new(),
        }
    }
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
            .map(|replacement| vec![replacement].into())
    })
    .await
}

/// Reads, splices and writes the file, and retries if it changed in between, so that no
/// acknowledged edit is lost.
async fn change(
    backend: &dyn Backend,
    path: &FilePath,
    no_change: NoChange,
    find: impl Fn(&[u8]) -> Result<Found> + Send + Sync + 'static,
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
            let Found {
                replacements,
                repaired,
            } = find(&before)?;
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
                lines: splice::lines_of(&before, &replacements, MAX_LINES),
                repaired,
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

fn find_replacements(request: &Replace, bytes: &[u8]) -> Result<Found> {
    let found = splice::find(bytes, &request.old);
    let given = || request.path.given().to_owned();
    let count = found.spans.len();
    let chosen = match request.occurrences {
        _ if count == 0 => {
            let searched = bytes.len() <= MAX_LESSON;
            let text = decode::lossy(if searched { bytes } else { b"" });
            let text = decode::lf(&text);
            let seen = Haystack::new(&text);
            if request.repairs == Repairs::Safe
                && searched
                && let Some(repaired) = repair::repair(bytes, &seen, &request.old, &request.new)
            {
                return Ok(Found {
                    replacements: vec![repaired.replacement],
                    repaired: repaired.notes,
                });
            }
            let lesson = Box::new(lesson::lesson(bytes, &seen, &request.old, &request.new));
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
    // Changing the line endings is the purpose of such an edit.
    if let Some(verbatim) = chosen.verbatim(bytes, &request.old, &request.new) {
        return Ok(verbatim.into());
    }
    if request.repairs == Repairs::Off {
        return Ok(chosen.replacements(bytes, &request.new).into());
    }
    let refused = |refusal| match refusal {
        cut::Refusal::Repeats { at } => Error::RepeatsLine {
            path: given(),
            line: splice::line_of(bytes, at),
            text: splice::line_text(bytes, at),
        },
        cut::Refusal::AlreadyThere { at } => Error::AlreadyThere {
            path: given(),
            line: splice::line_of(bytes, at),
        },
    };
    let guarded = cut::guard(bytes, chosen, &request.new).map_err(refused)?;
    Ok(Found {
        repaired: guarded.note().into_iter().collect(),
        replacements: guarded.replacements,
    })
}
