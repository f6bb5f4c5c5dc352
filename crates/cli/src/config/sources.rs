//! Sources of values, in order of precedence: flag, variable, the project's file (or the
//! one named with `--config`), the user's file.

use super::keys::{self, Key, ValueKind};
use super::layer::{Layer, Role};
use super::value;
use super::withheld;
use super::yaml::{Content, Node};
use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use crate::trust::{Item, Trust};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the configuration file, in a work folder and in the user's config folder.
pub(crate) const FILE: &str = "haft.yaml";

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// File and line.
    File(String, u64),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::File(file, line) => write!(f, "{file}:{line}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value with its source.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) value: Value,
    /// The value as written, with variables unexpanded. Only this form is shown: a
    /// variable may hold a secret, and the file that uses it may not be the user's.
    pub(crate) written: Value,
    pub(crate) from: Origin,
}

/// An entry of a map or list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Whether the project's file contains it.
    pub(crate) is_project: bool,
    pub(crate) from: Origin,
    /// The value with variables unexpanded.
    pub(crate) written: Value,
    /// The value, or the error from expanding it.
    pub(crate) value: Result<Value, Failure>,
}

/// All sources of values.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    flags: &'a Shared,
    /// In order of precedence.
    pub(crate) layers: Vec<Layer>,
    /// Every file that was looked for, whether it exists or not, and the links on the way
    /// to it.
    pub(crate) searched_files: Vec<PathBuf>,
}

impl<'a> Sources<'a> {
    /// Reads the files. `folder` is the work folder, unless a file sets another.
    pub(crate) fn read(
        flags: &'a Shared,
        current: &Path,
        folder: &Path,
        config: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut layers = Vec::new();
        let mut searched_files = Vec::new();
        let user = config.map(|folder| folder.join(FILE));
        let named = flags
            .config
            .clone()
            .or_else(|| env::variable("HAFT_CONFIG").map(PathBuf::from));
        if let Some(named) = named {
            let shown = named.to_string_lossy();
            let path = current.join(&named);
            searched_files.extend(with_links(&path));
            let layer = Layer::load(Role::Named, &path, &shown)?
                .ok_or_else(|| Failure::at(&shown, "file not found"))?;
            layers.push(layer);
        } else {
            let path = folder.join(FILE);
            searched_files.extend(with_links(&path));
            let shown = path
                .strip_prefix(current)
                .unwrap_or(&path)
                .to_string_lossy();
            if user.as_ref() != Some(&path) {
                layers.extend(Layer::load(Role::Project, &path, &shown)?);
            }
        }
        if let Some(user) = user {
            searched_files.extend(with_links(&user));
            layers.extend(Layer::load(Role::User, &user, &user.to_string_lossy())?);
        }
        Ok(Self {
            flags,
            layers,
            searched_files,
        })
    }

    /// Removes values from the project's file that use variables it may not read. Returns
    /// the item to trust if the user could allow some of them.
    pub(crate) fn withhold(
        &mut self,
        trust: &Trust,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Item>, Failure> {
        let mut layers = self.layers.iter_mut();
        let Some(layer) = layers.find(|layer| layer.role == Role::Project) else {
            return Ok(None);
        };
        let item = withheld::of_project(layer);
        let is_trusted = item.as_ref().is_some_and(|item| trust.allows(item));
        withheld::withhold(layer, is_trusted, warnings)?;
        Ok(item)
    }

    /// Whether a key of the project's file was removed by [`Self::withhold`].
    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        let mut withheld = self.layers.iter().flat_map(|layer| &layer.withheld);
        withheld.any(|key| *key == name)
    }

    /// Returns the value of a key with the highest precedence.
    pub(crate) fn first(&self, name: &str) -> Result<Option<Given>, Failure> {
        if let Some(given) = self.explicit(name)? {
            return Ok(Some(given));
        }
        self.in_files(name, |_| true)
    }

    /// Returns the user's value and the project's. A flag or a variable overrides the
    /// project's.
    pub(crate) fn apart(&self, name: &str) -> Result<(Option<Given>, Option<Given>), Failure> {
        if let Some(given) = self.explicit(name)? {
            return Ok((Some(given), None));
        }
        Ok((
            self.in_files(name, |role| role != Role::Project)?,
            self.in_files(name, |role| role == Role::Project)?,
        ))
    }

    /// Returns the value of a key as written in the project's file.
    pub(crate) fn written_by_project(&self, name: &str) -> Option<Value> {
        let layer = self.layers.iter().find(|layer| layer.role == Role::Project);
        layer?.get(name).map(plain)
    }

    /// Returns a text from the project's file, unless a flag or a variable overrides it.
    pub(crate) fn of_project(&self, name: &str) -> Option<String> {
        let (_, project) = self.apart(name).ok()?;
        Some(project?.value.as_str()?.to_owned())
    }

    /// Returns the folder of a file, given its name in messages.
    pub(crate) fn folder_of(&self, shown: &str) -> Option<PathBuf> {
        let layer = self.layers.iter().find(|layer| layer.shown == shown);
        layer.map(|layer| layer.folder.clone())
    }

    /// Returns the folder of the project's file, if there is one.
    pub(crate) fn project(&self) -> Option<&Path> {
        let layer = self.layers.iter().find(|layer| layer.role == Role::Project);
        layer.map(|layer| layer.folder.as_path())
    }

    /// Returns the role of the file that a value comes from.
    pub(crate) fn role_of(&self, from: &Origin) -> Option<Role> {
        let Origin::File(shown, _) = from else {
            return None;
        };
        let layer = self.layers.iter().find(|layer| layer.shown == *shown);
        layer.map(|layer| layer.role)
    }

    /// Returns the entries of a map in all files, in order of precedence. Each is
    /// expanded separately, so an unset variable invalidates only its own entry.
    pub(crate) fn entries(&self, name: &str) -> Vec<Listed> {
        let mut all = Vec::new();
        for layer in &self.layers {
            let Some(Content::Map(entries)) = layer.get(name).map(|node| &node.content) else {
                continue;
            };
            for (key, node) in entries {
                let dotted = format!("{name}.{}", key.text);
                all.push(Listed {
                    name: key.text.clone(),
                    is_project: layer.role == Role::Project,
                    from: Origin::File(layer.shown.clone(), node.at.line),
                    value: expanded(layer, &dotted, node).map(|node| plain(&node)),
                    written: plain(node),
                });
            }
        }
        all
    }

    /// Returns the items of a list in all files, expanded separately as in
    /// [`Self::entries`], each with the folder of its file.
    pub(crate) fn items(&self, name: &str) -> Vec<(Listed, PathBuf)> {
        let mut all = Vec::new();
        for layer in &self.layers {
            let Some(Content::List(items)) = layer.get(name).map(|node| &node.content) else {
                continue;
            };
            for node in items {
                let listed = Listed {
                    name: String::new(),
                    is_project: layer.role == Role::Project,
                    from: Origin::File(layer.shown.clone(), node.at.line),
                    value: expanded(layer, name, node).map(|node| plain(&node)),
                    written: plain(node),
                };
                all.push((listed, layer.folder.clone()));
            }
        }
        all
    }

    /// Returns the items of a list inside a map of one file, expanded separately; `None`
    /// if it is not a list.
    pub(crate) fn items_in(
        &self,
        map: &str,
        entry: &str,
        file: &str,
    ) -> Option<Vec<(Origin, Result<Value, Failure>)>> {
        let layer = self.layers.iter().find(|layer| layer.shown == file)?;
        let Content::Map(entries) = &layer.get(map)?.content else {
            return None;
        };
        let (_, list) = entries.iter().find(|(key, _)| key.text == entry)?;
        let Content::List(items) = &list.content else {
            return None;
        };
        let dotted = format!("{map}.{entry}");
        let item = |node: &Node| {
            let from = Origin::File(layer.shown.clone(), node.at.line);
            let value = expanded(layer, &dotted, node).map(|node| plain(&node));
            (from, value)
        };
        Some(items.iter().map(item).collect())
    }

    /// Returns the value of a flag or a variable.
    pub(crate) fn explicit(&self, name: &str) -> Result<Option<Given>, Failure> {
        let Some(key) = keys::key(name) else {
            return Ok(None);
        };
        if let Some(flag) = key.flag
            && let Some(text) = self.flags.text(flag)
        {
            return from_text(key, flag, &text, Origin::Flag(flag)).map(Some);
        }
        if let Some(variable) = key.variable
            && let Some(text) = env::text(variable)
        {
            return from_text(key, variable, &text, Origin::Variable(variable)).map(Some);
        }
        Ok(None)
    }

    fn in_files(&self, name: &str, admit: impl Fn(Role) -> bool) -> Result<Option<Given>, Failure> {
        for layer in self.layers.iter().filter(|layer| admit(layer.role)) {
            if let Some(node) = layer.get(name) {
                return in_layer(layer, name, node).map(Some);
            }
        }
        Ok(None)
    }
}

/// Returns a path and all links it leads through.
fn with_links(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let mut path = path.to_owned();
    // The kernel's limit.
    for _ in 0..40 {
        let (Ok(target), Some(folder)) = (std::fs::read_link(&path), path.parent()) else {
            break;
        };
        path = folder.join(target);
        all.push(path.clone());
    }
    all
}

/// Returns the value of a key in one file, with variables expanded.
pub(crate) fn in_layer(layer: &Layer, name: &str, node: &Node) -> Result<Given, Failure> {
    let expanded = expanded(layer, name, node)?;
    if let Some(key) = keys::key(name) {
        value::check(key, &expanded).map_err(|wrong| {
            // The unexpanded value was already checked, so a variable is the cause.
            let written = node.text().unwrap_or_default();
            let expected = key.kind.expected();
            let message =
                format!("{name} must be {expected}, but \"{written}\" expands to something else");
            layer.problem(wrong.at, &message)
        })?;
    }
    Ok(Given {
        from: Origin::File(layer.shown.clone(), node.at.line),
        value: plain(&expanded),
        written: plain(node),
    })
}

fn expanded(layer: &Layer, name: &str, node: &Node) -> Result<Node, Failure> {
    let content = match &node.content {
        Content::Scalar(Value::String(text)) => {
            let text = value::expand(text, &env::text).map_err(|variable| {
                let message = format!("{name} needs variable {variable}, which is not set");
                layer.problem(node.at, &message)
            })?;
            Content::Scalar(text.into())
        }
        Content::List(items) => Content::List(
            items
                .iter()
                .map(|item| expanded(layer, name, item))
                .collect::<Result<_, _>>()?,
        ),
        Content::Map(entries) => Content::Map(
            entries
                .iter()
                .map(|(key, node)| Ok((key.clone(), expanded(layer, name, node)?)))
                .collect::<Result<_, _>>()?,
        ),
        Content::Scalar(other) => Content::Scalar(other.clone()),
    };
    Ok(Node {
        at: node.at,
        content,
    })
}

pub(crate) fn plain(node: &Node) -> Value {
    match &node.content {
        Content::Scalar(value) => value.clone(),
        Content::List(items) => items.iter().map(plain).collect(),
        Content::Map(entries) => Value::Object(
            entries
                .iter()
                .map(|(name, node)| (name.text.clone(), plain(node)))
                .collect(),
        ),
    }
}

/// Parses the text of a flag or a variable.
fn from_text(key: &Key, source: &str, text: &str, from: Origin) -> Result<Given, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "{source} must be {}, got \"{text}\"",
            key.kind.expected()
        ))
    };
    let value: Value = match key.kind {
        ValueKind::Truth => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => true.into(),
            "0" | "false" | "no" | "off" => false.into(),
            _ => return Err(wrong()),
        },
        ValueKind::Choice(names) if !names.contains(&text.trim()) => return Err(wrong()),
        ValueKind::Choice(_) => text.trim().into(),
        _ => text.into(),
    };
    Ok(Given {
        written: value.clone(),
        value,
        from,
    })
}
