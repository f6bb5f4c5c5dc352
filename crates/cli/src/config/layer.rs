//! One configuration file, read and checked: all keys are known and all values have the
//! right type. Other modules interpret the values.

use super::keys::{self, Key, SECTION};
use super::value;
use super::yaml::{self, Content, Node, Position};
use super::{read, redact};
use crate::exit::Failure;
use haft::ops::text::brief;
use haft::ops::text::decode::visible;
use haft::ops::text::spelling::closest;
use std::path::{Path, PathBuf};

/// Owner of a file, which decides what it may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The project's, in the work folder; it can only tighten.
    Project,
    /// The user's own, for all folders.
    User,
    /// Named with `--config` for this run; has the rights of the user's own file and
    /// takes precedence over it.
    Named,
}

/// Values of one file.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) role: Role,
    /// Name of the file in messages.
    pub(crate) shown: String,
    /// Folder that relative paths start from.
    pub(crate) folder: PathBuf,
    pub(crate) entries: Vec<Entry>,
    /// Text of the file.
    pub(crate) text: String,
    /// Keys whose values were withheld because they use variables that the file may not
    /// read.
    pub(crate) withheld: Vec<&'static str>,
}

/// A key that a file sets.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: &'static Key,
    pub(crate) node: Node,
}

/// Whether a project's file is a link out of the project. Reading it would show the
/// target's content in error messages.
fn leads_out(path: &Path) -> bool {
    let folder = path.parent();
    folder.is_some_and(|folder| haft::ops::beneath::real_within(folder, path).is_err())
}

impl Layer {
    /// Reads a file; `None` if it does not exist.
    pub(crate) fn load(role: Role, path: &Path, shown: &str) -> Result<Option<Self>, Failure> {
        let shown = visible(shown);
        if role == Role::Project && leads_out(path) {
            return Err(Failure::at(
                &shown,
                "is a link that leads out of this folder",
            ));
        }
        // Open exactly the file that was checked: a link that appears now is not
        // followed.
        let real = match role {
            Role::Project => haft::ops::scope::real(path),
            Role::User | Role::Named => None,
        };
        let follow = match real {
            Some(_) => read::Links::Refused,
            None => read::Links::Followed,
        };
        let Some(text) = read::read(real.as_deref().unwrap_or(path), &shown, follow)? else {
            return Ok(None);
        };
        Self::parse(role, path, &shown, text).map(Some)
    }

    /// Parses and checks the text of a file.
    pub(crate) fn parse(
        role: Role,
        path: &Path,
        shown: &str,
        text: String,
    ) -> Result<Self, Failure> {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let mut layer = Self {
            role,
            shown: shown.to_owned(),
            folder,
            entries: Vec::new(),
            text: String::new(),
            withheld: Vec::new(),
        };
        let root = yaml::parse(&text).map_err(|malformed| layer.malformed(&malformed, &text))?;
        match root.content {
            Content::Map(entries) => layer.add_entries(None, entries)?,
            _ if root.is_null() => {}
            _ => {
                return Err(layer.problem(
                    root.at,
                    &format!("the file must be a map of settings, got {}", root.kind()),
                ));
            }
        }
        layer.text = text;
        Ok(layer)
    }

    fn add_entries(
        &mut self,
        section: Option<&str>,
        entries: Vec<(yaml::Name, Node)>,
    ) -> Result<(), Failure> {
        for (name, node) in entries {
            if section.is_none() && name.text == SECTION {
                match node.content {
                    Content::Map(inner) => self.add_entries(Some(SECTION), inner)?,
                    _ if node.is_null() => {}
                    _ => {
                        return Err(self.problem(
                            node.at,
                            &format!("{SECTION} must be a map, got {}", node.kind()),
                        ));
                    }
                }
                continue;
            }
            let dotted = match section {
                Some(section) => format!("{section}.{}", name.text),
                None => name.text.clone(),
            };
            let found = keys::key(&dotted).filter(|key| key.parts().0 == section);
            let Some(key) = found else {
                return Err(self.unknown(section, &name));
            };
            // A key without a value counts as unset: its value was commented out.
            if node.is_null() {
                continue;
            }
            value::check(key, &node).map_err(|wrong| self.problem(wrong.at, &wrong.message))?;
            self.entries.push(Entry { key, node });
        }
        Ok(())
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|entry| entry.key.name == name)
            .map(|entry| &entry.node)
    }

    /// `haft.yaml:7:3`
    pub(crate) fn at(&self, at: Position) -> String {
        format!("{}:{}:{}", self.shown, at.line, at.column)
    }

    /// Creates an error at a position in the file.
    pub(crate) fn problem(&self, at: Position, message: &str) -> Failure {
        Failure::at(&self.at(at), message)
    }

    fn unknown(&self, section: Option<&str>, name: &yaml::Name) -> Failure {
        let within = section
            .map(|section| format!(" in {section}"))
            .unwrap_or_default();
        let mut message = format!(
            "unknown key \"{}\"{within}",
            visible(&brief(&name.text, 100))
        );
        let near = closest(&name.text, keys::names_in(section), 1);
        // The right name at the wrong level is as common as a typo.
        let elsewhere = keys::KEYS
            .iter()
            .find(|key| key.parts().1 == name.text)
            .map(|key| key.name);
        match (elsewhere, near.first()) {
            (Some(elsewhere), _) if elsewhere.contains('.') => {
                message.push_str(&format!("; it belongs under {SECTION}, as {elsewhere}"));
            }
            (Some(_), _) => {
                message.push_str(&format!("; it belongs at the top level, beside {SECTION}"));
            }
            (None, Some(near)) => message.push_str(&format!("; did you mean \"{near}\"?")),
            (None, None) => {}
        }
        self.problem(name.at, &message)
    }

    /// Creates an error that also shows the line, which a parser's message needs to be
    /// understood.
    fn malformed(&self, malformed: &yaml::Malformed, text: &str) -> Failure {
        let Some(at) = malformed.at else {
            return Failure::at(&self.shown, &malformed.message);
        };
        let mut failure = self.problem(at, &malformed.message);
        let index = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
        if let Some(line) = text.lines().nth(index) {
            let (line, hidden) = redact::source_line(line);
            let number = at.line.to_string();
            failure.message.push_str(&format!("\n {number} | {line}"));
            if !hidden && at.column < 120 {
                let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or_default();
                // Tabs are kept, so that the caret is below the right column.
                let before: String = line
                    .chars()
                    .take(column)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                failure
                    .message
                    .push_str(&format!("\n {} | {before}^", " ".repeat(number.len())));
            }
        }
        failure
    }
}
