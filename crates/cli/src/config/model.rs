//! Which model answers, and how long an agent may work. A project may choose among
//! what the person has, and tighten limits; it does not say where what is said goes, not
//! even to this machine, unless the person trusts it.

use super::sources::{Given, Origin, Sources};
use super::{Shown, joined, redact, text, value};
use crate::exit::Failure;
use crate::trust::{Item, Pin};
use haft_agent::provider::Secret;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What an agent is made from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) api_key: Option<Secret>,
    /// The project says where it goes, and with a key of its own that it does not get: the
    /// keys of the person are not for it.
    pub(crate) is_keyless: bool,
    /// A recorded session.
    pub(crate) replay: Option<PathBuf>,
    pub(crate) system_prompt: Option<String>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_retries: Option<u64>,
    /// Specs of sub-agents, and where each stands.
    pub(crate) subagents: Vec<(Value, String)>,
    pub(crate) skills: Vec<PathBuf>,
}

/// Keys that say where everything that is said goes.
const WHERE: [&str; 4] = ["provider", "base_url", "api_key", "replay"];

/// What the project says of that, to be looked at by the person, unless it is a choice
/// among their own providers. Who listens on this machine may be anybody, so an address
/// is no better for being here.
pub(crate) fn of_project(sources: &Sources<'_>) -> Option<Item> {
    let project = |name: &str| sources.written_by_project(name);
    let said: Vec<(&str, Value)> = WHERE
        .into_iter()
        .filter_map(|name| Some((name, project(name)?)))
        .collect();
    if said.iter().all(|(name, _)| *name == "provider") {
        return None;
    }
    let shown = said.iter().map(|(name, value)| {
        let value = shown_value(name, value);
        format!("{name}: {}", value.as_str().unwrap_or_default())
    });
    let written: Vec<_> = said
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let replay = project("replay").and_then(|file| Some(sources.project()?.join(file.as_str()?)));
    Some(Item {
        kind: "model",
        name: "who answers".to_owned(),
        shown: shown.collect::<Vec<_>>().join(", "),
        pin: Pin {
            written: written.join("\n"),
            files: replay.into_iter().collect(),
        },
        remarks: vec!["it would see everything that is said and read, and get the key".to_owned()],
    })
}

/// Reads it.
///
/// # Errors
/// When a variable is not set that a value needs. Only who asks a model has to stop
/// for that.
pub(crate) fn load(
    sources: &Sources<'_>,
    heeds: bool,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Model, Failure> {
    if !heeds {
        warn_of_project(sources, warnings);
    }
    let whose = match heeds {
        true => whose_key(sources)?,
        false => Whose::Persons,
    };
    let mut of = |name: &'static str| -> Result<Option<Given>, Failure> {
        let given = if heeds || !WHERE.contains(&name) {
            sources.first(name)?
        } else {
            sources.apart(name)?.0
        };
        if let Some(given) = &given {
            shown.push(Shown {
                key: name,
                value: shown_value(name, &given.written),
                from: given.from.to_string(),
            });
        }
        Ok(given)
    };
    let texts = |given: Option<Given>| given.map(|given| text(&given).to_owned());
    let mut model = Model {
        provider: texts(of("provider")?),
        model: texts(of("model")?),
        base_url: texts(of("base_url")?),
        api_key: match whose {
            Whose::Persons => texts(of("api_key")?).map(Secret::new),
            Whose::Anothers | Whose::Nobodys => None,
        },
        is_keyless: whose == Whose::Nobodys,
        replay: None,
        system_prompt: texts(of("system_prompt")?),
        ..Model::default()
    };
    if let Some(given) = of("replay")? {
        model.replay = Some(beside(sources, &given));
    }
    model.max_turns = least(sources, "max_turns", shown)?.and_then(|value| value.as_u64());
    model.max_tokens = least(sources, "max_tokens", shown)?.and_then(|value| value.as_u64());
    model.max_cost = least(sources, "max_cost", shown)?.and_then(|value| value.as_f64());
    model.max_retries = least(sources, "max_retries", shown)?.and_then(|value| value.as_u64());
    lists(sources, home, &mut model, shown)?;
    Ok(model)
}

/// Whom the key is for that the person's file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Whoever answers; or the key is the project's own.
    Persons,
    /// Another provider.
    Anothers,
    /// An address that was to get another key.
    Nobodys,
}

/// A key is for whom the person gave it for: not for another provider or another
/// address because a project says so.
fn whose_key(sources: &Sources<'_>) -> Result<Whose, Failure> {
    let project = |name: &str| sources.written_by_project(name);
    if project("api_key").is_some() {
        return Ok(Whose::Persons);
    }
    if project("base_url").is_some() {
        return Ok(match sources.is_withheld("api_key") {
            // It asked for another one, and did not get that.
            true => Whose::Nobodys,
            false => Whose::Persons,
        });
    }
    let (person, project) = sources.apart("provider")?;
    let is_another = match (person, project) {
        (Some(person), Some(project)) => person.value != project.value,
        (None, Some(_)) => true,
        _ => false,
    };
    Ok(match is_another {
        true => Whose::Anothers,
        false => Whose::Persons,
    })
}

fn shown_value(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let line = redact::text(name, text.trim().lines().next().unwrap_or_default());
            line.chars().take(60).collect::<String>().into()
        }
        other => other.clone(),
    }
}

fn warn_of_project(sources: &Sources<'_>, warnings: &mut Vec<String>) {
    for name in WHERE {
        if sources.written_by_project(name).is_some() {
            warnings.push(format!(
                "{}: {name} is not used: it would say where everything goes that is said; `haft trust` shows and allows it, --trust does for once",
                super::FILE
            ));
        }
    }
}

/// A file that is named, from the folder of the one that names it.
fn beside(sources: &Sources<'_>, given: &Given) -> PathBuf {
    let folder = match &given.from {
        Origin::File(name, _) => sources.folder_of(name),
        _ => None,
    };
    folder.unwrap_or_default().join(text(given))
}

/// A limit: the person's, made smaller by the project if it likes.
fn least(
    sources: &Sources<'_>,
    name: &'static str,
    shown: &mut Vec<Shown>,
) -> Result<Option<Value>, Failure> {
    let (person, project) = sources.apart(name)?;
    let number = |given: &Given| given.value.as_f64().unwrap_or(f64::INFINITY);
    let chosen = match (person, project) {
        (Some(person), Some(project)) if number(&project) < number(&person) => project,
        (Some(person), _) => person,
        (None, Some(project)) => project,
        (None, None) => return Ok(None),
    };
    shown.push(Shown {
        key: name,
        value: chosen.written.clone(),
        from: chosen.from.to_string(),
    });
    Ok(Some(chosen.value))
}

fn lists(
    sources: &Sources<'_>,
    home: Option<&Path>,
    model: &mut Model,
    shown: &mut Vec<Shown>,
) -> Result<(), Failure> {
    let mut from = Vec::new();
    let mut names = Vec::new();
    for (listed, folder) in sources.items("subagents") {
        let place = listed.from.to_string();
        from.push(listed.from);
        names.push(listed.written["name"].clone());
        let mut spec = listed.value?;
        if let Some(Value::Array(skills)) = spec.get_mut("skills") {
            // Those of a project are in a folder of their own, which is looked at first.
            skills.retain(|_| !listed.is_project);
            for skill in skills.iter_mut() {
                let path = folder.join(skill.as_str().unwrap_or_default());
                *skill = path.to_string_lossy().into_owned().into();
            }
        }
        model.subagents.push((spec, place));
    }
    if !from.is_empty() {
        shown.push(Shown {
            key: "subagents",
            value: names.into(),
            from: joined(&from),
        });
    }
    let mut from = Vec::new();
    let mut paths = Vec::new();
    for (listed, folder) in sources.items("skills") {
        let value = listed.value?;
        let name = value.as_str().unwrap_or_default();
        // A folder outside is the person's to name.
        let path = match (Path::new(name).strip_prefix("~"), home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => folder.join(name),
        };
        if listed.is_project && !path.starts_with(&folder) {
            continue;
        }
        from.push(listed.from);
        let written = listed.written.as_str().unwrap_or_default();
        paths.push(value::shown_path(written, &path));
        model.skills.push(path);
    }
    if !from.is_empty() {
        shown.push(Shown {
            key: "skills",
            value: paths.into(),
            from: joined(&from),
        });
    }
    Ok(())
}

/// Tools whose calls wait for a person. A project may add to them.
pub(crate) fn interrupt_on(
    sources: &Sources<'_>,
    shown: &mut Vec<Shown>,
) -> Result<BTreeSet<String>, Failure> {
    let mut tools = BTreeSet::new();
    let mut from = Vec::new();
    for listed in sources.entries("tools.interrupt_on") {
        let name = listed.name;
        match listed.value? {
            Value::Bool(true) => {
                tools.insert(name);
                from.push(listed.from);
            }
            Value::Bool(false) => {}
            _ => {
                return Err(Failure::usage(format!(
                    "{}: tools.interrupt_on.{name} must be true or false",
                    listed.from
                )));
            }
        }
    }
    if !tools.is_empty() {
        let names: Vec<_> = tools.iter().cloned().collect();
        shown.push(Shown {
            key: "tools.interrupt_on",
            value: names.into(),
            from: joined(&from),
        });
    }
    Ok(tools)
}
