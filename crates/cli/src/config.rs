//! The configuration: what is in force, and where each value comes from.

pub(crate) mod approve;
mod channels;
pub(crate) mod commands;
mod file;
pub(crate) mod files;
pub(crate) mod format;
mod keys;
mod layer;
pub(crate) mod mcp;
pub(crate) mod model;
mod places;
pub(crate) mod plugins;
mod policy;
pub(crate) mod provider;
pub(crate) mod redact;
mod sandbox;
pub(crate) mod schema;
mod sources;
pub(crate) mod template;
mod value;
pub(crate) mod web;
mod wide;
mod withheld;
mod yaml;

pub(crate) use keys::{APPROVE, MODES};
pub(crate) use places::Chosen;
pub(crate) use sources::FILE;

use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use crate::trust::{Item, Trust};
use haft::ops::scope::FileRules;
use haft::truncate::format_size;
use haft::{Approve, Policy};
use haft_web::Channel;
use places::Named;
use serde_json::Value;
use sources::{Given, Origin, Sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is in force.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) toolset: String,
    /// `None` for the toolset's own.
    pub(crate) preset: Option<String>,
    pub(crate) work_dir: PathBuf,
    pub(crate) chosen: Chosen,
    /// The folder that the person works in, unless a project's file moves it.
    pub(crate) started: PathBuf,
    /// The folder that the process itself runs in, where `--dir` or `HAFT_DIR` names another
    /// one. Its code is no more trusted than the project's.
    pub(crate) current: Option<PathBuf>,
    /// Zero for none.
    pub(crate) timeout: Duration,
    pub(crate) roots: Vec<PathBuf>,
    /// What the person lists, and every file that may be configuration.
    pub(crate) protect: Vec<PathBuf>,
    /// Whether the person or the project lists anything to protect.
    pub(crate) protects: bool,
    pub(crate) rules: FileRules,
    /// The name of the sandbox mode that makes them.
    pub(crate) mode: String,
    pub(crate) commands: commands::Commands,
    pub(crate) files: files::Files,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) web: web::Web,
    pub(crate) plugins: Vec<plugins::Configured>,
    /// MCP servers whose tools a session has.
    pub(crate) mcp: Vec<mcp::Configured>,
    /// Which model answers; or what keeps that from being known.
    pub(crate) model: Result<model::Model, Failure>,
    /// What the project's file says that has to be looked at first: the variables it uses,
    /// and which model answers.
    pub(crate) of_project: Vec<Item>,
    pub(crate) interrupt_on: BTreeSet<String>,
    /// Whether everything of the project may run, this once.
    pub(crate) trust: bool,
    pub(crate) policy: Policy,
    pub(crate) approve: Approve,
    pub(crate) log: String,
    pub(crate) quiet: bool,
    pub(crate) concurrency: usize,
    pub(crate) folders: haft::Folders,
    /// Keys, tokens and passwords in the files.
    pub(crate) secrets: Vec<String>,
    /// What the person should know about the files.
    pub(crate) warnings: Vec<String>,
    /// Every key that is set or has a default, to be shown.
    pub(crate) shown: Vec<Shown>,
}

impl Settings {
    /// Whether tools may be given the work folder.
    ///
    /// # Errors
    /// When it is a home folder or one of the system, and nobody named it.
    pub(crate) fn open_to_tools(&self) -> Result<(), Failure> {
        match wide::what(&self.work_dir) {
            Some(what) if self.chosen == Chosen::ByNobody => {
                Err(wide::refusal(&self.work_dir, what))
            }
            _ => Ok(()),
        }
    }

    /// The folder of the project: the one that haft was started in. A home folder or `/` is
    /// none, where the person has chosen another folder to work in.
    pub(crate) fn project(&self) -> &Path {
        let is_elsewhere = self.chosen == Chosen::ByPerson && self.started != self.work_dir;
        if is_elsewhere && wide::holds_home(&self.started) {
            &self.work_dir
        } else {
            &self.started
        }
    }

    /// The text of a key as its file writes it, if there are variables in it: what they
    /// hold is not shown.
    pub(crate) fn as_written(&self, key: &str) -> Option<&str> {
        let shown = self.shown.iter().find(|shown| shown.key == key)?;
        let written = shown.value.as_str()?;
        value::variables(written).next().map(|_| written)
    }
}

/// A key as `haft config show` prints it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    pub(crate) from: String,
}

/// The folder that a command without configuration works in.
pub(crate) fn folder(flags: &Shared) -> Result<PathBuf, Failure> {
    Ok(places::here(flags, &env::current_folder()?)?.0)
}

/// Checks the text of a file before it is written: its size, its keys, their values and its
/// rules.
pub(crate) fn check(text: &str, path: &Path) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let size = text.len() as u64;
    if size > file::MAX_BYTES {
        let most = format_size(file::MAX_BYTES);
        let message = format!(
            "would be {}, and haft reads at most {most}",
            format_size(size)
        );
        return Err(Failure::at(&shown, &message));
    }
    let layer = layer::Layer::parse(layer::Role::Named, path, &shown, text.to_owned())?;
    policy::check(&layer)
}

/// The text of another program's file, or `None` if there is none. Such files may be
/// large: some programs keep histories beside their settings.
pub(crate) fn read_text(path: &Path, shown: &str) -> Result<Option<String>, Failure> {
    file::read_up_to(path, shown, file::Links::Followed, 64 << 20)
}

/// Whether a variable is one that a project's file never gets.
pub(crate) fn is_secret(variable: &str) -> bool {
    withheld::is_secret(variable)
}

/// The names of the variables in a text.
pub(crate) fn variables(text: &str) -> Vec<String> {
    value::variables(text).map(str::to_owned).collect()
}

/// A YAML document as a value.
pub(crate) fn yaml_value(text: &str, shown: &str) -> Result<Value, Failure> {
    let node = yaml::parse(text).map_err(|malformed| {
        let place = match malformed.at {
            Some(at) => format!("{shown}:{}:{}", at.line, at.column),
            None => shown.to_owned(),
        };
        Failure::at(&place, &malformed.message)
    })?;
    Ok(sources::plain(&node))
}

/// The preset, which must be one of the toolset. Which tools are offered is a
/// choice and not a right: what they may touch is decided elsewhere.
fn preset(sources: &Sources<'_>, toolset: &str) -> Result<Option<Given>, Failure> {
    let given = sources.first("tools.preset")?;
    if let (Some(given), Some(toolset)) = (&given, haft::toolsets::by_name(toolset))
        && let Err(mut error) = toolset.preset(Some(text(given)))
    {
        error.name = written(given).to_owned();
        let failure = Failure::usage(format!("{}: {error}", given.from));
        return Err(failure.hint("--preset NAME chooses another for this run"));
    }
    Ok(given)
}

/// Whether a preset of the toolset lists the tools of the web.
pub(crate) fn lists_web(toolset: &str, preset: Option<&str>) -> bool {
    let toolset = haft::toolsets::by_name(toolset);
    let listed = toolset.and_then(|toolset| Some(toolset.preset(preset).ok()?.tools));
    listed.is_some_and(|tools| tools.contains(&"web_fetch"))
}

/// Whether the tools of the web are offered because the project says so, and the person
/// does not. Then a person is asked first: what a page is asked for can carry away what
/// the model has read.
fn web_by_project(sources: &Sources<'_>, toolset: &str) -> Result<bool, Failure> {
    let (person, project) = sources.apart("tools.preset")?;
    let lists = |given: &Given| lists_web(toolset, Some(text(given)));
    Ok(project.as_ref().is_some_and(lists) && !person.as_ref().is_some_and(lists))
}

/// Reads flags, variables and files.
pub(crate) fn load(flags: &Shared) -> Result<Settings, Failure> {
    let folders = env::folders();
    if let Some(state) = &folders.state {
        haft::ops::private::ours(state).map_err(|error| {
            Failure::failed(format!(
                "{} cannot be used for sessions, trust and outputs: {error}",
                state.display()
            ))
            .hint("make it a folder of yours, or name another place with XDG_STATE_HOME")
        })?;
    }
    let home = folders.home.as_deref();
    let current = env::current_folder()?;
    let here = places::here(flags, &current)?;
    let started = here.0.clone();
    let mut sources = Sources::read(flags, &current, &here.0, folders.config.as_deref())?;
    let trust = Trust::load(folders.state.as_deref(), &started, flags.trust);
    let mut warnings = Vec::new();
    let variables = sources.withhold(&trust, &mut warnings)?;
    let mut shown = Vec::new();
    let mut show = |key, value: Value, from: String| shown.push(Shown { key, value, from });

    let toolset = given_or(sources.first("tools.toolset")?, "standard".into());
    show(
        "tools.toolset",
        toolset.written.clone(),
        toolset.from.to_string(),
    );
    let preset = preset(&sources, text(&toolset))?;
    let own = haft::toolsets::by_name(text(&toolset))
        .and_then(|toolset| toolset.presets.first().map(|preset| preset.name));
    let in_force = given_or(preset.clone(), own.into());
    show("tools.preset", in_force.written, in_force.from.to_string());

    let (work_dir, from, chosen) = places::work_dir(&sources, here, home)?;
    show("tools.work_dir", work_dir.shown.into(), from.to_string());
    let work_dir = work_dir.path;
    let timeout = timeout(&sources, &mut warnings)?;
    show(
        "tools.timeout",
        timeout.written.clone(),
        timeout.from.to_string(),
    );
    let (roots, from) = places::roots(&sources, home, &mut warnings)?;
    show("tools.roots", places_shown(&roots), from.to_string());
    let mut bases = vec![work_dir.as_path()];
    if started != work_dir {
        bases.push(&started);
    }
    let (protect, from) = places::protect(&sources, &bases, home)?;
    show("tools.protect", places_shown(&protect), joined(&from));

    let concurrency = given_or(sources.first("max_tool_concurrency")?, 4.into());
    let protects = !protect.is_empty();
    let protect = protect
        .into_iter()
        .map(|place| place.path)
        // A tool that writes settings would decide what the next start allows.
        .chain(sources.looked_at.iter().cloned())
        .collect();
    show(
        "max_tool_concurrency",
        concurrency.written.clone(),
        concurrency.from.to_string(),
    );
    let (rules, mode, from) = mode(&sources, &mut warnings)?;
    show("sandbox", mode.clone().into(), joined(&from));
    let commands = commands::commands(&sources, &mut warnings, &mut shown)?;
    let files = files::load(&sources, text(&toolset), &mut warnings, &mut shown)?;
    let channels = channels::load(&sources, &mut warnings, &mut shown)?;
    let mut web = web::load(&sources, home, &mut warnings, &mut shown)?;
    web.by_project = web_by_project(&sources, text(&toolset))?;
    let plugins = plugins::load(&sources, &flags.plugin, &current, &mut warnings)?;
    if !plugins.is_empty() {
        let labels: Vec<&str> = plugins.iter().map(|plugin| plugin.label.as_str()).collect();
        let from: Vec<&str> = plugins.iter().map(|plugin| plugin.from.as_str()).collect();
        shown.push(Shown {
            key: "tools.plugins",
            value: labels.into(),
            from: from.join(", "),
        });
    }
    let mcp = mcp::load(&sources, &mut warnings, &mut shown)?;
    let model_of_project = model::of_project(&sources);
    let heeds = model_of_project
        .as_ref()
        .is_none_or(|item| trust.allows(item));
    let model = model::load(&sources, heeds, home, &mut warnings, &mut shown);
    let interrupt_on = model::interrupt_on(&sources, &mut shown)?;
    let mut show = |key, value: Value, from: String| shown.push(Shown { key, value, from });
    let policy = policy::load(&sources, &mut warnings)?;
    show("policy", policy::shown(&policy), policy::from(&policy));
    let (approve, name, from) = approve::load(&sources, &mut warnings)?;
    show("approve", name.into(), from.to_string());
    let log = given_or(sources.first("log")?, "warn".into());
    show("log", log.written.clone(), log.from.to_string());
    // What is noted is mostly about the project's file, which must not hide it.
    let quiet = commands::person_only(&sources, "quiet", false.into(), &mut warnings)?;
    show("quiet", quiet.written.clone(), quiet.from.to_string());

    let proxy_password = web.proxy_password();
    Ok(Settings {
        toolset: text(&toolset).to_owned(),
        preset: preset.map(|preset| text(&preset).to_owned()),
        work_dir,
        chosen,
        current: Some(current).filter(|current| places::is_another_project(current, &started)),
        started,
        timeout: Duration::try_from_secs_f64(timeout.value.as_f64().unwrap_or_default())
            .unwrap_or_default(),
        roots: roots.into_iter().map(|root| root.path).collect(),
        protect,
        protects,
        rules,
        mode,
        commands,
        files,
        channels,
        web,
        plugins,
        mcp,
        model,
        of_project: variables.into_iter().chain(model_of_project).collect(),
        interrupt_on,
        trust: flags.trust,
        policy,
        approve,
        log: text(&log).to_owned(),
        quiet: quiet.value.as_bool().unwrap_or_default(),
        concurrency: concurrency
            .value
            .as_u64()
            .and_then(|calls| usize::try_from(calls).ok())
            .unwrap_or(4),
        folders,
        secrets: sources
            .layers
            .iter()
            .flat_map(|layer| &layer.entries)
            .flat_map(|entry| redact::secrets(entry.key.name, &entry.node))
            .chain(proxy_password)
            .collect(),
        warnings,
        shown,
    })
}

/// The sandbox: what the person says, made stricter by the project if it likes.
fn mode(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
) -> Result<(FileRules, String, Vec<Origin>), Failure> {
    let (person, project) = sources.apart("sandbox")?;
    let person = given_or(person, "workspace".into());
    let rules = sandbox::rules(text(&person));
    let Some(project) = project else {
        return Ok((rules, written(&person).to_owned(), vec![person.from]));
    };
    let both = rules.tightened(sandbox::rules(text(&project)));
    if both == rules && text(&project) != text(&person) {
        warnings.push(format!(
            "{}: sandbox {} is ignored: a project's file may only tighten",
            project.from,
            written(&project),
        ));
        return Ok((rules, written(&person).to_owned(), vec![person.from]));
    }
    // Only one pair of modes makes something that is no mode itself.
    Ok(if both == sandbox::rules(text(&project)) {
        (both, written(&project).to_owned(), vec![project.from])
    } else {
        let name = format!("{} and {}", written(&person), written(&project));
        (both, name, vec![person.from, project.from])
    })
}

/// The time limit: the person's, made shorter by the project if it likes.
fn timeout(sources: &Sources<'_>, warnings: &mut Vec<String>) -> Result<Given, Failure> {
    let (person, project) = sources.apart("tools.timeout")?;
    let person = given_or(person, 0.into());
    let Some(project) = project else {
        return Ok(person);
    };
    // Zero is no limit, which is longer than any.
    let length = |given: &Given| match given.value.as_f64() {
        Some(seconds) if seconds > 0.0 => seconds,
        _ => f64::INFINITY,
    };
    if length(&project) < length(&person) {
        return Ok(project);
    }
    if length(&project) > length(&person) {
        warnings.push(format!(
            "{}: tools.timeout {} is ignored: a project's file may only shorten it",
            project.from, project.value
        ));
    }
    Ok(person)
}

fn given_or(given: Option<Given>, default: Value) -> Given {
    given.unwrap_or(Given {
        written: default.clone(),
        value: default,
        from: Origin::Default,
    })
}

fn text(given: &Given) -> &str {
    given.value.as_str().unwrap_or_default()
}

fn written(given: &Given) -> &str {
    given.written.as_str().unwrap_or_default()
}

/// Places as they are shown, each once: one text may mean two of them.
fn places_shown(places: &[Named]) -> Value {
    let mut shown: Vec<&str> = Vec::new();
    for place in places {
        if !shown.contains(&place.shown.as_str()) {
            shown.push(&place.shown);
        }
    }
    shown.into()
}

fn joined(origins: &[Origin]) -> String {
    match origins {
        [] => Origin::Default.to_string(),
        origins => origins
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    }
}
