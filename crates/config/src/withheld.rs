//! Withholds settings from a project's file. The environment belongs to the user: a
//! project can read variables only after the user trusts its file, and secrets never. A
//! value that is withheld here cannot be read, so that no setting can bypass the check.

use super::keys::{ProjectRight, project_right};
use super::layer::Layer;
use super::node::{Content, Node};
use super::{Notes, variables};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::trust::{Item, Pin};
use haft_agent::provider::Provider;
use std::collections::BTreeMap;

/// Returns the item to trust for the variables in a project's file; `None` if it uses no
/// variable that it could be allowed to read.
pub(crate) fn of_project(layer: &Layer) -> Option<Item> {
    let mut used: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for found in &layer.values {
        let right = project_right(&found.path);
        if !matches!(right, ProjectRight::Used | ProjectRight::Tightens) {
            continue;
        }
        let names = found.node.variables().into_iter();
        for name in names.filter(|name| !is_secret(name, &layer.environment)) {
            let paths = used.entry(name).or_default();
            if !paths.contains(&found.path.as_str()) {
                paths.push(&found.path);
            }
        }
    }
    let shown = used
        .iter()
        .map(|(name, paths)| format!("${{{name}}} in {}", paths.join(", ")));
    let shown = shown.collect::<Vec<_>>().join("; ");
    (!used.is_empty()).then(|| Item {
        kind: "variables",
        name: layer.file_name().to_owned(),
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

/// Withholds what the file may not set, and values that need a variable which it may not
/// read.
///
/// # Errors
/// If withholding a value would allow more than the file says.
pub(crate) fn withhold(
    layer: &mut Layer,
    is_trusted: bool,
    notes: &mut Notes,
) -> Result<(), Failure> {
    for (number, found) in layer.values.iter().enumerate() {
        let (path, from) = (&found.path, layer.origin(found));
        let refusal = VariableNames::of(&found.node).refusal(is_trusted, &layer.environment);
        let ignored = match (project_right(path), refusal) {
            (ProjectRight::Ignored, _) | (ProjectRight::Limited, Some(_)) => {
                "only your own haft.yaml or --config can set it".to_owned()
            }
            (ProjectRight::Literal, _) | (_, None) => continue,
            (ProjectRight::Tightens, Some(refusal)) => {
                let why = refusal.why;
                let message =
                    format!("{path} cannot be used, and ignoring it would allow more: {why}");
                return Err(layer.problem(found.node.at, &message).hint(refusal.remedy));
            }
            (_, Some(refusal)) => format!("{}; {}", refusal.why, refusal.remedy),
        };
        notes.warn(format!("{from}: {path} is ignored: {ignored}"));
        layer.withheld.insert(number);
    }
    Ok(())
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
                self.expanded.extend(variables::variables(text));
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

    fn refusal(&self, is_trusted: bool, environment: &Environment) -> Option<Refusal> {
        let mut all = self.expanded.iter().chain(&self.passed);
        if let Some(name) = all.find(|name| is_secret(name, environment)) {
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
pub(crate) fn is_secret(name: &str, environment: &Environment) -> bool {
    let value = environment.variable(name).unwrap_or_default();
    haft::ops::exec::environment::is_withheld(name.as_ref(), value)
        || Provider::ALL
            .iter()
            .any(|provider| provider.key_variable() == Some(name))
}
