//! A rebase that was left open: `git rebase --continue` runs the commands in it.

use super::open;
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

/// How much of a line is kept, and how many different commands of a list.
const LINE: u64 = 4096;
const MOST: usize = 1000;

/// The commands that git would run when it is told to continue in this git folder, and
/// the files that name them.
pub(crate) fn commands_left(git: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for list in LISTS {
        let path = git.join(list);
        let commands = commands_in(&path).into_iter();
        found.extend(commands.map(|command| (path.clone(), command)));
    }
    found
}

fn commands_in(list: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let Some(file) = open(list) else {
        return found;
    };
    let mut rest = BufReader::new(file.take(LONGEST));
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut rest).take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let is_cut = line.last() != Some(&b'\n');
        let line = String::from_utf8_lossy(&line);
        if let Some(command) = command(&line)
            && !found.contains(&command)
            && found.len() < MOST
        {
            found.push(command);
        }
        if is_cut && rest.skip_until(b'\n').is_err() {
            break;
        }
    }
    if rest.get_ref().limit() == 0 {
        found.push("something: the list is too long to read".to_owned());
    }
    found
}

/// What a step of a rebase runs.
fn command(line: &str) -> Option<String> {
    let line = line.trim_start();
    let command = line
        .strip_prefix("exec")
        .or_else(|| line.strip_prefix('x'))
        .and_then(|rest| rest.strip_prefix([' ', '\t']))?;
    Some(command.trim().to_owned())
}
