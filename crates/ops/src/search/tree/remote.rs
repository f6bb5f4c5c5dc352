//! The road through any backend: one listing after the other.

use super::parents::{self, Above, Names};
use super::{Judge, Leads, Met, Next, Passed, Rules, Stop, Verdict, Visitor, through};
use crate::backend::{Kind, Through};
use crate::{Backend, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// A walk that goes on by one folder at a time.
pub(crate) struct Remote<'a> {
    backend: &'a dyn Backend,
    judge: Judge<'a>,
    prefix: Vec<u8>,
    pending: Vec<Pending>,
}

struct Pending {
    path: FilePath,
    below: Vec<u8>,
    rules: Rules,
}

/// A file that the visitor wants opened.
pub(crate) struct Wanted {
    pub(crate) path: FilePath,
    pub(crate) below: Vec<u8>,
}

impl<'a> Remote<'a> {
    pub(crate) async fn new(backend: &'a dyn Backend, judge: Judge<'a>) -> Self {
        let above = if judge.honours() {
            parents::on_backend(backend, judge.start()).await
        } else {
            Above::default()
        };
        let start = Pending {
            path: judge.start().clone(),
            below: Vec::new(),
            rules: above.rules,
        };
        Self {
            backend,
            judge,
            prefix: above.prefix,
            pending: vec![start],
        }
    }

    /// Walks one more folder and gives the files wanted from it; nothing when
    /// there is no folder left, or no time.
    pub(crate) async fn folder(
        &mut self,
        visitor: &mut (dyn Visitor + Send),
        stop: &Stop,
    ) -> Result<Option<Vec<Wanted>>> {
        let Some(folder) = self.pending.pop().filter(|_| !stop.is_set()) else {
            return Ok(None);
        };
        let entries = match self.backend.list(&folder.path).await {
            Ok(entries) => entries,
            Err(error) if folder.below.is_empty() => return Err(error),
            // Gone since its parent was listed.
            Err(crate::Error::NotFound { .. }) => return Ok(Some(Vec::new())),
            Err(_) => {
                visitor.pass(Passed::Unreadable);
                return Ok(Some(Vec::new()));
            }
        };
        let mut whole = self.prefix.clone();
        append(&mut whole, &folder.below);
        let mut rules = folder.rules;
        if self.judge.honours() {
            let mut names = Names::default();
            for entry in &entries {
                names.note(entry.name.as_bytes(), entry.stat.kind);
            }
            let found = parents::in_folder(self.backend, &folder.path, names).await;
            rules = rules.inside(&whole, &found);
        }
        let asked = self.judge.asks_in(&folder.below);
        let mut wanted = Vec::new();
        let mut inner = Vec::new();
        for entry in entries {
            let mut below = folder.below.clone();
            append(&mut below, entry.name.as_bytes());
            let whole_length = whole.len();
            append(&mut whole, entry.name.as_bytes());
            let kind = entry.stat.kind;
            let met = Met {
                below: &below,
                name_at: below.len() - entry.name.len(),
                kind,
                leads: match &entry.target {
                    Some(target) if target.through == Through::To(Kind::Directory) => {
                        Leads::ToFolder
                    }
                    _ => Leads::Elsewhere,
                },
            };
            let verdict = self.judge.decide(&met, &whole, &rules, asked);
            whole.truncate(whole_length);
            let next = match verdict {
                Verdict::Ignored => continue,
                Verdict::Hidden => {
                    visitor.pass(Passed::Hidden);
                    continue;
                }
                Verdict::Closed(closed) => {
                    visitor.pass(Passed::Closed(closed.why));
                    through(closed, &met, visitor)
                }
                Verdict::Meet => visitor.meet(&met),
                Verdict::MeetOnly => {
                    visitor.meet(&met);
                    visitor.pass(Passed::Pseudo);
                    Next::Over
                }
            };
            let Some(path) = folder
                .path
                .child(&entry.name)
                .filter(|_| next == Next::Into)
            else {
                continue;
            };
            match kind {
                Kind::Directory => inner.push(Pending {
                    path,
                    below,
                    rules: rules.clone(),
                }),
                Kind::File => wanted.push(Wanted { path, below }),
                Kind::Link | Kind::Other(_) => {}
            }
        }
        visitor.left();
        self.pending.extend(inner.into_iter().rev());
        Ok(Some(wanted))
    }
}

fn append(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() && !part.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}
