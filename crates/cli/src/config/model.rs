//! Settings of the model and limits of the agent. A project may choose among the user's
//! models and tighten limits. Where the conversation is sent needs the user's trust, even
//! if it is this machine.

use super::layer::Role;
use super::provider::{self, ForProvider, Levels};
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

/// Settings of an agent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// Provider to use if `provider` is not set and the model's name does not start with
    /// one.
    pub(crate) fallback_provider: Option<String>,
    pub(crate) base_url: Option<ForProvider<String>>,
    pub(crate) api_key: Option<ForProvider<Secret>>,
    /// Set if a trusted project chooses the address together with a key that it may not
    /// read. The user's own keys are not sent to that address.
    pub(crate) is_keyless: bool,
    /// Recorded session for `provider: replay`.
    pub(crate) replay: Option<PathBuf>,
    pub(crate) system_prompt: Option<String>,
    /// Context size of `model` in tokens.
    pub(crate) context_window: Option<u64>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_retries: Option<u64>,
    /// JSON Schema for the final answer of a non-interactive run.
    pub(crate) response_format: Option<Value>,
    pub(crate) subagents: Vec<ConfiguredSubagent>,
    /// Skill folders in the user's settings.
    pub(crate) skills: Vec<PathBuf>,
    /// Skill folders in the project's file, with their text. They need trust and must be
    /// inside the project.
    pub(crate) skills_of_project: Vec<(PathBuf, String)>,
    /// Files that are included in the prompt and that the model may update.
    pub(crate) memory: Vec<MemoryFile>,
}

/// A configured sub-agent.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredSubagent {
    pub(crate) spec: Value,
    /// File and line, for messages.
    pub(crate) from: String,
    pub(crate) is_project: bool,
}

/// Keys that decide where the conversation is sent.
const DESTINATION_KEYS: [&str; 4] = ["provider", "base_url", "api_key", "replay"];

/// Settings in the project's file that affect the destination of the conversation.
struct ProjectDestination {
    /// The keys and their values as written.
    written: Vec<(String, Value)>,
    /// The keys that differ from the user's own settings.
    differing: Vec<String>,
}

/// Collects what the project sets about the destination. Choosing a model of the user's
/// provider does not count. Choosing another provider does: the user may have no account
/// there, and any program could be listening on this machine.
fn project_destination(sources: &Sources<'_>, levels: &Levels) -> ProjectDestination {
    let own = levels.of_user();
    let is_own = |provider: &str| own.as_deref() == Some(provider);
    let (mut written, mut differing) = (Vec::new(), Vec::new());
    for name in DESTINATION_KEYS {
        let Some(value) = sources.written_by_project(name) else {
            continue;
        };
        if name != "provider" || !sources.of_project(name).is_some_and(|value| is_own(&value)) {
            differing.push(name.to_owned());
        }
        written.push((name.to_owned(), value));
    }
    let mut named = |name: String, value: Option<&str>, shown: &Value| {
        let Some((provider, _)) = value.and_then(provider::prefix) else {
            return;
        };
        if !levels.user_sets_provider() && !is_own(provider.name()) {
            differing.push(name.clone());
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
    ProjectDestination { written, differing }
}

/// Names a sub-agent's model in messages.
fn model_of_subagent(spec: &Value) -> String {
    let name = spec["name"].as_str().unwrap_or_default();
    format!("the model of the sub-agent {}", visible(&brief(name, 60)))
}

/// Returns the item that the user must trust before the project can choose the
/// destination.
pub(crate) fn of_project(sources: &Sources<'_>) -> Option<Item> {
    let destination = project_destination(sources, &Levels::read(sources));
    if destination.differing.is_empty() {
        return None;
    }
    // Not shortened: the user must see where the conversation would go.
    let shown = destination.written.iter().map(|(name, value)| {
        let text = value.as_str().map(str::to_owned);
        let text = text.unwrap_or_else(|| value.to_string());
        format!("{name}: {}", redact::text(name, &text))
    });
    let written: Vec<_> = destination
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
        remarks: vec!["it would receive the whole conversation, including files that are read, and the API key".to_owned()],
    })
}

/// Reads the settings.
///
/// # Errors
/// If a value needs a variable that is not set. Only commands that need a model fail
/// then.
pub(crate) fn load(
    sources: &Sources<'_>,
    is_project_trusted: bool,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Model, Failure> {
    let levels = Levels::read(sources);
    let ignored = match is_project_trusted {
        true => Vec::new(),
        false => ignored_keys(sources, &levels, warnings),
    };
    let mut get = |name: &'static str| -> Result<Option<Given>, Failure> {
        let is_restricted =
            DESTINATION_KEYS.contains(&name) || ignored.iter().any(|key| key == name);
        let given = match !is_project_trusted && is_restricted {
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
        given.map(|given| ForProvider {
            value: text(&given).to_owned(),
            provider: levels.provider_for(&given.from),
        })
    };
    // A project that wanted another key and may not read it gets no key at all.
    let is_keyless = is_project_trusted
        && sources.written_by_project("base_url").is_some()
        && sources.is_withheld("api_key");
    let mut model = Model {
        provider: texts(get("provider")?),
        model: texts(get("model")?),
        fallback_provider: match is_project_trusted {
            true => levels.of_all(),
            false => levels.of_user(),
        },
        base_url: given_for(get("base_url")?),
        api_key: match is_keyless {
            true => None,
            false => given_for(get("api_key")?).map(|given| ForProvider {
                value: Secret::new(given.value),
                provider: given.provider,
            }),
        },
        is_keyless,
        replay: None,
        system_prompt: texts(get("system_prompt")?),
        ..Model::default()
    };
    if let Some(given) = get("replay")? {
        model.replay = Some(relative_to_file(sources, &given));
    }
    if let Some(given) = get("response_format")? {
        let folder = match &given.from {
            Origin::File(name, _) => sources.folder_of(name),
            _ => None,
        };
        let is_project = sources.role_of(&given.from) == Some(Role::Project);
        let (folder, place) = (folder.unwrap_or_default(), given.from.to_string());
        let schema = format::schema(&given.value, &folder, is_project, &place)?;
        model.response_format = Some(schema);
    }
    model.max_turns = stricter_limit(sources, "max_turns", shown)?.and_then(|value| value.as_u64());
    model.max_tokens =
        stricter_limit(sources, "max_tokens", shown)?.and_then(|value| value.as_u64());
    model.context_window =
        stricter_limit(sources, "context_window", shown)?.and_then(|value| value.as_u64());
    model.max_cost = stricter_limit(sources, "max_cost", shown)?.and_then(|value| value.as_f64());
    model.max_retries =
        stricter_limit(sources, "max_retries", shown)?.and_then(|value| value.as_u64());
    lists(sources, home, &ignored, &mut model, shown)?;
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

/// Returns the keys of the project's file to ignore, with a warning for each.
fn ignored_keys(sources: &Sources<'_>, levels: &Levels, warnings: &mut Vec<String>) -> Vec<String> {
    let mut names = project_destination(sources, levels).differing;
    let is_ignored = |name: &str, names: &[String]| names.iter().any(|key| key == name);
    // The model belongs to the provider in the same file.
    if is_ignored("provider", &names)
        && !is_ignored("model", &names)
        && sources.written_by_project("model").is_some()
    {
        names.push("model".to_owned());
    }
    for name in &names {
        warnings.push(format!(
            "{}: {name} is ignored: it decides which service receives the whole conversation; run `haft trust` to review and allow it, or pass --trust to allow it once",
            super::FILE
        ));
    }
    names
}

/// Resolves a path relative to the file that contains it.
fn relative_to_file(sources: &Sources<'_>, given: &Given) -> PathBuf {
    let folder = match &given.from {
        Origin::File(name, _) => sources.folder_of(name),
        _ => None,
    };
    folder.unwrap_or_default().join(text(given))
}

/// Returns a limit: the user's, which the project can lower.
fn stricter_limit(
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
    ignored: &[String],
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
            && ignored.contains(&model_of_subagent(&listed.written))
            && let Some(spec) = spec.as_object_mut()
        {
            // It then uses its parent's model.
            spec.remove("model");
        }
        if let Some(Value::Array(skills)) = spec.get_mut("skills") {
            // A project's skills come from its skill folders, which need trust.
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
        model.subagents.push(ConfiguredSubagent {
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

/// Reads the memory files. Their names are those the tools use, so that the model can
/// update them.
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

/// Returns the tools whose calls need approval. A project may add to them.
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
