//! The walk through any backend: one listing after the other.

use super::parent_rules::{self, Names, ParentRules};
use super::{
    Judge, LinkTarget, Next, Rules, SkipReason, Stop, Verdict, Visitor, WalkEntry, enter_filtered,
};
use crate::backend::{Kind, Through};
use crate::{Backend, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// A walk that advances by one folder at a time.
pub(crate) struct RemoteWalk<'a> {
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

/// A file that the visitor wants to open.
pub(crate) struct FileToOpen {
    pub(crate) path: FilePath,
    pub(crate) below: Vec<u8>,
}

impl<'a> RemoteWalk<'a> {
    pub(crate) async fn new(backend: &'a dyn Backend, judge: Judge<'a>) -> Self {
        let above = if judge.honours_ignore_files() {
            parent_rules::on_backend(backend, judge.start()).await
        } else {
            ParentRules::default()
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

    /// Walks the next folder and returns the files to open in it. Returns `None` if no
    /// folder is left or the walk was stopped.
    pub(crate) async fn folder(
        &mut self,
        visitor: &mut (dyn Visitor + Send),
        stop: &Stop,
    ) -> Result<Option<Vec<FileToOpen>>> {
        let Some(folder) = self.pending.pop().filter(|_| !stop.is_set()) else {
            return Ok(None);
        };
        let entries = match self.backend.list(&folder.path).await {
            Ok(entries) => entries,
            Err(error) if folder.below.is_empty() => return Err(error),
            // It disappeared after its parent was listed.
            Err(crate::Error::NotFound { .. }) => return Ok(Some(Vec::new())),
            Err(_) => {
                visitor.skip(SkipReason::Unreadable);
                return Ok(Some(Vec::new()));
            }
        };
        let mut rule_path = self.prefix.clone();
        append(&mut rule_path, &folder.below);
        let mut rules = folder.rules;
        if self.judge.honours_ignore_files() {
            let mut names = Names::default();
            for listed in &entries {
                names.note(listed.name.as_bytes(), listed.stat.kind);
            }
            let found = parent_rules::in_folder(self.backend, &folder.path, names).await;
            rules = rules.inside(&rule_path, &found);
        }
        let checks = self.judge.checks_in(&folder.below);
        let mut files = Vec::new();
        let mut inner = Vec::new();
        for listed in entries {
            let mut below = folder.below.clone();
            append(&mut below, listed.name.as_bytes());
            let rule_path_length = rule_path.len();
            append(&mut rule_path, listed.name.as_bytes());
            let kind = listed.stat.kind;
            let entry = WalkEntry {
                below: &below,
                name_at: below.len() - listed.name.len(),
                kind,
                link_target: match &listed.target {
                    Some(target) if target.through == Through::To(Kind::Directory) => {
                        LinkTarget::Folder
                    }
                    _ => LinkTarget::Other,
                },
            };
            let verdict = self.judge.decide(&entry, &rule_path, &rules, checks);
            rule_path.truncate(rule_path_length);
            let next = match verdict {
                Verdict::Ignored => continue,
                Verdict::Hidden => {
                    visitor.skip(SkipReason::Hidden);
                    continue;
                }
                Verdict::Filtered(exclusion) => {
                    visitor.skip(SkipReason::Filtered(exclusion.why));
                    enter_filtered(exclusion, &entry, visitor)
                }
                Verdict::Visit => visitor.visit(&entry),
                Verdict::VisitOnly => {
                    visitor.visit(&entry);
                    visitor.skip(SkipReason::Pseudo);
                    Next::Over
                }
            };
            let Some(path) = folder
                .path
                .child(&listed.name)
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
                Kind::File => files.push(FileToOpen { path, below }),
                Kind::Link | Kind::Other(_) => {}
            }
        }
        visitor.leave_folder();
        self.pending.extend(inner.into_iter().rev());
        Ok(Some(files))
    }
}

fn append(path: &mut Vec<u8>, part: &[u8]) {
    if !path.is_empty() && !part.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(part);
}
