//! The way through the protection of git configurations: commands may change harmless
//! variables in them. It also closes what no mount can: names that git would obey and that
//! do not exist.
//!
//! ```text
//! git in the sandbox: creates config.lock, reads config, writes config.lock,
//!                     rename(config.lock, config)  ──▶ refused by the kernel: read-only
//!                                └─ notification ──▶ haft reads config.lock and judges it,
//!                                                    publishes the bytes that it has judged,
//!                                                    and answers the call
//! ```
//!
//! A command never gets to write the file, so it makes no difference that it can change the
//! arguments of a call, or `config.lock`, while haft looks at them: haft publishes what it has
//! read itself (`publish`), or nothing. Every call that haft does not answer goes on to the
//! kernel and fails.
//!
//! A missing name is closed by refusing the calls that would create it. A command could
//! change the arguments of a call after haft has looked at them; what it creates that way is
//! moved out after the command.

use super::judgement::{Objection, judge};
use super::publish::{self, Config};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of refused changes to remember until the next reply.
const MAX_REFUSED: usize = 20;

/// What git appends to the name of a file for its new content.
const LOCK: &str = ".lock";

const HOOKS: &str = "hooks";

/// Kind of file that a call is about to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    /// A new folder, which is empty.
    Folder,
    /// Anything else, with any content.
    Other,
}

/// Git configurations that a command may change as far as that is harmless, and what it tried
/// beyond that.
#[derive(Debug, Default)]
pub struct ConfigGate {
    /// Real paths.
    configs: BTreeSet<PathBuf>,
    /// Real paths of what git would obey in these repositories if it existed.
    missing: BTreeSet<PathBuf>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    refused: Vec<RefusedConfig>,
    /// Content of each configuration when haft last changed it.
    published: HashMap<PathBuf, Vec<u8>>,
}

/// A change to a git configuration that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedConfig {
    /// The configuration.
    pub path: PathBuf,
    /// Why.
    pub objection: Objection,
}

impl ConfigGate {
    /// Creates a gate for these files, and for what is missing in their repositories.
    #[must_use]
    pub fn new(
        configs: impl IntoIterator<Item = PathBuf>,
        missing: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        Self {
            configs: configs.into_iter().collect(),
            missing: missing.into_iter().collect(),
            seen: Mutex::default(),
        }
    }

    /// Whether there is nothing to let through and nothing to close.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.configs.is_empty() && self.missing.is_empty()
    }

    /// Whether git would obey what a call is about to create at a real path.
    pub(crate) fn closes(&self, path: &Path, what: Created) -> bool {
        if self.missing.contains(path) {
            // `git init` creates a folder for hooks, and samples in it.
            return what != Created::Folder || !path.ends_with(HOOKS);
        }
        let is_sample = || path.extension().is_some_and(|suffix| suffix == "sample");
        let folder = path.parent();
        folder.is_some_and(|folder| self.missing.contains(folder)) && !is_sample()
    }

    /// Whether a real path is one of the configurations.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.configs.contains(path)
    }

    /// Returns the configuration for whose new content git uses a path.
    pub(crate) fn locked_by(&self, path: &Path) -> Option<&Path> {
        let name = path.file_name()?.to_str()?.strip_suffix(LOCK)?;
        let config = self.configs.get(&path.with_file_name(name))?;
        Some(config)
    }

    /// Replaces the content of a configuration with the one that a command has prepared, if
    /// that is harmless and the present one is still `before`. Calls `keep` before the change.
    pub(crate) fn replace(
        &self,
        path: &Path,
        before: &[u8],
        new: &[u8],
        keep: impl FnOnce(),
    ) -> Result<(), Objection> {
        judge(before, new)?;
        let failed = |error: io::Error| Objection::Failed {
            reason: error.to_string(),
        };
        let config = Config::open(path).map_err(failed)?;
        keep();
        match config.replace(before, new).map_err(failed)? {
            publish::Outcome::Published => {
                let published = &mut self.seen().published;
                published.insert(path.to_owned(), new.to_owned());
                Ok(())
            }
            publish::Outcome::Changed => Err(Objection::Conflict),
        }
    }

    /// Notes a refused change, for the reply.
    pub(crate) fn refuse(&self, path: &Path, objection: Objection) {
        let one = RefusedConfig {
            path: path.to_owned(),
            objection,
        };
        let refused = &mut self.seen().refused;
        if refused.len() < MAX_REFUSED && !refused.contains(&one) {
            refused.push(one);
        }
    }

    /// Takes out the refused changes.
    pub(crate) fn take_refused(&self) -> Vec<RefusedConfig> {
        std::mem::take(&mut self.seen().refused)
    }

    /// Whether a file is as haft has published it, so that its change was harmless.
    pub(crate) fn is_published(&self, path: &Path) -> bool {
        let seen = self.seen();
        let published = seen.published.get(path);
        published.is_some_and(|bytes| publish::present(path).is_ok_and(|now| now == *bytes))
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_would_obey_is_closed_and_nothing_else() {
        let missing = ["/w/.git/hooks", "/w/.git/commondir"].map(PathBuf::from);
        let gate = ConfigGate::new([], missing);
        for (path, created) in [
            ("/w/.git/commondir", Created::Other),
            ("/w/.git/commondir", Created::Folder),
            // Such as a link to a folder with hooks.
            ("/w/.git/hooks", Created::Other),
            ("/w/.git/hooks/pre-commit", Created::Other),
        ] {
            assert!(gate.closes(Path::new(path), created), "{path}");
        }
        for (path, created) in [
            ("/w/.git/hooks", Created::Folder),
            ("/w/.git/hooks/pre-commit.sample", Created::Other),
            ("/w/.git/config.worktree", Created::Other),
            ("/w/hooks/pre-commit", Created::Other),
            ("/w/.git/HEAD.lock", Created::Other),
        ] {
            assert!(!gate.closes(Path::new(path), created), "{path}");
        }
    }
}
