//! Variables in a project's file. What the environment holds is the person's: a project
//! gets nothing of it before the person has trusted the file, and secrets never. What
//! needs such a variable is taken out of the file here, before anything is expanded, so
//! that no setting can forget to ask.

use super::FILE;
use super::keys::Kind;
use super::layer::{Entry, Layer};
use super::sources::Origin;
use super::value;
use super::yaml::{Content, Node};
use crate::env;
use crate::exit::Failure;
use crate::trust::{Item, Pin};
use haft_agent::provider::Provider;
use std::collections::BTreeMap;

/// Settings that a project has to make things stricter. Without them more would be
/// allowed than the file says, so nothing is started instead.
const STRICTER: [&str; 7] = [
    "sandbox",
    "network",
    "approve",
    "execution",
    "tools.work_dir",
    "tools.protect",
    "tools.web.deny_hosts",
];

/// Settings that a project has no say in, whatever is trusted.
const PERSONS: [&str; 5] = [
    "tools.channels",
    "tools.web",
    "tools.env",
    "tools.roots",
    "executor",
];

/// The variables that a file uses, to be looked at by the person; none if it uses none
/// that it could ever get.
pub(crate) fn of_project(layer: &Layer) -> Option<Item> {
    let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &layer.entries {
        if !expands(entry) || PERSONS.contains(&entry.key.name) {
            continue;
        }
        for name in Names::of(&entry.node).expanded {
            let keys = used.entry(name).or_default();
            if !is_secret(name) && !keys.contains(&entry.key.name) {
                keys.push(entry.key.name);
            }
        }
    }
    used.retain(|_, keys| !keys.is_empty());
    let shown = used
        .iter()
        .map(|(name, keys)| format!("${{{name}}} in {}", keys.join(", ")));
    let shown = shown.collect::<Vec<_>>().join("; ");
    (!used.is_empty()).then(|| Item {
        kind: "variables",
        name: FILE.to_owned(),
        shown,
        pin: Pin {
            written: layer.text.clone(),
            files: Vec::new(),
        },
        remarks: vec![
            "what they hold goes where these settings go: to the model, or to a program".to_owned(),
        ],
    })
}

/// Takes out of a project's file what needs a variable that it does not get.
///
/// # Errors
/// When that would allow more than the file says.
pub(crate) fn withhold(
    layer: &mut Layer,
    is_trusted: bool,
    warnings: &mut Vec<String>,
) -> Result<(), Failure> {
    let shown = layer.shown.clone();
    let mut judge = |key: &'static str, what: &str, node: &Node| -> Result<bool, Failure> {
        let Some(lack) = Names::of(node).lack(is_trusted) else {
            return Ok(true);
        };
        let from = Origin::File(shown.clone(), node.at.line);
        if STRICTER.contains(&what) || STRICTER.contains(&key) {
            let message = format!(
                "{what} cannot be used, and without it more would be allowed: {}",
                lack.why
            );
            let place = format!("{from}:{}", node.at.column);
            return Err(Failure::at(&place, &message).hint(lack.remedy));
        }
        warnings.push(if PERSONS.contains(&key) {
            format!(
                "{from}: {what} is ignored: only the person's own file may set it (or --config)"
            )
        } else {
            format!("{from}: {what} is not used: {}; {}", lack.why, lack.remedy)
        });
        Ok(false)
    };
    let mut kept = Vec::new();
    for mut entry in std::mem::take(&mut layer.entries) {
        if !expands(&entry) {
            kept.push(entry);
            continue;
        }
        let key = entry.key.name;
        let is_kept = match (entry.key.kind, &mut entry.node.content) {
            (Kind::List | Kind::Texts, Content::List(items)) => {
                let what = format!("an entry of {key}");
                for item in std::mem::take(items) {
                    if judge(key, &what, &item)? {
                        items.push(item);
                    }
                }
                true
            }
            (Kind::Map, Content::Map(all)) => {
                for (name, node) in std::mem::take(all) {
                    if judge(key, &format!("{key}.{}", name.text), &node)? {
                        all.push((name, node));
                    }
                }
                true
            }
            _ => judge(key, key, &entry.node)?,
        };
        match is_kept {
            true => kept.push(entry),
            false => layer.withheld.push(key),
        }
    }
    layer.entries = kept;
    Ok(())
}

/// Whether variables in the value of a key are expanded at all: those in rules are not.
fn expands(entry: &Entry) -> bool {
    !matches!(entry.key.kind, Kind::Rules)
}

/// The variables that a value names.
#[derive(Default)]
struct Names<'a> {
    /// As `${NAME}`.
    expanded: Vec<&'a str>,
    /// In a list of names that a program is passed.
    passed: Vec<&'a str>,
}

/// Why a value does not get its variables, and what to do about it.
struct Lack {
    why: String,
    remedy: &'static str,
}

impl<'a> Names<'a> {
    fn of(node: &'a Node) -> Self {
        let mut names = Self::default();
        names.add(node);
        names
    }

    fn add(&mut self, node: &'a Node) {
        match &node.content {
            Content::Scalar(scalar) => {
                let text = scalar.as_str().unwrap_or_default();
                self.expanded.extend(value::variables(text));
            }
            Content::List(items) => items.iter().for_each(|item| self.add(item)),
            Content::Map(entries) => {
                for (name, node) in entries {
                    if let ("env", Content::List(items)) = (name.text.as_str(), &node.content) {
                        self.passed.extend(items.iter().filter_map(Node::text));
                    }
                    self.add(node);
                }
            }
        }
    }

    fn lack(&self, is_trusted: bool) -> Option<Lack> {
        let mut all = self.expanded.iter().chain(&self.passed);
        if let Some(name) = all.find(|name| is_secret(name)) {
            return Some(Lack {
                why: format!(
                    "the variable {name} may hold a secret, which no project's file gets, trusted or not"
                ),
                remedy: "write this setting into your own haft.yaml (~/.config/haft), or name the file with --config",
            });
        }
        let first = self.expanded.first().filter(|_| !is_trusted)?;
        Some(Lack {
            why: format!("it needs the variable {first}, and this file is not trusted"),
            remedy: "run `haft trust` to review and allow it, or pass --trust to allow it once",
        })
    }
}

/// Whether a variable is one that commands may not see either, or the key of a provider.
pub(crate) fn is_secret(name: &str) -> bool {
    let held = env::variable(name).unwrap_or_default();
    haft::ops::exec::environment::is_withheld(name.as_ref(), &held)
        || Provider::ALL
            .iter()
            .any(|provider| provider.key_variable() == Some(name))
}
