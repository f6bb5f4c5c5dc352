//! Where values come from, in order: flag, variable, the project's file (or
//! the one that was named), the person's file.

use super::keys::{self, Key, Kind};
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

/// The name of the file, in a work folder and in the person's config folder.
pub(crate) const FILE: &str = "haft.yaml";

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// A file and a line of it.
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

/// A value and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) value: Value,
    /// The value as it is written, with the names of variables in it. This is
    /// what is shown: a variable may hold a secret, and the file that names it
    /// need not be the person's.
    pub(crate) written: Value,
    pub(crate) from: Origin,
}

/// An entry of a map.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    /// Whether it is the project's word.
    pub(crate) is_project: bool,
    pub(crate) from: Origin,
    /// Its value as it is written, with the names of variables in it.
    pub(crate) written: Value,
    /// Its value, or why there is none.
    pub(crate) value: Result<Value, Failure>,
}

/// All the places where values may be.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    flags: &'a Shared,
    /// The strongest first.
    pub(crate) layers: Vec<Layer>,
    /// Every file that was looked at, there or not, and the links on the way.
    pub(crate) looked_at: Vec<PathBuf>,
}

impl<'a> Sources<'a> {
    /// Reads the files. `here` is where haft works unless a file says otherwise.
    pub(crate) fn read(
        flags: &'a Shared,
        current: &Path,
        here: &Path,
        config: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut layers = Vec::new();
        let mut looked_at = Vec::new();
        let user = config.map(|folder| folder.join(FILE));
        let named = flags
            .config
            .clone()
            .or_else(|| env::variable("HAFT_CONFIG").map(PathBuf::from));
        if let Some(named) = named {
            let shown = named.to_string_lossy();
            let path = current.join(&named);
            looked_at.extend(with_links(&path));
            let layer = Layer::load(Role::Named, &path, &shown)?
                .ok_or_else(|| Failure::at(&shown, "there is no such file"))?;
            layers.push(layer);
        } else {
            let path = here.join(FILE);
            looked_at.extend(with_links(&path));
            let shown = path
                .strip_prefix(current)
                .unwrap_or(&path)
                .to_string_lossy();
            if user.as_ref() != Some(&path) {
                layers.extend(Layer::load(Role::Project, &path, &shown)?);
            }
        }
        if let Some(user) = user {
            looked_at.extend(with_links(&user));
            layers.extend(Layer::load(Role::User, &user, &user.to_string_lossy())?);
        }
        Ok(Self {
            flags,
            layers,
            looked_at,
        })
    }

    /// Takes out of the project's file what needs variables that it does not get, and
    /// tells which it would get if the person trusted it.
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

    /// Whether the project's file sets a key to something that it does not get.
    pub(crate) fn is_withheld(&self, name: &str) -> bool {
        let mut withheld = self.layers.iter().flat_map(|layer| &layer.withheld);
        withheld.any(|key| *key == name)
    }

    /// The value of a key: the first there is.
    pub(crate) fn first(&self, name: &str) -> Result<Option<Given>, Failure> {
        if let Some(given) = self.explicit(name)? {
            return Ok(Some(given));
        }
        self.in_files(name, |_| true)
    }

    /// The value that the person gave, and beside it what the project wants,
    /// unless a flag or a variable leaves the project no say.
    pub(crate) fn apart(&self, name: &str) -> Result<(Option<Given>, Option<Given>), Failure> {
        if let Some(given) = self.explicit(name)? {
            return Ok((Some(given), None));
        }
        Ok((
            self.in_files(name, |role| role != Role::Project)?,
            self.in_files(name, |role| role == Role::Project)?,
        ))
    }

    /// The value of a key as the project's file writes it.
    pub(crate) fn written_by_project(&self, name: &str) -> Option<Value> {
        let layer = self.layers.iter().find(|layer| layer.role == Role::Project);
        layer?.get(name).map(plain)
    }

    /// A text of the project's file, unless a flag or a variable takes its place.
    pub(crate) fn of_project(&self, name: &str) -> Option<String> {
        let (_, project) = self.apart(name).ok()?;
        Some(project?.value.as_str()?.to_owned())
    }

    /// The folder of a file by its name for messages.
    pub(crate) fn folder_of(&self, shown: &str) -> Option<PathBuf> {
        let layer = self.layers.iter().find(|layer| layer.shown == shown);
        layer.map(|layer| layer.folder.clone())
    }

    /// The folder of the project's file, if there is one.
    pub(crate) fn project(&self) -> Option<&Path> {
        let layer = self.layers.iter().find(|layer| layer.role == Role::Project);
        layer.map(|layer| layer.folder.as_path())
    }

    /// Who wrote the file that a value comes from.
    pub(crate) fn role_of(&self, from: &Origin) -> Option<Role> {
        let Origin::File(shown, _) = from else {
            return None;
        };
        let layer = self.layers.iter().find(|layer| layer.shown == *shown);
        layer.map(|layer| layer.role)
    }

    /// The entries of a map in the files, the strongest file first, each by itself:
    /// a variable that is not set spoils one of them and no other.
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

    /// The items of a list in the files, each by itself as with [`Self::entries`], and
    /// the folder of its file.
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

    /// The items of a list that is an entry of a map in one file, each by itself; none
    /// if it is no list.
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

    /// The value of a flag or a variable.
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

/// A path and, if it is a link, what it leads to, link by link.
fn with_links(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let mut path = path.to_owned();
    // The kernel follows as many.
    for _ in 0..40 {
        let (Ok(target), Some(folder)) = (std::fs::read_link(&path), path.parent()) else {
            break;
        };
        path = folder.join(target);
        all.push(path.clone());
    }
    all
}

/// The value of a key in one file, with its variables expanded.
pub(crate) fn in_layer(layer: &Layer, name: &str, node: &Node) -> Result<Given, Failure> {
    let expanded = expanded(layer, name, node)?;
    if let Some(key) = keys::key(name) {
        value::check(key, &expanded).map_err(|wrong| {
            // As written it was checked before, so a variable is to blame.
            let written = node.text().unwrap_or_default();
            let wanted = key.kind.wanted();
            let message =
                format!("{name} must be {wanted}, which the value of \"{written}\" is not");
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
                let message = format!("{name} needs the variable {variable}, which is not set");
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

/// A value as a flag or a variable spells it.
fn from_text(key: &Key, spelled: &str, text: &str, from: Origin) -> Result<Given, Failure> {
    let wrong = || {
        Failure::usage(format!(
            "{spelled} must be {}, got \"{text}\"",
            key.kind.wanted()
        ))
    };
    let value: Value = match key.kind {
        Kind::Truth => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" => true.into(),
            "0" | "false" | "no" | "off" => false.into(),
            _ => return Err(wrong()),
        },
        Kind::Choice(names) if !names.contains(&text.trim()) => return Err(wrong()),
        Kind::Choice(_) => text.trim().into(),
        _ => text.into(),
    };
    Ok(Given {
        written: value.clone(),
        value,
        from,
    })
}
