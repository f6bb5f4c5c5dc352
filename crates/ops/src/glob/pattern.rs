//! Globs: braces are expanded first, then one matcher handles names and another handles
//! paths.
//!
//! Paths are matched component by component. So `*` stays within a component, a leading dot
//! can require an explicit dot if a toolset says so, and a walk can skip folders that
//! cannot contain a match.

use crate::text::brace;
use crate::{Error, Result};
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest glob, in bytes: compiling one costs much more time and memory than its text.
const MAX_GLOB: usize = 4096;

/// Whether `*`, `?` and `**` match a leading dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// They match it.
    Match,
    /// They do not; the pattern must contain the dot.
    ExplicitOnly,
}

/// The text that a glob is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchored {
    /// The name, at any depth; or the path from the start if the pattern contains a `/`.
    AnyDepthByName,
    /// The path from the start: `*.txt` matches only in that folder.
    ToPath,
}

/// A compiled glob.
#[derive(Debug)]
pub(crate) struct Pattern {
    matching: Matching,
    /// Whether the pattern ends with a slash.
    pub(crate) only_folders: bool,
}

#[derive(Debug)]
enum Matching {
    Name(GlobSet),
    Path(PathGlob),
}

/// Result of matching an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternMatch {
    /// Whether the entry matches.
    pub(crate) matches: bool,
    /// Whether an entry below it may match.
    pub(crate) below: bool,
}

/// Positions in a pattern that a path reaches. Below two paths with the same positions, the
/// pattern matches the same names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reached {
    at: Vec<usize>,
    /// Whether the pattern matches the path or one of its parents.
    pub matched: bool,
    /// Whether the pattern may match something below the path.
    pub below: bool,
}

impl Pattern {
    pub(crate) fn new(given: &str, anchored: Anchored, dots: Dots) -> Result<Self> {
        let invalid = |reason: String| Error::InvalidGlob {
            glob: given.to_owned(),
            reason,
        };
        if given.len() > MAX_GLOB {
            let start = given.chars().take(60).collect::<String>();
            return Err(Error::InvalidGlob {
                glob: format!("{start}…"),
                reason: format!("it is longer than {MAX_GLOB} bytes"),
            });
        }
        let expanded = brace::expand(given).map_err(|error| invalid(error.to_string()))?;
        let only_folders = expanded.iter().all(|text| text.ends_with('/'));
        let alternatives: Vec<&str> = expanded
            .iter()
            .map(|text| text.strip_suffix('/').unwrap_or(text))
            .collect();
        if alternatives.iter().any(|text| parts(text).next().is_none()) {
            return Err(invalid("it is empty".to_owned()));
        }
        let names_only = anchored == Anchored::AnyDepthByName
            && !alternatives.iter().any(|text| text.contains('/'));
        let matching = if names_only && dots == Dots::Match {
            let mut set = GlobSetBuilder::new();
            for text in alternatives {
                set.add(compile(text).map_err(&invalid)?);
            }
            Matching::Name(set.build().map_err(|error| invalid(error.to_string()))?)
        } else {
            Matching::Path(PathGlob::new(&alternatives, anchored, dots).map_err(&invalid)?)
        };
        Ok(Self {
            matching,
            only_folders,
        })
    }

    /// Matches `name` in `folder`. `memory` belongs to the caller and caches the folder's
    /// positions for its entries.
    pub(crate) fn check(&self, folder: &[u8], name: &[u8], memory: &mut Memory) -> PatternMatch {
        match &self.matching {
            Matching::Name(set) => PatternMatch {
                matches: set.is_match(as_path(name)),
                below: true,
            },
            Matching::Path(glob) => glob.check(folder, name, memory),
        }
    }

    /// Returns the positions in the pattern that a path reaches.
    pub(crate) fn reached(&self, path: &[u8]) -> Reached {
        match &self.matching {
            Matching::Name(set) => Reached {
                at: vec![0],
                matched: names(path).any(|name| set.is_match(as_path(name))),
                below: true,
            },
            Matching::Path(glob) => glob.reached(path),
        }
    }
}

/// Cached positions for the last folder.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    folder: Option<Vec<u8>>,
    at: Vec<usize>,
}

/// All alternatives as one list of components.
#[derive(Debug)]
struct PathGlob {
    parts: Vec<Part>,
    /// Index of the first component of each alternative.
    starts: Vec<usize>,
    dots: Dots,
}

#[derive(Debug)]
enum Part {
    /// `**`: any number of components; at the end at least one.
    AnyDepth,
    /// Text without wildcards.
    Literal(Vec<u8>),
    /// A glob, and whether it starts with an explicit dot.
    Glob(GlobMatcher, bool),
    /// The end of an alternative.
    End,
}

impl PathGlob {
    fn new(alternatives: &[&str], anchored: Anchored, dots: Dots) -> Result<Self, String> {
        let mut glob = Self {
            parts: Vec::new(),
            starts: Vec::new(),
            dots,
        };
        for text in alternatives {
            glob.starts.push(glob.parts.len());
            if anchored == Anchored::AnyDepthByName && !text.contains('/') {
                glob.parts.push(Part::AnyDepth);
            }
            for part in parts(text) {
                // A repeated `**` is redundant and doubles the cost.
                let is_repeated = matches!(glob.parts.last(), Some(Part::AnyDepth));
                if part == "**" && is_repeated {
                    continue;
                }
                glob.parts.push(if part == "**" {
                    Part::AnyDepth
                } else if part.contains(['*', '?', '[', ']', '{', '}', '\\']) {
                    Part::Glob(
                        compile(part)?.compile_matcher(),
                        part.starts_with('.') || part.starts_with("\\."),
                    )
                } else {
                    Part::Literal(part.as_bytes().to_vec())
                });
            }
            glob.parts.push(Part::End);
        }
        Ok(glob)
    }

    fn check(&self, folder: &[u8], name: &[u8], memory: &mut Memory) -> PatternMatch {
        if memory.folder.as_deref() != Some(folder) {
            memory.at = self.begin();
            for part in names(folder) {
                memory.at = self.step(&memory.at, part);
            }
            memory.folder = Some(folder.to_vec());
        }
        let mut matched = PatternMatch {
            matches: false,
            below: false,
        };
        for &at in &memory.at {
            if self.takes(at, name) {
                let last = matches!(self.parts.get(at + 1), Some(Part::End));
                matched.matches |= last;
                matched.below |= !last || matches!(self.parts.get(at), Some(Part::AnyDepth));
            }
        }
        matched
    }

    fn reached(&self, path: &[u8]) -> Reached {
        let mut at = self.begin();
        let mut matched = false;
        for name in names(path) {
            let is_last = |at: usize| matches!(self.parts.get(at + 1), Some(Part::End));
            matched = matched || at.iter().any(|&at| is_last(at) && self.takes(at, name));
            at = self.step(&at, name);
        }
        let is_end = |at: usize| matches!(self.parts.get(at), Some(Part::End));
        Reached {
            below: at.iter().any(|&at| !is_end(at)),
            at,
            matched,
        }
    }

    /// Whether the component at `at` matches a name.
    fn takes(&self, at: usize, name: &[u8]) -> bool {
        let hidden = self.dots == Dots::ExplicitOnly && name.starts_with(b".");
        match self.parts.get(at) {
            Some(Part::AnyDepth) => !hidden,
            Some(Part::Literal(text)) => text == name,
            Some(Part::Glob(glob, has_dot)) => {
                (!hidden || *has_dot) && glob.is_match(as_path(name))
            }
            Some(Part::End) | None => false,
        }
    }

    fn begin(&self) -> Vec<usize> {
        let mut at = Vec::new();
        for begin in &self.starts {
            self.reach(*begin, &mut at);
        }
        at
    }

    fn step(&self, from: &[usize], name: &[u8]) -> Vec<usize> {
        let mut at = Vec::new();
        for &part in from {
            if self.takes(part, name) {
                let stays = matches!(self.parts.get(part), Some(Part::AnyDepth));
                self.reach(if stays { part } else { part + 1 }, &mut at);
            }
        }
        at
    }

    /// Adds a position, and those after a `**` that may be empty.
    fn reach(&self, mut place: usize, at: &mut Vec<usize>) {
        loop {
            if !at.contains(&place) {
                at.push(place);
            }
            match (self.parts.get(place), self.parts.get(place + 1)) {
                (Some(Part::AnyDepth), Some(next)) if !matches!(next, Part::End) => place += 1,
                _ => return,
            }
        }
    }
}

fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
}

/// Splits a pattern into components. Ignores `./` and repeated slashes.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
}

/// Compiles a component. Remaining braces are literal characters.
fn compile(text: &str) -> Result<globset::Glob, String> {
    GlobBuilder::new(&brace::escape(text))
        .literal_separator(true)
        .build()
        .map_err(|error| format!("{} in {text:?}", error.kind()))
}

fn as_path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, anchored: Anchored, dots: Dots, path: &str) -> bool {
        let pattern = Pattern::new(pattern, anchored, dots).unwrap();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        pattern
            .check(folder.as_bytes(), name.as_bytes(), &mut Memory::default())
            .matches
    }

    #[test]
    fn a_glob_that_is_too_long_is_refused_at_once() {
        let glob = "**/*a*".repeat(MAX_GLOB);
        let error = Pattern::new(&glob, Anchored::ToPath, Dots::Match).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("it is longer than 4096 bytes"),
            "{message}"
        );
        assert!(message.len() < 200, "{message}");
    }

    #[test]
    fn a_name_matches_at_any_depth() {
        for path in ["a.rs", "x/a.rs", "x/.y/a.rs"] {
            assert!(
                matches("*.rs", Anchored::AnyDepthByName, Dots::Match, path),
                "{path}"
            );
        }
        assert!(!matches(
            "*.rs",
            Anchored::AnyDepthByName,
            Dots::Match,
            "a.rs/b"
        ));
        assert!(matches(
            "{a,b}.rs",
            Anchored::AnyDepthByName,
            Dots::Match,
            "x/b.rs"
        ));
        assert!(matches(
            "x{a}.txt",
            Anchored::AnyDepthByName,
            Dots::Match,
            "x{a}.txt"
        ));
        assert!(!matches(
            "x{a}.txt",
            Anchored::AnyDepthByName,
            Dots::Match,
            "xa.txt"
        ));
        assert!(matches(
            "{a,}.txt",
            Anchored::AnyDepthByName,
            Dots::Match,
            ".txt"
        ));
    }

    #[test]
    fn a_slash_anchors() {
        let by_name = |pattern, path| matches(pattern, Anchored::AnyDepthByName, Dots::Match, path);
        assert!(by_name("src/*.rs", "src/a.rs"));
        assert!(by_name("/src/*.rs", "src/a.rs"));
        assert!(by_name("./src/*.rs", "src/a.rs"));
        assert!(!by_name("src/*.rs", "x/src/a.rs"));
        assert!(!by_name("src/*.rs", "src/x/a.rs"));
        assert!(by_name("src/**/*.rs", "src/a.rs"));
        assert!(by_name("src/**/*.rs", "src/x/y/a.rs"));
        assert!(by_name("**/test/*", "test/a"));
        assert!(
            by_name("{src/a,b}.rs", "x/b.rs"),
            "each alternative is anchored by its own slash"
        );
        assert!(by_name("a/**", "a/b/c"));
        assert!(!by_name("a/**", "a"));
    }

    #[test]
    fn paths_are_anchored_and_dots_must_be_explicit() {
        let glob = |pattern, path| matches(pattern, Anchored::ToPath, Dots::ExplicitOnly, path);
        assert!(glob("*.txt", "a.txt"));
        assert!(!glob("*.txt", "x/a.txt"));
        assert!(glob("**/*.txt", "x/y/a.txt"));
        assert!(glob("**", "x/y"));
        assert!(!glob("**/*.py", ".h/a.py"));
        assert!(glob("**/.h/*.py", "x/.h/a.py"));
        assert!(!glob("*", ".hid"));
        assert!(glob(".*", ".hid"));
        assert!(glob(".hid", ".hid"));
        assert!(!glob("?hid", ".hid"));
        assert!(glob("f{1..3}.txt", "f2.txt"));
        assert!(glob("{a,b", "{a,b"));
    }

    #[test]
    fn folders_that_cannot_contain_a_match_are_recognised() {
        let below = |pattern: &str, folder: &str, name: &str| {
            let pattern = Pattern::new(pattern, Anchored::ToPath, Dots::Match).unwrap();
            pattern
                .check(folder.as_bytes(), name.as_bytes(), &mut Memory::default())
                .below
        };
        assert!(!below("*.txt", "", "x"));
        assert!(below("x/*.txt", "", "x"));
        assert!(!below("x/*.txt", "", "y"));
        assert!(!below("x/*.txt", "x", "z"));
        assert!(below("x/**", "x", "z"));
        assert!(below("**/a", "p/q", "r"));
    }

    #[test]
    fn the_error_contains_the_invalid_glob() {
        for bad in ["[", "", "/", "a[", "{1..2000}"] {
            let error = Pattern::new(bad, Anchored::ToPath, Dots::Match).unwrap_err();
            assert!(matches!(error, Error::InvalidGlob { .. }), "{bad}");
        }
    }
}
