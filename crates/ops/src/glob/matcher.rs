//! Matching a glob with a single path, without a walk; used for path rules.

pub use super::pattern::Reached;
use super::pattern::{Anchored, Dots, Memory, Pattern};
use crate::Result;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A compiled glob that is matched with whole paths.
#[derive(Debug)]
pub struct Matcher {
    pattern: Pattern,
}

impl Matcher {
    /// Compiles a glob with [`Anchored::ToPath`] and [`Dots::Match`].
    ///
    /// # Errors
    /// [`crate::Error::InvalidGlob`] if the glob is not valid.
    pub fn new(glob: &str) -> Result<Self> {
        let pattern = Pattern::new(glob, Anchored::ToPath, Dots::Match)?;
        Ok(Self { pattern })
    }

    /// Whether the glob matches a path. Both must be relative to the same folder.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        let Some(name) = path.file_name() else {
            return false;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut memory = Memory::default();
        let folder = folder.as_os_str().as_bytes();
        let matched = self.pattern.check(folder, name.as_bytes(), &mut memory);
        matched.matches
    }

    /// Returns the positions in the glob that a path reaches. Both must be relative to the
    /// same folder.
    #[must_use]
    pub fn reached(&self, path: &Path) -> Reached {
        self.pattern.reached(path.as_os_str().as_bytes())
    }
}
