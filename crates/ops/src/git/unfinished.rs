//! A rebase that was left open: `git rebase --continue` runs the commands in it.

use super::open;
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The lists of steps that git goes on with, below a git folder.
const LISTS: [&str; 3] = [
    "rebase-merge/git-rebase-todo",
    "rebase-apply/git-rebase-todo",
    "sequencer/todo",
];

/// More than anybody rebases at once: what is longer is reported as such.
const LONGEST: u64 = 64 << 20;

/// How much of a line is shown.
const LINE: usize = 4096;

/// How many commands of a list are told apart. Of a longer list it is known that it
/// changed.
const MOST: usize = 200_000;

/// How many commands are kept to be shown: the last ones.
const SHOWN: usize = 5;

/// A list of steps that runs commands when somebody goes on with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its commands, each as a number that stands for it.
    commands: HashSet<u64>,
    /// All of it as one number.
    whole: u64,
    /// Whether it was too long for all of its commands to be told apart.
    is_cut: bool,
}

/// What came to a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// The last commands that are new.
    pub(crate) commands: Vec<String>,
    /// How many more are new.
    pub(crate) more: usize,
}

/// The lists in this git folder that would run something, and what is new in each since
/// they were like `earlier`.
pub(crate) fn left_open(git: &Path, earlier: &[Left]) -> Vec<(Left, Option<Added>)> {
    let lists = LISTS.iter().filter_map(|list| {
        let path = git.join(list);
        let earlier = earlier.iter().find(|earlier| earlier.path == path);
        let (left, mut added) = read(&path, earlier)?;
        let is_same = earlier.is_some_and(|earlier| earlier.whole == left.whole);
        if left.is_cut {
            // It may be a command that nobody could tell apart.
            added.more += 1;
        }
        let is_new = !is_same && (added.more > 0 || !added.commands.is_empty());
        let has_any = left.is_cut || !left.commands.is_empty();
        has_any.then_some((left, is_new.then_some(added)))
    });
    lists.collect()
}

/// Reads a list, and says which of its commands another one does not have.
fn read(path: &Path, earlier: Option<&Left>) -> Option<(Left, Added)> {
    let mut rest = BufReader::new(open(path)?.take(LONGEST));
    let mut whole = DefaultHasher::new();
    let mut commands = HashSet::new();
    let (mut new, mut shown) = (HashSet::new(), VecDeque::new());
    let mut is_cut = false;
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line of any length is taken as a whole: its end may be what matters.
        match rest.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let Some(command) = command(&line) else {
            continue;
        };
        let number = number(command);
        number.hash(&mut whole);
        if commands.len() >= MOST {
            is_cut = true;
        } else {
            commands.insert(number);
        }
        let is_known = earlier.is_some_and(|earlier| earlier.commands.contains(&number));
        if !is_known && (new.len() >= MOST || new.insert(number)) {
            let seen = command.get(..LINE).unwrap_or(command);
            shown.push_back(String::from_utf8_lossy(seen).trim().to_owned());
            if shown.len() > SHOWN {
                shown.pop_front();
            }
        }
    }
    if rest.get_ref().limit() == 0 {
        is_cut = true;
        shown.push_back("something: the list is too long to read".to_owned());
    }
    let left = Left {
        path: path.to_owned(),
        commands,
        whole: whole.finish(),
        is_cut,
    };
    let more = new.len().saturating_sub(shown.len());
    let commands = shown.into();
    Some((left, Added { commands, more }))
}

fn number(command: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    command.hash(&mut hasher);
    hasher.finish()
}

/// What a step of a rebase runs.
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
