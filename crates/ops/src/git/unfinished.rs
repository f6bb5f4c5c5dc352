//! A rebase that was left open: `git rebase --continue` runs the commands in it.

use super::text;
use std::path::{Path, PathBuf};

/// The lists of steps that git goes on with, below a git folder.
const LISTS: [&str; 3] = [
    "rebase-merge/git-rebase-todo",
    "rebase-apply/git-rebase-todo",
    "sequencer/todo",
];

/// More than anybody rebases at once.
const LONGEST: u64 = 1 << 20;

/// The commands that git would run when it is told to continue in this git folder, and
/// the files that name them.
pub(crate) fn commands_left(git: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for list in LISTS {
        let path = git.join(list);
        for line in text(&path, LONGEST).unwrap_or_default().lines() {
            let line = line.trim_start();
            let command = line
                .strip_prefix("exec")
                .or_else(|| line.strip_prefix('x'))
                .and_then(|rest| rest.strip_prefix([' ', '\t']));
            if let Some(command) = command {
                found.push((path.clone(), command.trim().to_owned()));
            }
        }
    }
    found
}
