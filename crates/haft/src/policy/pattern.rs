//! Patterns in rules about paths and hosts.

use haft_ops::glob::{Matcher, Reached};
use haft_ops::scope::filter::Extent;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A glob over paths, absolute or relative to the work folder.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    text: String,
    absolute: bool,
    matcher: Arc<Matcher>,
    /// The part before a final `/**`. The folder itself matches too, because a call that
    /// names it reaches everything in it.
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
                "path \"{glob}\" must be absolute or relative to the work folder"
            ));
        }
        if glob.ends_with('/') {
            return Err(format!(
                "path \"{glob}\" would match only the folder itself; use \"{glob}**\" for everything in it"
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

    /// Whether the glob matches a path, given as absolute and, if it is below the work
    /// folder, as relative.
    pub(crate) fn matches(&self, absolute: &Path, below: Option<&Path>) -> bool {
        let path = self.compared(absolute, below);
        path.is_some_and(|path| self.matcher.matches(path) || self.is_folder(path))
    }

    /// Whether the glob matches a path or one of its parent folders.
    pub(crate) fn covers(&self, absolute: &Path, below: Option<&Path>) -> bool {
        let path = self.compared(absolute, below);
        path.is_some_and(|path| self.matcher.reached(path).matched || self.is_folder(path))
    }

    /// Returns how far into the glob a path leads.
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

    /// Returns the path before the first wildcard, and whether finding the matches requires
    /// a walk from there: `docs/**` is all of `docs` and requires none.
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

    /// Returns the path of an example in the form used for matching. An absolute glob
    /// cannot match a relative example, because the work folder is not known yet.
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

/// Removes `.` and resolves `..` textually. A `..` that leads above the start of a relative
/// path stays.
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

/// A host, or all hosts below a name.
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
                "host \"{given}\" must be a host name, or \"*.\" and a domain"
            ));
        }
        if name.contains(':') && name.parse::<IpAddr>().is_err() {
            return Err(format!(
                "host \"{given}\" must have no port; only rules about \"network\" can have one"
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

/// Normalizes a host. Names ignore case and a final dot. Addresses have many spellings, and
/// an IPv4 address may be embedded in an IPv6 one: as a mapped address, or for NAT64.
pub(super) fn host(name: &str) -> String {
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
