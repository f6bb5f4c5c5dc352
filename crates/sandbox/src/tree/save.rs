//! Saves the changes of a call to the session.

use super::change::Node;
use super::{Tree, text};
use crate::host::Refused;
use haft::guest::Refusal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of saving the changes.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    /// Paths of files that were written.
    pub(crate) written: Vec<String>,
    /// Paths of files that were removed.
    pub(crate) removed: Vec<String>,
    /// Changes that were not saved, with the reason.
    pub(crate) failed: Vec<String>,
    /// Differences between what the code sees and what was saved.
    pub(crate) remarks: Vec<String>,
}

enum Change {
    Write(PathBuf, Arc<[u8]>, Option<String>),
    Remove(PathBuf, String),
}

impl Tree {
    /// Saves the changes to the session. A file that was changed by someone else in the
    /// meantime is not overwritten; the code's version is stored separately, and the reply
    /// names it.
    pub(crate) async fn save(&self) -> Saved {
        let (changes, created) = self.pending_changes();
        let mut saved = Saved::default();
        for change in changes {
            match change {
                Change::Write(path, bytes, was) => {
                    match self.host.write(text(&path), &bytes, was).await {
                        Ok(()) => saved.written.push(text(&path)),
                        Err(refused) => {
                            let number = saved.failed.len() + 1;
                            let unsaved = self.unsaved(number, &path, &bytes, &refused).await;
                            saved.failed.push(unsaved);
                        }
                    }
                }
                Change::Remove(path, was) => match self.host.remove(text(&path), Some(was)).await {
                    Ok(()) => saved.removed.push(text(&path)),
                    Err(refused) => saved.failed.push(format!(
                        "{} was not removed: {}",
                        path.display(),
                        reason(&refused)
                    )),
                },
            }
        }
        let is_empty = |folder: &PathBuf| {
            let inside = |path: &String| Path::new(path).starts_with(folder);
            !saved.written.iter().any(inside)
        };
        let empty: Vec<String> = created
            .iter()
            .filter(|f| is_empty(f))
            .map(|f| text(f))
            .collect();
        if !empty.is_empty() {
            saved
                .remarks
                .push(format!("empty folders are not kept: {}", empty.join(", ")));
        }
        saved
    }

    fn pending_changes(&self) -> (Vec<Change>, Vec<PathBuf>) {
        let changes = self.changes();
        let (mut all, mut created) = (Vec::new(), Vec::new());
        for (path, node) in &changes.nodes {
            match node {
                Node::File {
                    bytes,
                    was,
                    is_changed: true,
                    ..
                } => all.push(Change::Write(path.clone(), Arc::clone(bytes), was.clone())),
                Node::Gone { was: Some(was) } => {
                    all.push(Change::Remove(path.clone(), was.clone()));
                }
                Node::Dir => created.push(path.clone()),
                Node::File { .. } | Node::Gone { was: None } => {}
            }
        }
        (all, created)
    }

    async fn unsaved(&self, number: usize, path: &Path, bytes: &[u8], refused: &Refused) -> String {
        let stored = self.host.keep(&format!("unsaved-{number}"), bytes).await;
        let where_to = match stored {
            Some(stored) => format!("; the code's version is in {stored}"),
            None => "; the code's version was not stored".to_owned(),
        };
        let (path, reason) = (path.display(), reason(refused));
        format!("{path} was not written: {reason}{where_to}")
    }
}

fn reason(refused: &Refused) -> String {
    match refused.why {
        Refusal::Changed => "someone else changed it while the code ran".to_owned(),
        _ => refused.message.clone(),
    }
}
