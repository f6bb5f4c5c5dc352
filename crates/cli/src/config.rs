//! The effective configuration, and where each value comes from.

pub(crate) mod approve;
mod broad_folders;
mod channels;
pub(crate) mod commands;
pub(crate) mod files;
pub(crate) mod format;
mod keys;
mod layer;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod paths;
pub(crate) mod plugins;
mod policy;
pub(crate) mod provider;
mod read;
pub(crate) mod redact;
mod sandbox;
pub(crate) mod schema;
mod sources;
pub(crate) mod template;
mod value;
pub(crate) mod web;
mod withheld;
mod yaml;

pub(crate) use keys::{APPROVE, MODES};
pub(crate) use paths::FolderChoice;
pub(crate) use sources::FILE;

use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use crate::trust::{Item, Trust};
use haft::ops::scope::FileRules;
use haft::truncate::format_size;
use haft::{Approve, Policy};
use haft_web::Channel;
use paths::NamedPath;
use serde_json::Value;
use sources::{Given, Origin, Sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Effective settings, after merging flags, variables and files.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) toolset: String,
    /// `None` for the toolset's default.
    pub(crate) preset: Option<String>,
    pub(crate) work_dir: PathBuf,
    pub(crate) folder_choice: FolderChoice,
    /// The folder the user works in, unless a project's file moves it.
    pub(crate) started: PathBuf,
    /// The process's current folder, if `--dir` or `HAFT_DIR` names another one. Its code
    /// is no more trusted than the project's.
    pub(crate) current: Option<PathBuf>,
    /// Limit of each call; zero for none.
    pub(crate) timeout: Duration,
    pub(crate) roots: Vec<PathBuf>,
    /// Paths in `tools.protect`, and every file that could be a configuration file.
    pub(crate) protect: Vec<PathBuf>,
    /// Whether `tools.protect` lists anything.
    pub(crate) protects: bool,
    pub(crate) rules: FileRules,
    /// Name of the sandbox mode that `rules` come from.
    pub(crate) mode: String,
    pub(crate) commands: commands::Commands,
    pub(crate) files: files::Files,
    pub(crate) channels: BTreeMap<String, Channel>,
    pub(crate) web: web::Web,
    pub(crate) plugins: Vec<plugins::Configured>,
    pub(crate) mcp: Vec<mcp::Configured>,
    /// The model's settings, or what is wrong with them. Only commands that need a model
    /// fail.
    pub(crate) model: Result<model::Model, Failure>,
    /// Parts of the project's file that need trust: the variables it uses, and where the
    /// model runs.
    pub(crate) of_project: Vec<Item>,
    pub(crate) interrupt_on: BTreeSet<String>,
    /// `--trust`: trust everything in the project for this run.
    pub(crate) trust: bool,
    pub(crate) policy: Policy,
    pub(crate) approve: Approve,
    pub(crate) log: String,
    pub(crate) quiet: bool,
    pub(crate) concurrency: usize,
    pub(crate) folders: haft::Folders,
    /// Keys, tokens and passwords in the configuration files.
    pub(crate) secrets: Vec<String>,
    /// Warnings about the configuration files.
    pub(crate) warnings: Vec<String>,
    /// Every key that is set or has a default, for `haft config show`.
    pub(crate) shown: Vec<Shown>,
}

impl Settings {
    /// Checks that tools may use the work folder.
    ///
    /// # Errors
    /// If it is a home folder or a system folder and the user did not choose it.
    pub(crate) fn open_to_tools(&self) -> Result<(), Failure> {
        match broad_folders::describe(&self.work_dir) {
            Some(description) if self.folder_choice == FolderChoice::Default => {
                Err(broad_folders::refusal(&self.work_dir, description))
            }
            _ => Ok(()),
        }
    }

    /// Returns the project's folder: the one haft was started in. If that is a home
    /// folder or `/` and the user chose another folder to work in, it is the work folder.
    pub(crate) fn project(&self) -> &Path {
        let is_elsewhere =
            self.folder_choice == FolderChoice::User && self.started != self.work_dir;
        if is_elsewhere && broad_folders::holds_home(&self.started) {
            &self.work_dir
        } else {
            &self.started
        }
    }

    /// Returns the text of a key as written in its file, if it contains variables, whose
    /// values must not be shown.
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

/// Returns the folder that a command works in if it does not read the configuration.
pub(crate) fn folder(flags: &Shared) -> Result<PathBuf, Failure> {
    Ok(paths::start_folder(flags, &env::current_folder()?)?.0)
}

/// Checks the text of a file before it is written: its size, keys, values and rules.
pub(crate) fn check(text: &str, path: &Path) -> Result<(), Failure> {
    let shown = path.display().to_string();
    let size = text.len() as u64;
    if size > read::MAX_BYTES {
        let most = format_size(read::MAX_BYTES);
        let message = format!(
            "the file would have {}, but haft reads at most {most}",
            format_size(size)
        );
        return Err(Failure::at(&shown, &message));
    }
    let layer = layer::Layer::parse(layer::Role::Named, path, &shown, text.to_owned())?;
    policy::check(&layer)
}

/// Reads another program's file; `None` if it does not exist. Such files may be large:
/// some programs store histories in their settings.
pub(crate) fn read_text(path: &Path, shown: &str) -> Result<Option<String>, Failure> {
    read::read_up_to(path, shown, read::Links::Followed, 64 << 20)
}

/// Whether a variable may hold a secret, so that a project's file never gets it.
pub(crate) fn is_secret(variable: &str) -> bool {
    withheld::is_secret(variable)
}

/// Returns the names of the variables in a text.
pub(crate) fn variables(text: &str) -> Vec<String> {
    value::variables(text).map(str::to_owned).collect()
}

/// Parses a YAML document.
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

/// Returns the preset, which must belong to the toolset. A project may choose it freely:
/// it decides which tools are offered, not what they may touch.
fn preset(sources: &Sources<'_>, toolset: &str) -> Result<Option<Given>, Failure> {
    let given = sources.first("tools.preset")?;
    if let (Some(given), Some(toolset)) = (&given, haft::toolsets::by_name(toolset))
        && let Err(mut error) = toolset.preset(Some(text(given)))
    {
        error.name = written(given).to_owned();
        let failure = Failure::usage(format!("{}: {error}", given.from));
        return Err(failure.hint("use --preset NAME to choose another one for this run"));
    }
    Ok(given)
}

/// Whether a preset includes the web tools.
pub(crate) fn lists_web(toolset: &str, preset: Option<&str>) -> bool {
    let toolset = haft::toolsets::by_name(toolset);
    let listed = toolset.and_then(|toolset| Some(toolset.preset(preset).ok()?.tools));
    listed.is_some_and(|tools| tools.contains(&"web_fetch"))
}

/// Whether only the project, and not the user, chose a preset with the web tools. Calls
/// then need approval: the address of a page can carry away what the model has read.
fn web_by_project(sources: &Sources<'_>, toolset: &str) -> Result<bool, Failure> {
    let (person, project) = sources.apart("tools.preset")?;
    let lists = |given: &Given| lists_web(toolset, Some(text(given)));
    Ok(project.as_ref().is_some_and(lists) && !person.as_ref().is_some_and(lists))
}

/// Reads flags, variables and configuration files.
pub(crate) fn load(flags: &Shared) -> Result<Settings, Failure> {
    let folders = env::folders();
    if let Some(state) = &folders.state {
        haft::ops::private::check_own_folder(state).map_err(|error| {
            Failure::failed(format!(
                "cannot use {} for sessions, trust and outputs: {error}",
                state.display()
            ))
            .hint("make it a folder that you own, or set XDG_STATE_HOME to another folder")
        })?;
    }
    let home = folders.home.as_deref();
    let current = env::current_folder()?;
    let start = paths::start_folder(flags, &current)?;
    let started = start.0.clone();
    let mut sources = Sources::read(flags, &current, &start.0, folders.config.as_deref())?;
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

    let (work_dir, from, folder_choice) = paths::work_dir(&sources, start, home)?;
    show("tools.work_dir", work_dir.shown.into(), from.to_string());
    let work_dir = work_dir.path;
    let timeout = timeout(&sources, &mut warnings)?;
    show(
        "tools.timeout",
        timeout.written.clone(),
        timeout.from.to_string(),
    );
    let (roots, from) = paths::roots(&sources, home, &mut warnings)?;
    show("tools.roots", shown_paths(&roots), from.to_string());
    let mut bases = vec![work_dir.as_path()];
    if started != work_dir {
        bases.push(&started);
    }
    let (protect, from) = paths::protect(&sources, &bases, home)?;
    show("tools.protect", shown_paths(&protect), joined(&from));

    let concurrency = given_or(sources.first("max_tool_concurrency")?, 4.into());
    let protects = !protect.is_empty();
    let protect = protect
        .into_iter()
        .map(|place| place.path)
        // A tool that could write configuration files would decide what the next session
        // allows.
        .chain(sources.searched_files.iter().cloned())
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
    let is_model_trusted = model_of_project
        .as_ref()
        .is_none_or(|item| trust.allows(item));
    let model = model::load(&sources, is_model_trusted, home, &mut warnings, &mut shown);
    let interrupt_on = model::interrupt_on(&sources, &mut shown)?;
    let mut show = |key, value: Value, from: String| shown.push(Shown { key, value, from });
    let policy = policy::load(&sources, &mut warnings)?;
    show("policy", policy::shown(&policy), policy::from(&policy));
    let (approve, name, from) = approve::load(&sources, &mut warnings)?;
    show("approve", name.into(), from.to_string());
    let log = given_or(sources.first("log")?, "warn".into());
    show("log", log.written.clone(), log.from.to_string());
    // Most notes are about the project's file, so the project must not silence them.
    let quiet = commands::user_only(&sources, "quiet", false.into(), &mut warnings)?;
    show("quiet", quiet.written.clone(), quiet.from.to_string());

    let proxy_password = web.proxy_password();
    Ok(Settings {
        toolset: text(&toolset).to_owned(),
        preset: preset.map(|preset| text(&preset).to_owned()),
        work_dir,
        folder_choice,
        current: Some(current).filter(|current| paths::is_another_project(current, &started)),
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

/// Returns the sandbox rules: the user's, which the project can make stricter.
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
    // Combining two different modes can give rules that match neither of them.
    Ok(if both == sandbox::rules(text(&project)) {
        (both, written(&project).to_owned(), vec![project.from])
    } else {
        let name = format!("{} and {}", written(&person), written(&project));
        (both, name, vec![person.from, project.from])
    })
}

/// Returns the time limit: the user's, which the project can shorten.
fn timeout(sources: &Sources<'_>, warnings: &mut Vec<String>) -> Result<Given, Failure> {
    let (person, project) = sources.apart("tools.timeout")?;
    let person = given_or(person, 0.into());
    let Some(project) = project else {
        return Ok(person);
    };
    // Zero means no limit.
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

/// Returns paths as they are shown, without duplicates: one text may stand for two paths.
fn shown_paths(paths: &[NamedPath]) -> Value {
    let mut shown: Vec<&str> = Vec::new();
    for path in paths {
        if !shown.contains(&path.shown.as_str()) {
            shown.push(&path.shown);
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
