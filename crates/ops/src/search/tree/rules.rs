//! Ignore files, one level for each folder that has any.
//!
//! The nearest file takes precedence. Within a folder, `.ignore` overrides `.gitignore`,
//! which overrides `.git/info/exclude`. As in git, the last two do not apply inside a
//! nested repository.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::sync::Arc;

/// Maximum number of bytes to use from an ignore file, because compiling a huge one takes
/// too much memory.
pub(crate) const MAX_BYTES: u64 = 128 << 10;

/// Maximum number of lines to use from an ignore file.
const MAX_LINES: usize = 2_000;

/// Contents of the ignore files in a folder.
#[derive(Debug, Default)]
pub(crate) struct IgnoreContents {
    pub(crate) dot_ignore: Option<Vec<u8>>,
    pub(crate) git_ignore: Option<Vec<u8>>,
    pub(crate) exclude: Option<Vec<u8>>,
    pub(crate) repository: bool,
}

/// Rules that apply in a folder. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Option<Arc<Level>>);

#[derive(Debug)]
struct Level {
    dot_ignore: Option<Gitignore>,
    git_ignore: Option<Gitignore>,
    exclude: Option<Gitignore>,
    /// Whether this is the root of a repository, where git's rules from above end.
    repository: bool,
    /// Length of the path to this folder, including its slash.
    skip: usize,
    parent: Rules,
}

impl Rules {
    /// Returns the rules inside a folder; `rule_path` is its path from the base.
    pub(crate) fn inside(&self, rule_path: &[u8], found: &IgnoreContents) -> Self {
        let compiled = |bytes: &Option<Vec<u8>>| bytes.as_deref().and_then(compile);
        let dot_ignore = compiled(&found.dot_ignore);
        let git_ignore = compiled(&found.git_ignore);
        let exclude = compiled(&found.exclude);
        let any = dot_ignore.is_some() || git_ignore.is_some() || exclude.is_some();
        if !any && (!found.repository || self.0.is_none()) {
            return self.clone();
        }
        let skip = if rule_path.is_empty() {
            0
        } else {
            rule_path.len() + 1
        };
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

    /// Whether to exclude the entry at `rule_path`, its path from the base.
    pub(crate) fn ignore(&self, rule_path: &[u8], is_folder: bool) -> bool {
        if self.0.is_none() {
            return false;
        }
        let nearest = |pick: fn(&Level) -> &Option<Gitignore>, of_git: bool| {
            let mut here = self;
            while let Some(level) = &here.0 {
                if let (Some(rules), Some(path)) = (pick(level), rule_path.get(level.skip..)) {
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

/// Iterative, because thousands of nested levels would overflow the stack.
impl Drop for Level {
    fn drop(&mut self) {
        let mut next = self.parent.0.take();
        while let Some(level) = next {
            next = Arc::into_inner(level).and_then(|mut level| level.parent.0.take());
        }
    }
}

/// Compiles an ignore file. Skips lines that are not valid patterns or not text.
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
    fn a_huge_ignore_file_is_used_up_to_a_limit() {
        let lines: String = (0..50_000).map(|at| format!("file{at}\n")).collect();
        let rules = compile(lines.as_bytes()).unwrap();
        assert_eq!(rules.num_ignores(), MAX_LINES as u64);
    }
}
