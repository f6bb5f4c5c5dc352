//! Giving the session what a call changed.

use super::change::Node;
use super::{Tree, text};
use crate::host::Refused;
use haft::guest::Refusal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What became of the changes.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Files that were written.
    pub(crate) written: Vec<String>,
    /// Files that were taken away.
    pub(crate) removed: Vec<String>,
    /// What was not saved, and why.
    pub(crate) lost: Vec<String>,
    /// What the code may believe and is not so.
    pub(crate) remarks: Vec<String>,
}

enum Change {
    Write(PathBuf, Arc<[u8]>, Option<String>),
    Remove(PathBuf, String),
}

impl Tree {
    /// Gives the session what was changed. A file that somebody else changed meanwhile
    /// stays as they left it; what the code made of it is kept aside and named.
    pub(crate) async fn settle(&self) -> Settled {
        let (changes, made) = self.outstanding();
        let mut settled = Settled::default();
        for change in changes {
            match change {
                Change::Write(path, bytes, was) => {
                    match self.host.write(text(&path), &bytes, was).await {
                        Ok(()) => settled.written.push(text(&path)),
                        Err(refused) => {
                            let number = settled.lost.len() + 1;
                            let lost = self.lost(number, &path, &bytes, &refused).await;
                            settled.lost.push(lost);
                        }
                    }
                }
                Change::Remove(path, was) => match self.host.remove(text(&path), Some(was)).await {
                    Ok(()) => settled.removed.push(text(&path)),
                    Err(refused) => settled.lost.push(format!(
                        "{} was not removed: {}",
                        path.display(),
                        reason(&refused)
                    )),
                },
            }
        }
        let is_empty = |folder: &PathBuf| {
            let inside = |path: &String| Path::new(path).starts_with(folder);
            !settled.written.iter().any(inside)
        };
        let empty: Vec<String> = made
            .iter()
            .filter(|f| is_empty(f))
            .map(|f| text(f))
            .collect();
        if !empty.is_empty() {
            settled.remarks.push(format!(
                "folders are kept only with files in them; not kept: {}",
                empty.join(", ")
            ));
        }
        settled
    }

    fn outstanding(&self) -> (Vec<Change>, Vec<PathBuf>) {
        let changes = self.changes();
        let (mut all, mut made) = (Vec::new(), Vec::new());
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
                Node::Dir => made.push(path.clone()),
                Node::File { .. } | Node::Gone { was: None } => {}
            }
        }
        (all, made)
    }

    async fn lost(&self, number: usize, path: &Path, bytes: &[u8], refused: &Refused) -> String {
        let kept = self.host.keep(&format!("unsaved-{number}"), bytes).await;
        let where_to = match kept {
            Some(kept) => format!("; what the code wrote is in {kept}"),
            None => "; what the code wrote is not kept".to_owned(),
        };
        let (path, reason) = (path.display(), reason(refused));
        format!("{path} was not written: {reason}{where_to}")
    }
}

fn reason(refused: &Refused) -> String {
    match refused.why {
        Refusal::Changed => "somebody else changed it while the code ran".to_owned(),
        _ => refused.message.clone(),
    }
}
