//! Settings of the model and limits of the agent. A project may choose among the user's
//! models and tighten limits. Where the conversation is sent needs the user's trust, even
//! if it is this machine.

use super::provider::{self, ForProvider, Levels};
use super::setting::Limit;
use super::sources::{Given, Pick, Readable, Sources};
use super::{Notes, format, redact, variables};
use crate::failure::Failure;
use crate::trust::{Item, Pin};
use haft::ops::text::brief;
use haft::ops::text::decode::visible;
use haft_agent::MemoryFile;
use haft_agent::provider::{Effort, Secret};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Settings of an agent.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Name of the provider.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Provider to use if `provider` is not set and the model's name does not start with
    /// one.
    pub fallback_provider: Option<String>,
    /// Address of the provider.
    pub base_url: Option<ForProvider<String>>,
    /// Key for the provider.
    pub api_key: Option<ForProvider<Secret>>,
    /// Set if a trusted project chooses the address together with a key that it may not
    /// read. The user's own keys are not sent to that address.
    pub is_keyless: bool,
    /// Recorded session for `provider: replay`.
    pub replay: Option<PathBuf>,
    /// Text that replaces the default prompt.
    pub system_prompt: Option<String>,
    /// Context size of `model` in tokens.
    pub context_window: Option<u64>,
    /// How much the model thinks.
    pub effort: Option<Effort>,
    /// Limit of turns per task.
    pub max_turns: Option<u64>,
    /// Limit of tokens per task.
    pub max_tokens: Option<u64>,
    /// Limit of US dollars per task.
    pub max_cost: Option<f64>,
    /// Maximum number of retries of a failed request.
    pub max_retries: Option<u64>,
    /// JSON Schema for the final answer of a non-interactive run.
    pub response_format: Option<Value>,
    /// Sub-agents that the model can start.
    pub subagents: Vec<ConfiguredSubagent>,
    /// Skill folders in the user's settings.
    pub(crate) skills: Vec<PathBuf>,
    /// Skill folders in the project's file, with their text. They need trust and must be
    /// inside the project.
    pub(crate) skills_of_project: Vec<(PathBuf, String)>,
    /// Files that are included in the prompt and that the model may update.
    pub memory: Vec<MemoryFile>,
}

/// A configured sub-agent.
#[derive(Debug, Clone)]
pub struct ConfiguredSubagent {
    /// Its description as written.
    pub spec: Value,
    /// File and line, for messages.
    pub from: String,
    /// Whether the project's file describes it.
    pub is_project: bool,
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
fn project_destination(sources: &Sources, levels: &Levels) -> ProjectDestination {
    let own = levels.of_user();
    let is_own = |provider: &str| own.as_deref() == Some(provider);
    let (mut written, mut differing) = (Vec::new(), Vec::new());
    for (name, value) in [
        ("provider", sources.of_project(|file| &file.provider)),
        ("base_url", sources.of_project(|file| &file.base_url)),
        ("api_key", sources.of_project(|file| &file.api_key)),
        ("replay", sources.of_project(|file| &file.replay)),
    ] {
        let Some(value) = value else {
            continue;
        };
        let project = || Some(sources.apart(|file| &file.provider).ok()?.1?.value.0);
        if name != "provider" || !project().is_some_and(|provider| is_own(&provider)) {
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
    if let Ok((_, Some(model))) = sources.apart(|file| &file.model) {
        named("model".to_owned(), Some(&model.value), &model.written);
    }
    for (_, given) in sources.all(|file| &file.subagents).unwrap_or_default() {
        if let (true, Ok(value)) = (given.is_project(), &given.value) {
            let name = model_of_subagent(&given.written);
            named(name, value["model"].as_str(), &given.written["model"]);
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
pub(crate) fn of_project(sources: &Sources) -> Option<Item> {
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
    let replay = sources.of_project(|file| &file.replay);
    let replay = replay.and_then(|file| Some(sources.project()?.folder.join(file.as_str()?)));
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

/// Settings that the project may choose if it is trusted.
struct Reader<'a> {
    sources: &'a Sources,
    is_project_trusted: bool,
    /// Keys of the project's file to ignore.
    ignored: Vec<String>,
    notes: &'a mut Notes,
}

impl<'a> Reader<'a> {
    fn get<T: Readable>(
        &mut self,
        name: &'static str,
        pick: Pick<T>,
    ) -> Result<Option<Given<'a, T>>, Failure> {
        let is_restricted =
            DESTINATION_KEYS.contains(&name) || self.ignored.iter().any(|key| key == name);
        let given = match !self.is_project_trusted && is_restricted {
            true => self.sources.apart(pick)?.0,
            false => self.sources.first(pick)?,
        };
        if let Some(given) = &given {
            let shown = shown_value(name, &given.written);
            self.notes.show_value(name, shown, given.from.to_string());
        }
        Ok(given)
    }

    /// Returns a limit: the user's, which the project can lower.
    fn limit<T: Readable + Limit>(
        &mut self,
        name: &'static str,
        pick: Pick<T>,
    ) -> Result<Option<T>, Failure> {
        let strictness = |value: &T| -value.amount();
        self.sources
            .stricter(name, pick, strictness, self.notes, None)
    }
}

/// Reads the settings.
///
/// # Errors
/// If a value needs a variable that is not set. Only commands that need a model fail
/// then.
pub(crate) fn load(
    sources: &Sources,
    is_project_trusted: bool,
    home: Option<&Path>,
    notes: &mut Notes,
) -> Result<Model, Failure> {
    let levels = Levels::read(sources);
    let ignored = match is_project_trusted {
        true => Vec::new(),
        false => ignored_keys(sources, &levels, notes),
    };
    let mut reader = Reader {
        sources,
        is_project_trusted,
        ignored,
        notes,
    };
    let for_provider = |given: Given<'_, String>| ForProvider {
        provider: levels.provider_for(&given.from),
        value: given.value,
    };
    // A project that wanted another key and may not read it gets no key at all.
    let is_keyless = is_project_trusted
        && sources.of_project(|file| &file.base_url).is_some()
        && sources.is_withheld("api_key");
    let mut model = Model {
        provider: reader
            .get("provider", |file| &file.provider)?
            .map(|given| given.value.0),
        model: reader
            .get("model", |file| &file.model)?
            .map(|given| given.value),
        fallback_provider: match is_project_trusted {
            true => levels.of_all(),
            false => levels.of_user(),
        },
        base_url: reader
            .get("base_url", |file| &file.base_url)?
            .map(for_provider),
        is_keyless,
        ..Model::default()
    };
    if !is_keyless {
        let key = reader
            .get("api_key", |file| &file.api_key)?
            .map(for_provider);
        model.api_key = key.map(|key| ForProvider {
            value: Secret::new(key.value),
            provider: key.provider,
        });
    }
    if let Some(given) = reader.get("effort", |file| &file.effort)? {
        model.effort = given.value.0.parse().ok();
    }
    let prompt = reader.get("system_prompt", |file| &file.system_prompt)?;
    model.system_prompt = prompt.map(|given| given.value);
    let replay = reader.get("replay", |file| &file.replay)?;
    model.replay = replay.map(|given| given.folder().join(&given.value));
    if let Some(given) = reader.get("response_format", |file| &file.response_format)? {
        let place = given.from.to_string();
        let schema = format::schema(&given.value, given.folder(), given.is_project(), &place)?;
        model.response_format = Some(schema);
    }
    let turns = reader.limit("max_turns", |file| &file.max_turns)?;
    model.max_turns = turns.map(|turns| turns.0);
    let tokens = reader.limit("max_tokens", |file| &file.max_tokens)?;
    model.max_tokens = tokens.map(|tokens| tokens.0);
    let window = reader.limit("context_window", |file| &file.context_window)?;
    model.context_window = window.map(|tokens| tokens.0);
    let cost = reader.limit("max_cost", |file| &file.max_cost)?;
    model.max_cost = cost.map(|dollars| dollars.0);
    let retries = reader.limit("max_retries", |file| &file.max_retries)?;
    model.max_retries = retries.map(|retries| retries.0);
    subagents(sources, &reader.ignored, &mut model, reader.notes)?;
    skills(sources, home, &mut model, reader.notes)?;
    memory(sources, &mut model, reader.notes)?;
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
fn ignored_keys(sources: &Sources, levels: &Levels, notes: &mut Notes) -> Vec<String> {
    let mut names = project_destination(sources, levels).differing;
    let is_ignored = |name: &str, names: &[String]| names.iter().any(|key| key == name);
    // The model belongs to the provider in the same file.
    if is_ignored("provider", &names)
        && !is_ignored("model", &names)
        && sources.of_project(|file| &file.model).is_some()
    {
        names.push("model".to_owned());
    }
    for name in &names {
        notes.warn(format!(
            "{}: {name} is ignored: it decides which service receives the whole conversation; run `haft trust` to review and allow it, or pass --trust to allow it once",
            super::FILE
        ));
    }
    names
}

fn subagents(
    sources: &Sources,
    ignored: &[String],
    model: &mut Model,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let (mut from, mut names) = (Vec::new(), Vec::new());
    for (_, given) in sources.all(|file| &file.subagents)? {
        let given = given.ready()?;
        let (is_project, folder) = (given.is_project(), given.folder());
        let name = &given.written["name"];
        names.push(name.clone());
        let mut spec = given.value;
        if is_project
            && ignored.contains(&model_of_subagent(&given.written))
            && let Some(spec) = spec.as_object_mut()
        {
            // It then uses its parent's model.
            spec.remove("model");
        }
        if let Some(Value::Array(skills)) = spec.get_mut("skills") {
            // A project's skills come from its skill folders, which need trust.
            skills.retain(|_| !is_project);
            for skill in skills.iter_mut() {
                let path = folder.join(skill.as_str().unwrap_or_default());
                *skill = path.to_string_lossy().into_owned().into();
            }
        }
        let place = given.from.to_string();
        if let Some(schema) = spec.get_mut("response_format") {
            let name = name.as_str().unwrap_or_default();
            let place = format!("{place}: sub-agent \"{name}\"");
            *schema = format::schema(schema, folder, is_project, &place)?;
        }
        from.push(given.from);
        model.subagents.push(ConfiguredSubagent {
            spec,
            from: place,
            is_project,
        });
    }
    notes.show_names("subagents", names, &from);
    Ok(())
}

fn skills(
    sources: &Sources,
    home: Option<&Path>,
    model: &mut Model,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let (mut from, mut paths) = (Vec::new(), Vec::new());
    for (_, given) in sources.all(|file| &file.skills)? {
        let given = given.ready()?;
        let path = match (Path::new(&given.value).strip_prefix("~"), home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => given.folder().join(&given.value),
        };
        paths.push(variables::shown_path(given.text(), &path));
        match given.is_project() {
            true => model
                .skills_of_project
                .push((path, given.text().to_owned())),
            false => model.skills.push(path),
        }
        from.push(given.from);
    }
    notes.show_names("skills", paths, &from);
    Ok(())
}

/// Reads the memory files. Their names are those the tools use, so that the model can
/// update them.
fn memory(sources: &Sources, model: &mut Model, notes: &mut Notes) -> Result<(), Failure> {
    let (mut from, mut written) = (Vec::new(), Vec::new());
    for (_, given) in sources.all(|file| &file.memory)? {
        let given = given.ready()?;
        let by_project = given.is_project();
        let path = given.value;
        if path.is_empty() || model.memory.iter().any(|file| file.path == path) {
            continue;
        }
        from.push(given.from);
        written.push(given.written);
        model.memory.push(MemoryFile { path, by_project });
    }
    notes.show_names("memory", written, &from);
    Ok(())
}

/// Returns the tools whose calls need approval. A project may add to them.
pub(crate) fn interrupt_on(
    sources: &Sources,
    notes: &mut Notes,
) -> Result<BTreeSet<String>, Failure> {
    let (mut tools, mut from) = (BTreeSet::new(), Vec::new());
    for (name, given) in sources.all(|file| &file.tools.interrupt_on)? {
        let given = given.ready()?;
        if given.value {
            tools.insert(name.to_owned());
            from.push(given.from);
        }
    }
    notes.show_names("tools.interrupt_on", tools.iter().cloned(), &from);
    Ok(tools)
}
