//! A toolset: the tools of one dialect, and how that dialect writes paths,
//! failures and cuts.

use crate::{AnyTool, Error, Offered, Reply};
use haft_ops::scope::spelling::{self, Misspelling};
use haft_ops::scope::{FileRules, Places, Reading, Writing};
use haft_ops::spill::Kept;
use haft_ops::text::limit::{Cut, Keep, Limit};
use haft_ops::{Access, FilePath, Scope};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A dialect of tools. A value, so that a program can make its own.
pub struct Toolset {
    /// Its name.
    pub name: &'static str,
    /// All its tools, in the order a model sees them.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Named selections of them. The first one is the default.
    pub presets: &'static [Preset],
    /// How it writes paths.
    pub paths: Paths,
    /// How far its file tools reach.
    pub reach: Reach,
    /// How much of a reply a model gets, unless the reply says otherwise.
    pub limit: Limit,
    /// What a prompt says about its tools together.
    pub guidance: &'static [Guidance],
    /// What a prompt says about where the files are, a line each.
    pub layout: fn(&Layout<'_>) -> Vec<String>,
    /// How it words a failure.
    pub failure: fn(&Error, &Offered) -> Reply,
    /// How it says that a reply was cut.
    pub cut_note: fn(&Cut<'_>, Keep, Option<&Kept>) -> String,
}

/// A named selection of tools.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The tools it lists, those among them that exist.
    pub tools: &'static [&'static str],
}

/// How far the file tools of a dialect reach. Commands follow the sandbox mode in
/// any case: without the system's folders no program would start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// As far as the sandbox mode says, and the private temp folder.
    Mode,
    /// The work folder and the roots alone, whatever the mode; less where the mode
    /// says less.
    Roots,
}

impl Reach {
    /// The places of a session as its file tools have them.
    pub(crate) fn of(self, places: Places) -> Places {
        match self {
            Self::Mode => places,
            Self::Roots => Places {
                rules: places.rules.tightened(FileRules {
                    reading: Reading::Roots,
                    writing: Writing::Roots,
                }),
                temp: None,
                ..places
            },
        }
    }
}

/// A piece of advice for the prompt.
#[derive(Debug, Clone, Copy)]
pub struct Guidance {
    /// The tools it speaks of: without one of them it is not given.
    pub tools: &'static [&'static str],
    /// The advice.
    pub text: &'static str,
}

/// Where the files of a session are, for the prompt.
pub struct Layout<'a> {
    /// The paths of the file tools.
    pub scope: &'a Scope,
    /// Where commands run.
    pub commands: CommandPlace,
    /// The tools that a model has.
    pub tools: &'a [&'a str],
}

/// Where the commands of a session run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandPlace {
    /// On this machine.
    Here,
    /// On another machine.
    Elsewhere,
    /// The session runs no commands.
    Nowhere,
}

/// How a dialect writes paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// Absolute or from the work folder; one leading `@` is dropped and `~/` is
    /// the home folder.
    Expanding,
    /// Absolute or from the work folder, taken literally.
    Plain,
    /// Absolute in a tree of its own; `..`, `~` and drive letters are refused. A path
    /// that begins with the real path of a folder of that tree, as commands print it, is
    /// translated.
    Virtual,
}

impl Paths {
    /// A path without what this dialect lets be written around it, for replies
    /// that say what was made.
    #[must_use]
    pub fn named(self, scope: &Scope, given: &str) -> String {
        match self {
            Self::Plain => given.to_owned(),
            Self::Virtual => match scope.from_host(Path::new(given)) {
                Some(path) => path.to_string_lossy().into_owned(),
                None => given.to_owned(),
            },
            Self::Expanding if given.contains("~/") || !unescaped(bare(given)).is_empty() => {
                bare(given).to_owned()
            }
            Self::Expanding => expand(scope, given).to_string_lossy().into_owned(),
        }
    }

    /// A path as this dialect means it, before any link is followed.
    pub(crate) fn meant(self, scope: &Scope, given: &str) -> PathBuf {
        match self {
            Self::Plain => PathBuf::from(given),
            Self::Virtual => {
                let path = Path::new(given);
                scope.from_host(path).unwrap_or_else(|| path.to_owned())
            }
            Self::Expanding => expand(scope, given),
        }
    }

    /// Checks a path as this dialect means it.
    ///
    /// # Errors
    /// When the scope does not admit it.
    pub fn resolve(self, scope: &Scope, given: &str, access: Access) -> haft_ops::Result<FilePath> {
        match self {
            Self::Plain => scope.resolve(given, access),
            Self::Virtual => {
                spelling::check(given)?;
                if access == Access::Write && scope.is_for_commands_only(Path::new(given)) {
                    return Err(spelling::misspelt(given, Misspelling::CommandsOnly));
                }
                scope.resolve_as(given, &self.meant(scope, given), access)
            }
            Self::Expanding => scope.resolve_as(given, &expand(scope, given), access),
        }
    }
}

/// A path as it was meant: models copy the `@file` notation that people use to
/// mention a file, put spaces around, and write `~/` for the home folder. A name
/// that is there as it is written is meant as it is written.
fn expand(scope: &Scope, given: &str) -> PathBuf {
    if given.starts_with(['@', ' ']) || given.ends_with(' ') {
        let literal = scope
            .resolve(given, Access::Unlink)
            .or_else(|_| scope.resolve(given, Access::Read));
        if literal.is_ok_and(|path| path.is_there()) {
            return PathBuf::from(given);
        }
    }
    let path = bare(given);
    let printed = unescaped(path);
    if let Some(meant) = known_by(scope, path, &printed) {
        return meant;
    }
    match (path.strip_prefix('~'), scope.home()) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => Path::new(path).to_owned(),
    }
}

/// What is meant by a path that may be written as it was printed: what is there by such
/// a name, or something in a folder that is.
fn known_by(scope: &Scope, path: &str, printed: &[String]) -> Option<PathBuf> {
    if printed.is_empty() {
        return None;
    }
    let is_there = |path: &Path| {
        let name = path.to_string_lossy();
        let found = scope
            .resolve_as(&name, path, Access::Unlink)
            .or_else(|_| scope.resolve_as(&name, path, Access::Read));
        found.is_ok_and(|path| path.is_there())
    };
    let written = Path::new(path);
    let parts = written.components().count();
    for new in 0..parts {
        let above = |path: &Path| path.ancestors().nth(new).map(Path::to_owned);
        if is_there(&above(written)?) {
            return None;
        }
        for name in printed {
            let Some(known) = above(Path::new(name)).filter(|known| is_there(known)) else {
                continue;
            };
            // What is not there yet is to be called as it is written.
            let rest: PathBuf = written.components().skip(parts - new).collect();
            return Some(match new {
                0 => known,
                _ => known.join(rest),
            });
        }
    }
    None
}

/// What a path may mean that is written in the form in which names with control
/// characters are printed: as a whole, or some of its parts.
fn unescaped(path: &str) -> Vec<String> {
    if !path.contains('\\') {
        return Vec::new();
    }
    let parts = path.split('/').map(|part| {
        let name = name_printed_as(part);
        name.unwrap_or_else(|| part.to_owned())
    });
    let parts: Vec<String> = parts.collect();
    let in_parts = Some(parts.join("/")).filter(|name| name != path);
    name_printed_as(path).into_iter().chain(in_parts).collect()
}

/// The name that is printed like this, if it is one that is not printed as it is.
fn name_printed_as(printed: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = printed;
    while let Some((before, escape)) = rest.split_once('\\') {
        name.push_str(before);
        let mut chars = escape.chars();
        match chars.next()? {
            't' => name.push('\t'),
            'r' => name.push('\r'),
            'n' => name.push('\n'),
            plain @ ('\'' | '"' | '\\') => name.push(plain),
            'u' => {
                let (digits, after) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                let number = u32::from_str_radix(digits, 16).ok()?;
                name.push(char::from_u32(number)?);
                chars = after.chars();
            }
            _ => return None,
        }
        rest = chars.as_str();
    }
    name.push_str(rest);
    let is_meant = name.contains(char::is_control);
    (is_meant && name.escape_default().to_string() == printed).then_some(name)
}

/// Without what is written around a path.
fn bare(given: &str) -> &str {
    let path = given.trim();
    path.strip_prefix('@').unwrap_or(path)
}

impl Toolset {
    /// The preset of that name, or the default one.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn preset(&self, name: Option<&str>) -> Result<&'static Preset, UnknownPreset> {
        let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
            return self.presets.first().ok_or_else(|| self.unknown(""));
        };
        self.presets
            .iter()
            .find(|preset| preset.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> UnknownPreset {
        let known = self.presets.iter().map(|preset| preset.name).collect();
        UnknownPreset {
            name: name.to_owned(),
            toolset: self.name,
            known,
        }
    }
}

/// A preset that a toolset does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("toolset \"{toolset}\" has no preset \"{name}\"; it has: {}", known.join(", "))]
pub struct UnknownPreset {
    /// The name asked for.
    pub name: String,
    /// The toolset asked.
    pub toolset: &'static str,
    /// The presets it has.
    pub known: Vec<&'static str>,
}
