//! One glob against one path, without a walk: for rules about paths.

use super::pattern::{Anchored, Dots, Memory, Pattern, Said};
use crate::Result;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A compiled glob that is compared with whole paths, from the start.
#[derive(Debug)]
pub struct Matcher {
    pattern: Pattern,
}

impl Matcher {
    /// Compiles a glob, as [`Anchored::ToPath`] and [`Dots::Match`] mean it.
    ///
    /// # Errors
    /// [`crate::Error::InvalidGlob`] for a glob that cannot be used.
    pub fn new(glob: &str) -> Result<Self> {
        let pattern = Pattern::new(glob, Anchored::ToPath, Dots::Match)?;
        Ok(Self { pattern })
    }

    /// Whether it matches a path, which begins where the glob begins.
    #[must_use]
    pub fn matches(&self, path: &Path) -> bool {
        self.says(path).is_some_and(|said| said.matches)
    }

    /// Whether it may match anything below a path, which begins where the glob
    /// begins.
    #[must_use]
    pub fn may_match_below(&self, path: &Path) -> bool {
        self.says(path).is_none_or(|said| said.below)
    }

    fn says(&self, path: &Path) -> Option<Said> {
        let name = path.file_name()?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut memory = Memory::default();
        let folder = folder.as_os_str().as_bytes();
        Some(self.pattern.says(folder, name.as_bytes(), &mut memory))
    }
}
