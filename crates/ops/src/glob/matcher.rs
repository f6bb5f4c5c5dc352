//! One glob against one path, without a walk: for rules about paths.

pub use super::pattern::Reached;
use super::pattern::{Anchored, Dots, Memory, Pattern};
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
        let Some(name) = path.file_name() else {
            return false;
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut memory = Memory::default();
        let folder = folder.as_os_str().as_bytes();
        let said = self.pattern.says(folder, name.as_bytes(), &mut memory);
        said.matches
    }

    /// Where in the glob a path leads, which begins where the glob begins.
    #[must_use]
    pub fn reached(&self, path: &Path) -> Reached {
        self.pattern.reached(path.as_os_str().as_bytes())
    }
}
