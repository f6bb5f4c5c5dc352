//! One configuration file, read and checked: every key is known and every
//! value is of its kind. What it means for the session is decided elsewhere.

use super::file;
use super::keys::{self, Key, SECTION};
use super::redact;
use super::value;
use super::yaml::{self, Content, Node, Place};
use crate::exit::Failure;
use haft::ops::text::brief;
use haft::ops::text::decode::visible;
use haft::ops::text::spelling::closest;
use std::path::{Path, PathBuf};

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The work folder's, which may only tighten.
    Project,
    /// The person's own, for all folders.
    User,
    /// The one that the person named; as good as their own, and before it.
    Named,
}

/// A file's values.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) role: Role,
    /// Its name for messages.
    pub(crate) shown: String,
    /// Where its relative paths start.
    pub(crate) folder: PathBuf,
    pub(crate) entries: Vec<Entry>,
    /// The file as it was read.
    pub(crate) text: String,
    /// Keys that it sets to something that was not to be used.
    pub(crate) withheld: Vec<&'static str>,
}

/// A key that a file sets.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: &'static Key,
    pub(crate) node: Node,
}

/// Whether a project's file is a link to somewhere else: an error message would
/// show what is there.
fn leads_out(path: &Path) -> bool {
    let folder = path.parent();
    folder.is_some_and(|folder| haft::ops::beneath::real_within(folder, path).is_err())
}

impl Layer {
    /// Reads a file; `None` if there is none.
    pub(crate) fn load(role: Role, path: &Path, shown: &str) -> Result<Option<Self>, Failure> {
        let shown = visible(shown);
        if role == Role::Project && leads_out(path) {
            return Err(Failure::at(
                &shown,
                "is a link that leads out of this folder",
            ));
        }
        // The very file that was looked at: a link that appears now is not followed.
        let real = match role {
            Role::Project => haft::ops::scope::real(path),
            Role::User | Role::Named => None,
        };
        let follow = match real {
            Some(_) => file::Links::Refused,
            None => file::Links::Followed,
        };
        let Some(text) = file::read(real.as_deref().unwrap_or(path), &shown, follow)? else {
            return Ok(None);
        };
        Self::parse(role, path, &shown, text).map(Some)
    }

    /// Reads and checks the text of a file.
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
            Content::Map(entries) => layer.take(None, entries)?,
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

    fn take(
        &mut self,
        section: Option<&str>,
        entries: Vec<(yaml::Name, Node)>,
    ) -> Result<(), Failure> {
        for (name, node) in entries {
            if section.is_none() && name.text == SECTION {
                match node.content {
                    Content::Map(inner) => self.take(Some(SECTION), inner)?,
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
            // A key with nothing behind it is not set: its value was commented out.
            if node.is_null() {
                continue;
            }
            value::check(key, &node).map_err(|wrong| self.problem(wrong.at, &wrong.message))?;
            self.entries.push(Entry { key, node });
        }
        Ok(())
    }

    /// The value it has for a key.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries
            .iter()
            .find(|entry| entry.key.name == name)
            .map(|entry| &entry.node)
    }

    /// `haft.yaml:7:3`
    pub(crate) fn at(&self, at: Place) -> String {
        format!("{}:{}:{}", self.shown, at.line, at.column)
    }

    /// An error at a place of the file.
    pub(crate) fn problem(&self, at: Place, message: &str) -> Failure {
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
        // The right name at the wrong depth is as common as a slip.
        let elsewhere = keys::KEYS
            .iter()
            .find(|key| key.parts().1 == name.text)
            .map(|key| key.name);
        match (elsewhere, near.first()) {
            (Some(elsewhere), _) if elsewhere.contains('.') => {
                message.push_str(&format!("; it belongs under {SECTION}, as {elsewhere}"));
            }
            (Some(_), _) => {
                message.push_str(&format!("; it belongs at the top, beside {SECTION}"));
            }
            (None, Some(near)) => message.push_str(&format!("; did you mean \"{near}\"?")),
            (None, None) => {}
        }
        self.problem(name.at, &message)
    }

    /// An error that shows the line, as the parser's words need it.
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
                // Tabs are kept, so that the caret stands where the eye looks.
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
