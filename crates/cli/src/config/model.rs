//! Which model answers, and how long an agent may work. A project may choose among
//! what the person has, and tighten limits; it does not say where what is said goes, not
//! even to this machine, unless the person trusts it.

use super::layer::Role;
use super::provider::{self, GivenFor, Levels};
use super::sources::{Given, Origin, Sources};
use super::{Shown, format, joined, redact, text, value};
use crate::exit::Failure;
use crate::trust::{Item, Pin};
use haft::ops::text::brief;
use haft::ops::text::decode::visible;
use haft_agent::MemoryFile;
use haft_agent::provider::Secret;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What an agent is made from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// The provider that is asked if `provider` is not set and the name of the model does
    /// not begin with one.
    pub(crate) otherwise: Option<String>,
    pub(crate) base_url: Option<GivenFor<String>>,
    pub(crate) api_key: Option<GivenFor<Secret>>,
    /// The project says where it goes, and with a key of its own that it does not get: the
    /// keys of the person are not for it.
    pub(crate) is_keyless: bool,
    /// A recorded session.
    pub(crate) replay: Option<PathBuf>,
    pub(crate) system_prompt: Option<String>,
    /// How many tokens `model` can take.
    pub(crate) context_window: Option<u64>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_retries: Option<u64>,
    /// A JSON Schema for the final answer of a headless run.
    pub(crate) response_format: Option<Value>,
    pub(crate) subagents: Vec<Described>,
    /// Folders of skills that the person names.
    pub(crate) skills: Vec<PathBuf>,
    /// Those that the project's file names, and how they are written there. They need
    /// trust, and must be in the project.
    pub(crate) skills_of_project: Vec<(PathBuf, String)>,
    /// Files whose text is part of the prompt, and which the model keeps up to date.
    pub(crate) memory: Vec<MemoryFile>,
}

/// A sub-agent as a file describes it.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) spec: Value,
    /// File and line, for messages.
    pub(crate) from: String,
    pub(crate) is_project: bool,
}

/// Keys that say where everything that is said goes.
const WHERE: [&str; 4] = ["provider", "base_url", "api_key", "replay"];

/// What the project's file says about it.
struct Said {
    /// The keys, and what is written there.
    written: Vec<(String, Value)>,
    /// Those that lead elsewhere than the person's own settings do.
    elsewhere: Vec<String>,
}

/// Collects what the project says about where everything goes. A choice among the models
/// of the person's own provider is none of that; another provider is, because the person
/// may have nothing there, and anybody may listen on this machine.
fn said(sources: &Sources<'_>, levels: &Levels) -> Said {
    let person = levels.of_person();
    let is_persons = |provider: &str| person.as_deref() == Some(provider);
    let (mut written, mut elsewhere) = (Vec::new(), Vec::new());
    for name in WHERE {
        let Some(value) = sources.written_by_project(name) else {
            continue;
        };
        if name != "provider"
            || !sources
                .of_project(name)
                .is_some_and(|value| is_persons(&value))
        {
            elsewhere.push(name.to_owned());
        }
        written.push((name.to_owned(), value));
    }
    let mut named = |name: String, value: Option<&str>, shown: &Value| {
        let Some((provider, _)) = value.and_then(provider::prefix) else {
            return;
        };
        if !levels.person_names_it() && !is_persons(provider.name()) {
            elsewhere.push(name.clone());
        }
        written.push((name, shown.clone()));
    };
    if let Some(shown) = sources.written_by_project("model") {
        named(
            "model".to_owned(),
            sources.of_project("model").as_deref(),
            &shown,
        );
    }
    for (listed, _) in sources.items("subagents") {
        if let (true, Ok(value)) = (listed.is_project, &listed.value) {
            named(
                model_of_subagent(&listed.written),
                value["model"].as_str(),
                &listed.written["model"],
            );
        }
    }
    Said { written, elsewhere }
}

/// How the model of a sub-agent is called in messages.
fn model_of_subagent(spec: &Value) -> String {
    let name = spec["name"].as_str().unwrap_or_default();
    format!("the model of the sub-agent {}", visible(&brief(name, 60)))
}

/// What the project says of that, to be looked at by the person.
pub(crate) fn of_project(sources: &Sources<'_>) -> Option<Item> {
    let said = said(sources, &Levels::read(sources));
    if said.elsewhere.is_empty() {
        return None;
    }
    // Whole: who says yes must see where everything goes.
    let shown = said.written.iter().map(|(name, value)| {
        let text = value.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| value.to_string());
        format!("{name}: {}", redact::text(name, &text))
    });
    let written: Vec<_> = said
        .written
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let replay = sources.written_by_project("replay");
    let replay = replay.and_then(|file| Some(sources.project()?.join(file.as_str()?)));
    Some(Item {
        kind: "model",
        name: "provider".to_owned(),
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
    let levels = Levels::read(sources);
    let left_out = match heeds {
        true => Vec::new(),
        false => left_out(sources, &levels, warnings),
    };
    let mut of = |name: &'static str| -> Result<Option<Given>, Failure> {
        let is_persons = WHERE.contains(&name) || left_out.iter().any(|left| left == name);
        let given = match !heeds && is_persons {
            true => sources.apart(name)?.0,
            false => sources.first(name)?,
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
    let given_for = |given: Option<Given>| {
        given.map(|given| GivenFor {
            value: text(&given).to_owned(),
            provider: levels.beside(&given.from),
        })
    };
    // A project that asked for another key and did not get it gets none at all.
    let is_keyless =
        heeds && sources.written_by_project("base_url").is_some() && sources.is_withheld("api_key");
    let mut model = Model {
        provider: texts(of("provider")?),
        model: texts(of("model")?),
        otherwise: match heeds {
            true => levels.of_all(),
            false => levels.of_person(),
        },
        base_url: given_for(of("base_url")?),
        api_key: match is_keyless {
            true => None,
            false => given_for(of("api_key")?).map(|given| GivenFor {
                value: Secret::new(given.value),
                provider: given.provider,
            }),
        },
        is_keyless,
        replay: None,
        system_prompt: texts(of("system_prompt")?),
        ..Model::default()
    };
    if let Some(given) = of("replay")? {
        model.replay = Some(beside(sources, &given));
    }
    if let Some(given) = of("response_format")? {
        let folder = match &given.from {
            Origin::File(name, _) => sources.folder_of(name),
            _ => None,
        };
        let is_project = sources.role_of(&given.from) == Some(Role::Project);
        let (folder, place) = (folder.unwrap_or_default(), given.from.to_string());
        let schema = format::schema(&given.value, &folder, is_project, &place)?;
        model.response_format = Some(schema);
    }
    model.max_turns = least(sources, "max_turns", shown)?.and_then(|value| value.as_u64());
    model.max_tokens = least(sources, "max_tokens", shown)?.and_then(|value| value.as_u64());
    model.context_window =
        least(sources, "context_window", shown)?.and_then(|value| value.as_u64());
    model.max_cost = least(sources, "max_cost", shown)?.and_then(|value| value.as_f64());
    model.max_retries = least(sources, "max_retries", shown)?.and_then(|value| value.as_u64());
    lists(sources, home, &left_out, &mut model, shown)?;
    Ok(model)
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

/// What of the project's file is left out, with a warning for each.
fn left_out(sources: &Sources<'_>, levels: &Levels, warnings: &mut Vec<String>) -> Vec<String> {
    let mut names = said(sources, levels).elsewhere;
    let is_left = |name: &str, names: &[String]| names.iter().any(|left| left == name);
    // A model is one of the provider beside it.
    if is_left("provider", &names)
        && !is_left("model", &names)
        && sources.written_by_project("model").is_some()
    {
        names.push("model".to_owned());
    }
    for name in &names {
        warnings.push(format!(
            "{}: {name} is not used: it decides which service receives the whole conversation; run `haft trust` to review and allow it, or pass --trust to allow it once",
            super::FILE
        ));
    }
    names
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
    left_out: &[String],
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
        if listed.is_project
            && left_out.contains(&model_of_subagent(&listed.written))
            && let Some(spec) = spec.as_object_mut()
        {
            // It works with the model of its agent then.
            spec.remove("model");
        }
        if let Some(Value::Array(skills)) = spec.get_mut("skills") {
            // Those of a project are in a folder of their own, which is looked at first.
            skills.retain(|_| !listed.is_project);
            for skill in skills.iter_mut() {
                let path = folder.join(skill.as_str().unwrap_or_default());
                *skill = path.to_string_lossy().into_owned().into();
            }
        }
        if let Some(given) = spec.get_mut("response_format") {
            let name = listed.written["name"].as_str().unwrap_or_default();
            let place = format!("{place}: sub-agent \"{name}\"");
            *given = format::schema(given, &folder, listed.is_project, &place)?;
        }
        model.subagents.push(Described {
            spec,
            from: place,
            is_project: listed.is_project,
        });
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
        let path = match (Path::new(name).strip_prefix("~"), home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => folder.join(name),
        };
        from.push(listed.from);
        let written = listed.written.as_str().unwrap_or_default();
        paths.push(value::shown_path(written, &path));
        match listed.is_project {
            true => model.skills_of_project.push((path, written.to_owned())),
            false => model.skills.push(path),
        }
    }
    if !from.is_empty() {
        shown.push(Shown {
            key: "skills",
            value: paths.into(),
            from: joined(&from),
        });
    }
    memory(sources, model, shown)
}

/// The files of memory. They are named as the tools name files, so that the model can
/// change them under the same name.
fn memory(sources: &Sources<'_>, model: &mut Model, shown: &mut Vec<Shown>) -> Result<(), Failure> {
    let (mut from, mut written) = (Vec::new(), Vec::new());
    for (listed, _) in sources.items("memory") {
        let value = listed.value?;
        let path = value.as_str().unwrap_or_default();
        if path.is_empty() || model.memory.iter().any(|file| file.path == path) {
            continue;
        }
        from.push(listed.from);
        written.push(listed.written);
        model.memory.push(MemoryFile {
            path: path.to_owned(),
            by_project: listed.is_project,
        });
    }
    if !from.is_empty() {
        shown.push(Shown {
            key: "memory",
            value: written.into(),
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
