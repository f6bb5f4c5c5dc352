//! What rules say about paths and hosts.

use haft_ops::glob::{Matcher, Reached};
use haft_ops::scope::closing::Extent;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A glob over paths, from the work folder or from the root.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    text: String,
    absolute: bool,
    matcher: Arc<Matcher>,
    /// What stands before a final `/**`: the folder itself is meant too, as a
    /// call that names it reaches all that is in it.
    folder: Option<Folder>,
}

#[derive(Debug, Clone)]
enum Folder {
    Start,
    Below(Arc<Matcher>),
}

impl PathPattern {
    pub(crate) fn new(glob: &str) -> Result<Self, String> {
        let compiled = |glob: &str| {
            Matcher::new(glob)
                .map(Arc::new)
                .map_err(|error| error.to_string())
        };
        if glob.split('/').any(|part| part == "..") {
            return Err(format!("path \"{glob}\" must not contain \"..\""));
        }
        if glob.starts_with('~') {
            return Err(format!(
                "path \"{glob}\" must be written out: from the work folder, or from /"
            ));
        }
        if glob.ends_with('/') {
            return Err(format!(
                "path \"{glob}\" would match one folder only; for all that is in it write \"{glob}**\""
            ));
        }
        let trimmed = glob.trim_start_matches("./");
        let folder = match trimmed.trim_start_matches('/').strip_suffix("**") {
            Some("") => Some(Folder::Start),
            Some(front) => match front.strip_suffix('/') {
                Some(folder) => Some(Folder::Below(compiled(folder)?)),
                None => None,
            },
            None => None,
        };
        Ok(Self {
            text: glob.to_owned(),
            absolute: glob.starts_with('/'),
            matcher: compiled(glob)?,
            folder,
        })
    }

    /// Whether it matches a path: absolute, and below the work folder if it is.
    pub(crate) fn matches(&self, absolute: &Path, below: Option<&Path>) -> bool {
        let path = self.compared(absolute, below);
        path.is_some_and(|path| self.matcher.matches(path) || self.is_folder(path))
    }

    /// Whether it matches a path or a folder that the path lies in.
    pub(crate) fn covers(&self, absolute: &Path, below: Option<&Path>) -> bool {
        let path = self.compared(absolute, below);
        path.is_some_and(|path| self.matcher.reached(path).matched || self.is_folder(path))
    }

    /// Where in the glob a path leads.
    pub(crate) fn reached(&self, absolute: &Path, below: Option<&Path>) -> Option<Reached> {
        let path = self.compared(absolute, below)?;
        Some(self.matcher.reached(path))
    }

    pub(crate) fn is_absolute(&self) -> bool {
        self.absolute
    }

    fn compared<'p>(&self, absolute: &'p Path, below: Option<&'p Path>) -> Option<&'p Path> {
        if self.absolute {
            absolute.strip_prefix("/").ok()
        } else {
            below
        }
    }

    fn is_folder(&self, path: &Path) -> bool {
        match &self.folder {
            Some(Folder::Start) => path.as_os_str().is_empty(),
            Some(Folder::Below(folder)) => folder.matches(path),
            None => false,
        }
    }

    /// The path before the first wildcard, and whether only a walk from there finds
    /// what is meant: `docs/**` is all of `docs`, which needs none.
    pub(crate) fn literal(&self) -> (PathBuf, Extent) {
        let parts: Vec<&str> = self
            .text
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let is_wild = |part: &&str| part.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let plain: Vec<&str> = parts
            .iter()
            .copied()
            .take_while(|part| !is_wild(part))
            .collect();
        let extent = match parts.get(plain.len()..) {
            Some([] | ["**"]) if !plain.is_empty() => Extent::Itself,
            _ => Extent::Below,
        };
        let start = if self.absolute { "/" } else { "" };
        (
            Path::new(start).join(plain.iter().collect::<PathBuf>()),
            extent,
        )
    }

    /// A path in an example, as it is compared. No absolute glob is about a path of a
    /// folder that is not known yet.
    pub(crate) fn example(&self, path: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
        let path = lexical(path);
        if path.is_absolute() {
            return Some((path, None));
        }
        (!self.absolute).then(|| (PathBuf::new(), Some(path)))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// A path without `.` and with each `..` taken as text. One that leads above
/// where a relative path starts stays.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir) => {}
                _ => out.push(part),
            },
            other => out.push(other),
        }
    }
    out
}

/// A host, or all hosts below one.
#[derive(Debug, Clone)]
pub(crate) struct HostPattern {
    name: String,
    below: bool,
}

impl HostPattern {
    pub(crate) fn new(given: &str) -> Result<Self, String> {
        let (name, below) = match given.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (given, false),
        };
        let name = host(name);
        let bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '*' | '/' | '@');
        if name.is_empty() || name.contains(bad) {
            return Err(format!(
                "host \"{given}\" must be a host, or \"*.\" and the name that others lie below"
            ));
        }
        Ok(Self { name, below })
    }

    pub(crate) fn matches(&self, given: &str) -> bool {
        let given = host(given);
        if !self.below {
            return given == self.name;
        }
        given
            .strip_suffix(&self.name)
            .and_then(|front| front.strip_suffix('.'))
            .is_some_and(|front| !front.is_empty())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.below {
            f.write_str("*.")?;
        }
        f.write_str(&self.name)
    }
}

/// Names of hosts have no case, and a dot at their end means nothing. An address has
/// many spellings, and one of the older protocol may be written into the newer one: as a
/// mapped address, or for a translator (NAT64).
fn host(name: &str) -> String {
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let name = bare.unwrap_or(name);
    let name = name.strip_suffix('.').unwrap_or(name);
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V6(wide)) => match wide.segments() {
            [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).to_string()
            }
            _ => wide.to_canonical().to_string(),
        },
        _ => name.to_ascii_lowercase(),
    }
}
