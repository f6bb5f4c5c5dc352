//! Ignore files, one level for each folder that has any.
//!
//! The nearest file wins; among files, `.ignore` goes over `.gitignore`, and
//! that over `.git/info/exclude`. As in git, the last two do not reach into a
//! repository that lies inside another.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::sync::Arc;

/// Longer ignore files are taken up to here: compiling them costs more memory
/// than anyone's rules are worth.
pub(crate) const MAX_BYTES: u64 = 128 << 10;

/// Nor more lines of one file.
const MAX_LINES: usize = 2_000;

/// What ignore files a folder has, by their content.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) dot_ignore: Option<Vec<u8>>,
    pub(crate) git_ignore: Option<Vec<u8>>,
    pub(crate) exclude: Option<Vec<u8>>,
    pub(crate) repository: bool,
}

/// The rules that hold in a folder. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    dot_ignore: Option<Gitignore>,
    git_ignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Where the rules of git end.
    repository: bool,
    /// How much of a whole path leads to this folder, its slash included.
    skip: usize,
    parent: Rules,
}

impl Rules {
    /// The rules inside a folder, whose path from the base is `whole`.
    pub(crate) fn inside(&self, whole: &[u8], found: &Found) -> Self {
        let compiled = |bytes: &Option<Vec<u8>>| bytes.as_deref().and_then(compile);
        let dot_ignore = compiled(&found.dot_ignore);
        let git_ignore = compiled(&found.git_ignore);
        let exclude = compiled(&found.exclude);
        let any = dot_ignore.is_some() || git_ignore.is_some() || exclude.is_some();
        if !any && (!found.repository || self.0.is_none()) {
            return self.clone();
        }
        let skip = if whole.is_empty() { 0 } else { whole.len() + 1 };
        let parent = self.clone();
        Self(Some(Arc::new(Level {
            dot_ignore,
            git_ignore,
            exclude,
            repository: found.repository,
            skip,
            parent,
        })))
    }

    /// Whether the entry at `whole`, a path from the base, is to be left out.
    pub(crate) fn ignore(&self, whole: &[u8], is_folder: bool) -> bool {
        if self.0.is_none() {
            return false;
        }
        let nearest = |pick: fn(&Level) -> &Option<Gitignore>, of_git: bool| {
            let mut here = self;
            while let Some(level) = &here.0 {
                if let (Some(rules), Some(path)) = (pick(level), whole.get(level.skip..)) {
                    match rules.matched(super::path(path), is_folder) {
                        Match::None => {}
                        Match::Ignore(_) => return Some(true),
                        Match::Whitelist(_) => return Some(false),
                    }
                }
                if of_git && level.repository {
                    return None;
                }
                here = &level.parent;
            }
            None
        };
        nearest(|level| &level.dot_ignore, false)
            .or_else(|| nearest(|level| &level.git_ignore, true))
            .or_else(|| nearest(|level| &level.exclude, true))
            .unwrap_or(false)
    }
}

/// One level after the other: thousands of nested ones would overflow the stack.
impl Drop for Level {
    fn drop(&mut self) {
        let mut next = self.parent.0.take();
        while let Some(level) = next {
            next = Arc::into_inner(level).and_then(|mut level| level.parent.0.take());
        }
    }
}

/// Lines that are no pattern, or no text, are passed: the others still hold.
fn compile(bytes: &[u8]) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new("");
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    for line in bytes.split(|byte| *byte == b'\n').take(MAX_LINES) {
        if let Ok(line) = std::str::from_utf8(line) {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_patterns_counts_up_to_a_limit() {
        let lines: String = (0..50_000).map(|at| format!("file{at}\n")).collect();
        let rules = compile(lines.as_bytes()).unwrap();
        assert_eq!(rules.num_ignores(), MAX_LINES as u64);
    }
}
