//! Unfinished rebases: `git rebase --continue` runs the commands in their lists of steps.

use super::open;
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Lists of steps of unfinished operations, relative to a git folder.
const LISTS: [&str; 3] = [
    "rebase-merge/git-rebase-todo",
    "rebase-apply/git-rebase-todo",
    "sequencer/todo",
];

/// Maximum bytes to read. More than any real rebase; a longer list is reported as such.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum length of a line to show, in bytes.
const MAX_LINE: usize = 4096;

/// Maximum number of commands of a list that are compared one by one. For a longer list,
/// only the fact of a change is known.
const MAX_COMMANDS: usize = 200_000;

/// Maximum number of commands to show: the last ones.
const MAX_SHOWN: usize = 5;

/// A list of steps that runs commands when the operation is continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnfinishedRebase {
    /// Path of the list.
    pub(crate) path: PathBuf,
    /// Hashes of its commands.
    commands: HashSet<u64>,
    /// Hash of the whole list.
    whole: u64,
    /// Whether the list was too long to compare all of its commands.
    is_cut: bool,
}

/// New commands in a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AddedCommands {
    /// The last of the new commands.
    pub(crate) commands: Vec<String>,
    /// Number of further new commands.
    pub(crate) more: usize,
}

/// Returns the lists in this git folder that would run commands, and what is new in each
/// compared with `earlier`.
pub(crate) fn unfinished_rebases(
    git: &Path,
    earlier: &[UnfinishedRebase],
) -> Vec<(UnfinishedRebase, Option<AddedCommands>)> {
    let lists = LISTS.iter().filter_map(|list| {
        let path = git.join(list);
        let earlier = earlier.iter().find(|earlier| earlier.path == path);
        let (left, mut added) = read(&path, earlier)?;
        let is_same = earlier.is_some_and(|earlier| earlier.whole == left.whole);
        if left.is_cut {
            // A command beyond the limit may have changed.
            added.more += 1;
        }
        let is_new = !is_same && (added.more > 0 || !added.commands.is_empty());
        let has_any = left.is_cut || !left.commands.is_empty();
        has_any.then_some((left, is_new.then_some(added)))
    });
    lists.collect()
}

/// Reads a list, and returns its commands that `earlier` does not contain.
fn read(
    path: &Path,
    earlier: Option<&UnfinishedRebase>,
) -> Option<(UnfinishedRebase, AddedCommands)> {
    let mut rest = BufReader::new(open(path)?.take(MAX_BYTES));
    let mut whole = DefaultHasher::new();
    let mut commands = HashSet::new();
    let (mut new, mut shown) = (HashSet::new(), VecDeque::new());
    let mut is_cut = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line is read completely, whatever its length: its end may be what matters.
        match rest.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let Some(command) = command(&line) else {
            continue;
        };
        let number = number(command);
        number.hash(&mut whole);
        if commands.len() >= MAX_COMMANDS {
            is_cut = true;
        } else {
            commands.insert(number);
        }
        let is_known = earlier.is_some_and(|earlier| earlier.commands.contains(&number));
        if !is_known && (new.len() >= MAX_COMMANDS || new.insert(number)) {
            let seen = command.get(..MAX_LINE).unwrap_or(command);
            shown.push_back(String::from_utf8_lossy(seen).trim().to_owned());
            if shown.len() > MAX_SHOWN {
                shown.pop_front();
            }
        }
    }
    if rest.get_ref().limit() == 0 {
        is_cut = true;
        shown.push_back("unknown commands: the list is too long to read".to_owned());
    }
    let rebase = UnfinishedRebase {
        path: path.to_owned(),
        commands,
        whole: whole.finish(),
        is_cut,
    };
    let more = new.len().saturating_sub(shown.len());
    let commands = shown.into();
    Some((rebase, AddedCommands { commands, more }))
}

fn number(command: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    hasher.finish()
}

/// Returns the command that a step of a rebase runs.
fn command(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let rest = line
        .strip_prefix(b"exec")
        .or_else(|| line.strip_prefix(b"x"))?;
    let rest = rest
        .strip_prefix(b" ")
        .or_else(|| rest.strip_prefix(b"\t"))?;
    Some(rest.trim_ascii())
}
