//! Limits of what is kept.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::path::Path;
use std::time::Duration;

/// Limits of what is kept. What exceeds them is named, never silently lost.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Maximum size of a file whose content is kept, in bytes.
    pub max_file: u64,
    /// Maximum size of everything kept for one session, in bytes. The oldest sets go first.
    pub max_session: u64,
    /// Age at which a session is removed.
    pub keep: Duration,
    /// Files whose content is not kept.
    pub skip: Skip,
}

/// Patterns of files whose content is not kept. A pattern without a slash matches a name at
/// any depth, one with a slash the path from the work folder. A folder that matches stands
/// for everything below it.
#[derive(Debug, Clone, Default)]
pub struct Skip {
    patterns: GlobSet,
}

impl Skip {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// If a pattern is not valid; the message names it.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let text = pattern.as_ref().trim_end_matches('/');
            let whole = match text.strip_prefix('/') {
                Some(anchored) => anchored.to_owned(),
                None if text.contains('/') => text.to_owned(),
                None => format!("**/{text}"),
            };
            let glob = GlobBuilder::new(&whole)
                .literal_separator(true)
                .build()
                .map_err(|error| error.to_string())?;
            set.add(glob);
        }
        let patterns = set.build().map_err(|error| error.to_string())?;
        Ok(Self { patterns })
    }

    /// Whether the content of a file is not kept. `below` is its path from the work folder.
    #[must_use]
    pub fn matches(&self, below: &Path) -> bool {
        !self.patterns.is_empty()
            && below
                .ancestors()
                .any(|part| !part.as_os_str().is_empty() && self.patterns.is_match(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_names_paths_and_everything_below_a_folder() {
        let skip = Skip::new(&["node_modules/", "*.iso", "/build/out", "docs/*.pdf"]).unwrap();
        let matches = |path: &str| skip.matches(Path::new(path));
        for path in [
            "node_modules/a/b.js",
            "sub/node_modules",
            "a.iso",
            "x/y/a.iso",
            "build/out/a",
            "docs/a.pdf",
        ] {
            assert!(matches(path), "{path}");
        }
        for path in ["x/build/out", "docs/x/a.pdf", "a.is", "", "modules"] {
            assert!(!matches(path), "{path}");
        }
        assert!(!Skip::default().matches(Path::new("a")));
        assert!(Skip::new(&["a[b"]).unwrap_err().contains("a[b"));
    }
}
