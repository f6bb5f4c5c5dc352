//! Withholds variables from a project's file. The environment belongs to the user: a
//! project can read variables only after the user trusts its file, and secrets never.
//! Values that need such variables are removed here, before anything is expanded, so that
//! no setting can bypass the check.

use super::FILE;
use super::keys::ValueKind;
use super::layer::{Entry, Layer};
use super::sources::Origin;
use super::value;
use super::yaml::{Content, Node};
use crate::env;
use crate::exit::Failure;
use crate::trust::{Item, Pin};
use haft_agent::provider::Provider;
use std::collections::BTreeMap;

/// Settings that tighten. Dropping one would allow more than the file says, so it is an
/// error instead.
const TIGHTENING_KEYS: [&str; 7] = [
    "sandbox",
    "network",
    "approve",
    "execution",
    "tools.work_dir",
    "tools.protect",
    "tools.web.deny_hosts",
];

/// Settings that a project can never set, trusted or not.
const USER_ONLY_KEYS: [&str; 5] = [
    "tools.channels",
    "tools.web",
    "tools.env",
    "tools.roots",
    "executor",
];

/// Returns the item to trust for the variables in a project's file; `None` if it uses no
/// variable that it could be allowed to read.
pub(crate) fn of_project(layer: &Layer) -> Option<Item> {
    let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in &layer.entries {
        if !expands(entry) || USER_ONLY_KEYS.contains(&entry.key.name) {
            continue;
        }
        for name in VariableNames::of(&entry.node).expanded {
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
            "their values would go where these settings go: to the model or to a program"
                .to_owned(),
        ],
    })
}

/// Removes values that need a variable which the file may not read.
///
/// # Errors
/// If removing a value would allow more than the file says.
pub(crate) fn withhold(
    layer: &mut Layer,
    is_trusted: bool,
    warnings: &mut Vec<String>,
) -> Result<(), Failure> {
    let shown = layer.shown.clone();
    let mut judge = |key: &'static str, what: &str, node: &Node| -> Result<bool, Failure> {
        let Some(refusal) = VariableNames::of(node).refusal(is_trusted) else {
            return Ok(true);
        };
        let from = Origin::File(shown.clone(), node.at.line);
        if TIGHTENING_KEYS.contains(&what) || TIGHTENING_KEYS.contains(&key) {
            let message = format!(
                "{what} cannot be used, and ignoring it would allow more: {}",
                refusal.why
            );
            let place = format!("{from}:{}", node.at.column);
            return Err(Failure::at(&place, &message).hint(refusal.remedy));
        }
        warnings.push(if USER_ONLY_KEYS.contains(&key) {
            format!("{from}: {what} is ignored: only your own haft.yaml or --config can set it")
        } else {
            format!(
                "{from}: {what} is ignored: {}; {}",
                refusal.why, refusal.remedy
            )
        });
        Ok(false)
    };
    let mut remaining = Vec::new();
    for mut entry in std::mem::take(&mut layer.entries) {
        if !expands(&entry) {
            remaining.push(entry);
            continue;
        }
        let key = entry.key.name;
        let is_allowed = match (entry.key.kind, &mut entry.node.content) {
            (ValueKind::List | ValueKind::Texts, Content::List(items)) => {
                let what = format!("an entry of {key}");
                for item in std::mem::take(items) {
                    if judge(key, &what, &item)? {
                        items.push(item);
                    }
                }
                true
            }
            (ValueKind::Map, Content::Map(all)) => {
                for (name, node) in std::mem::take(all) {
                    if judge(key, &format!("{key}.{}", name.text), &node)? {
                        all.push((name, node));
                    }
                }
                true
            }
            _ => judge(key, key, &entry.node)?,
        };
        match is_allowed {
            true => remaining.push(entry),
            false => layer.withheld.push(key),
        }
    }
    layer.entries = remaining;
    Ok(())
}

/// Whether variables are expanded in this value; in rules they are not.
fn expands(entry: &Entry) -> bool {
    !matches!(entry.key.kind, ValueKind::Rules)
}

/// Variables in a value.
#[derive(Default)]
struct VariableNames<'a> {
    /// As `${NAME}`.
    expanded: Vec<&'a str>,
    /// Listed in `env`, to be passed to a program.
    passed: Vec<&'a str>,
}

/// Reason why a value is withheld, and what to do about it.
struct Refusal {
    why: String,
    remedy: &'static str,
}

impl<'a> VariableNames<'a> {
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

    fn refusal(&self, is_trusted: bool) -> Option<Refusal> {
        let mut all = self.expanded.iter().chain(&self.passed);
        if let Some(name) = all.find(|name| is_secret(name)) {
            return Some(Refusal {
                why: format!(
                    "variable {name} may hold a secret, which a project's file never gets, trusted or not"
                ),
                remedy: "move this setting to your own haft.yaml (~/.config/haft), or pass the file with --config",
            });
        }
        let first = self.expanded.first().filter(|_| !is_trusted)?;
        Some(Refusal {
            why: format!("it needs variable {first}, and this file is not trusted"),
            remedy: "run `haft trust` to review and allow it, or pass --trust to allow it once",
        })
    }
}

/// Whether a variable is hidden from commands, or is the key of a provider.
pub(crate) fn is_secret(name: &str) -> bool {
    let value = env::variable(name).unwrap_or_default();
    haft::ops::exec::environment::is_withheld(name.as_ref(), &value)
        || Provider::ALL
            .iter()
            .any(|provider| provider.key_variable() == Some(name))
}
