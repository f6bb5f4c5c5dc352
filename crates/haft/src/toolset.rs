//! A toolset: tools in the style of one agent, with that agent's conventions for paths,
//! failures and truncation.

use crate::{AnyTool, Content, Error, Offered, Reply};
use haft_ops::scope::spelling::{self, Misspelling};
use haft_ops::scope::{FileRules, Reading, ScopeConfig, Writing};
use haft_ops::spill::StoredOutput;
use haft_ops::text::limit::{Cut, Keep, Limit};
use haft_ops::{Access, FilePath, Scope};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A family of tools in one style. A plain value, so that programs can define their own.
pub struct Toolset {
    /// Name used in `Builder::toolset` and in the configuration.
    pub name: &'static str,
    /// All tools, in the order that the model sees them.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Named selections of tools. The first one is the default.
    pub presets: &'static [Preset],
    /// Style in which paths are written.
    pub paths: Paths,
    /// Files that the file tools can reach.
    pub reach: Reach,
    /// Limit for replies, unless a reply sets its own.
    pub limit: Limit,
    /// Prompt text about several tools together.
    pub guidance: &'static [Guidance],
    /// Returns prompt lines about where files are.
    pub layout: fn(&Layout<'_>) -> Vec<String>,
    /// Form of all replies.
    pub replies: ReplyForm,
    /// Formats a failure.
    pub failure: fn(&Error, &Offered) -> Reply,
    /// Formats the note that a reply was truncated.
    pub cut_note: fn(&Cut<'_>, Keep, Option<&StoredOutput>) -> String,
}

/// Form of all replies of a toolset. Replies of added tools follow it where they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyForm {
    /// Plain text.
    Text {
        /// Start of every failure. May be empty.
        failure_prefix: &'static str,
    },
    /// One JSON object.
    Object {
        /// Field that tells success from failure.
        status: StatusField,
        /// Field with the reason for a failure.
        reason: &'static str,
    },
}

/// The field of a JSON reply that tells success from failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusField {
    /// A boolean with this name: `true` for success.
    Flag(&'static str),
    /// A text with this name: `success` or `error`.
    Word(&'static str),
}

impl StatusField {
    /// Returns the name and value of the field.
    #[must_use]
    pub fn field(self, is_error: bool) -> (&'static str, Value) {
        match self {
            Self::Flag(name) => (name, Value::Bool(!is_error)),
            Self::Word(name) if is_error => (name, "error".into()),
            Self::Word(name) => (name, "success".into()),
        }
    }
}

impl ReplyForm {
    /// Whether replies are JSON objects.
    #[must_use]
    pub fn is_object(self) -> bool {
        matches!(self, Self::Object { .. })
    }

    /// Returns the text that every failure starts with. Empty if failures are objects.
    #[must_use]
    pub fn failure_prefix(self) -> &'static str {
        match self {
            Self::Text { failure_prefix } => failure_prefix,
            Self::Object { .. } => "",
        }
    }

    /// Adds a note to the content of a reply: as a field if it is an object, otherwise as a
    /// separate text.
    pub fn add_note(self, content: &mut Vec<Content>, note: &str) {
        let noted = match &**content {
            [Content::Text { text }] if self.is_object() => with_note(text, note),
            _ => None,
        };
        match noted {
            Some(text) => *content = vec![Content::Text { text }],
            None => content.push(Content::Text {
                text: format!("[{note}]"),
            }),
        }
    }
}

/// Adds the note to a JSON object. Returns `None` if the text is not one.
fn with_note(text: &str, note: &str) -> Option<String> {
    let mut object: Map<String, Value> = serde_json::from_str(text).ok()?;
    let note = match object.get("note").and_then(Value::as_str) {
        Some(before) => format!("{before}; {note}"),
        None => note.to_owned(),
    };
    object.insert("note".to_owned(), note.into());
    Some(Value::Object(object).to_string())
}

/// A named selection of tools.
#[derive(Debug, Clone, Copy)]
pub struct Preset {
    /// Name used in `Builder::preset` and in the configuration.
    pub name: &'static str,
    /// Names of its tools. Names that the toolset does not have are ignored.
    pub tools: &'static [&'static str],
}

/// Files that the file tools of a toolset can reach. Commands always follow the sandbox
/// mode: no program would start without the system's folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Whatever the sandbox mode allows, and the private temp folder.
    Mode,
    /// Only the work folder and the roots, or less if the sandbox mode allows less.
    Roots,
}

impl Reach {
    /// Limits the places of a session to those that its file tools can reach.
    pub(crate) fn of(self, scope_config: ScopeConfig) -> ScopeConfig {
        match self {
            Self::Mode => scope_config,
            Self::Roots => ScopeConfig {
                rules: scope_config.rules.tightened(FileRules {
                    reading: Reading::Roots,
                    writing: Writing::Roots,
                }),
                temp: None,
                ..scope_config
            },
        }
    }
}

/// A piece of advice for the prompt.
#[derive(Debug, Clone, Copy)]
pub struct Guidance {
    /// Tools that the advice is about. It is left out if one of them is missing.
    pub tools: &'static [&'static str],
    /// The advice itself.
    pub text: &'static str,
}

/// The location of a session's files, for the prompt.
pub struct Layout<'a> {
    /// Roots and path rules of the file tools.
    pub scope: &'a Scope,
    /// The machine that commands run on.
    pub commands: CommandPlace,
    /// Names of the tools that the model has.
    pub tools: &'a [&'a str],
}

/// The machine that the commands of a session run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandPlace {
    /// On this machine.
    Here,
    /// On another machine.
    Elsewhere,
    /// The session cannot run commands.
    Nowhere,
}

/// Style in which a toolset writes paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// Absolute, or relative to the work folder. A leading `@` is dropped, and `~/` is the
    /// home folder.
    Expanding,
    /// Absolute, or relative to the work folder; taken literally.
    Plain,
    /// Absolute in a virtual tree; `..`, `~` and drive letters are refused. A path that
    /// starts with the real path of a folder in the tree, as commands print it, is
    /// translated.
    Virtual,
}

impl Paths {
    /// Returns a path without the decoration that this style allows around it, for replies
    /// that name a file.
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

    /// Returns the path that is meant in this style, before following links.
    pub(crate) fn interpret(self, scope: &Scope, given: &str) -> PathBuf {
        match self {
            Self::Plain => PathBuf::from(given),
            Self::Virtual => {
                let path = Path::new(given);
                scope.from_host(path).unwrap_or_else(|| path.to_owned())
            }
            Self::Expanding => expand(scope, given),
        }
    }

    /// Checks a path written in this style.
    ///
    /// # Errors
    /// When the scope does not allow it.
    pub fn resolve(self, scope: &Scope, given: &str, access: Access) -> haft_ops::Result<FilePath> {
        match self {
            Self::Plain => scope.resolve(given, access),
            Self::Virtual => {
                spelling::check(given)?;
                if access == Access::Write && scope.is_for_commands_only(Path::new(given)) {
                    return Err(spelling::misspelt(given, Misspelling::CommandsOnly));
                }
                scope.resolve_as(given, &self.interpret(scope, given), access)
            }
            Self::Expanding => scope.resolve_as(given, &expand(scope, given), access),
        }
    }
}

/// Expands a path that a model wrote: models copy the `@file` notation that people use to
/// mention a file, add spaces around it, and write `~/` for the home folder. If a file with
/// the literal name exists, that file is meant.
fn expand(scope: &Scope, given: &str) -> PathBuf {
    if bare(given) != given {
        let literal = scope
            .resolve(given, Access::Unlink)
            .or_else(|_| scope.resolve(given, Access::Read));
        if literal.is_ok_and(|path| path.is_there()) {
            return PathBuf::from(given);
        }
    }
    let path = bare(given);
    let printed = unescaped(path);
    if let Some(known) = known_by(scope, path, &printed) {
        return known;
    }
    match (path.strip_prefix('~'), scope.home()) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => Path::new(path).to_owned(),
    }
}

/// Returns the path meant by a name that may have been copied from output, where control
/// characters are escaped: an existing file, or a new one in an existing folder.
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
            // The part that does not exist yet gets the name as written.
            let rest: PathBuf = written.components().skip(parts - new).collect();
            return Some(match new {
                0 => known,
                _ => known.join(rest),
            });
        }
    }
    None
}

/// Returns the paths that the text may stand for if it was copied from output, where
/// control characters are escaped: all of its components unescaped, or only some.
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

/// Returns the name that is printed as the given text, if printing it escapes anything.
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

/// Strips the decoration around a path.
fn bare(given: &str) -> &str {
    let path = given.trim();
    path.strip_prefix('@').unwrap_or(path)
}

impl Toolset {
    /// Returns the preset with the given name, or the default one.
    ///
    /// # Errors
    /// When the toolset has no such preset.
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

/// An unknown preset was requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("toolset \"{toolset}\" has no preset \"{name}\"; it has: {}", known.join(", "))]
pub struct UnknownPreset {
    /// The requested name.
    pub name: String,
    /// The toolset that lacks it.
    pub toolset: &'static str,
    /// Names of the presets that the toolset has.
    pub known: Vec<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolsets;

    #[test]
    fn failures_have_the_declared_form() {
        for name in toolsets::NAMES {
            let toolset = toolsets::by_name(name).unwrap();
            let reply = (toolset.failure)(&Error::failed("why"), &Offered::default());
            match toolset.replies {
                ReplyForm::Text { failure_prefix } => {
                    assert_eq!(reply.text(), format!("{failure_prefix}why"), "{name}");
                }
                ReplyForm::Object { status, reason } => {
                    let document: Value = serde_json::from_str(&reply.text()).unwrap();
                    let (field, value) = status.field(true);
                    assert_eq!(document[field], value, "{name}");
                    assert_eq!(document[reason], "why", "{name}");
                }
            }
        }
    }
}
