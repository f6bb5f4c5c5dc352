#![doc = include_str!("../README.md")]

mod broad_folders;
pub mod caches;
mod channels;
pub mod chat;
pub mod commands;
pub mod effects;
mod env_file;
mod environment;
pub mod external;
mod failure;
mod file;
pub mod files;
mod flags;
pub mod format;
pub mod keys;
mod layer;
pub mod mcp;
pub mod model;
mod network;
mod node;
mod own_file;
mod own_rules;
mod own_servers;
mod paths;
pub mod permissions;
mod plugins;
mod policy;
pub mod provider;
mod read;
mod reader;
pub mod redact;
mod setting;
pub mod skills;
mod sources;
pub mod template;
pub mod trust;
mod variables;
pub mod web;
mod withheld;

pub use environment::{Environment, Process};
pub use failure::{Cause, Failure};
pub use file::{APPROVE, EFFORTS, LEVELS, MODES};
pub use flags::Flags;
pub use own_file::edit_file;
pub use own_rules::OwnRules;
pub use own_servers::{NewServer, OwnServers};
pub use paths::{FolderChoice, Paths};
pub use sources::FILE;

use haft::ops::edit::Repairs;
use haft::ops::scope::FileRules;
use haft::truncate::format_size;
use haft::{Approve, Policy};
use haft_web::Channel;
use serde_json::Value;
use setting::Number;
use sources::{Entry, Given, Origin, Sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trust::{Item, Trust};

/// Effective settings, after merging flags, variables and files.
#[derive(Debug)]
pub struct Settings {
    /// Name of the toolset.
    pub toolset: String,
    /// `None` for the toolset's default.
    pub preset: Option<String>,
    /// Folders that tools may use, and paths they may not write.
    pub paths: Paths,
    /// Limit of each call; zero for none.
    pub timeout: Duration,
    /// Rules for reading and writing files.
    pub rules: FileRules,
    /// Name of the sandbox mode that `rules` come from.
    pub mode: String,
    /// Machine, network and variables of commands.
    pub commands: commands::Commands,
    /// Whether edits repair text that almost matches.
    pub edit_repairs: Repairs,
    /// Storage of files, and the executor of the model's code.
    pub files: files::Files,
    /// Settings for recording the changes of calls.
    pub effects: effects::Effects,
    /// Caches of commands.
    pub caches: caches::Caches,
    /// Look of the chat.
    pub chat: chat::Chat,
    /// Destinations for messages, by name.
    pub channels: BTreeMap<String, Channel>,
    /// Settings of the web tools.
    pub web: web::Web,
    pub(crate) plugins: Vec<plugins::Configured>,
    pub(crate) mcp: Vec<mcp::Configured>,
    /// The model's settings, or what is wrong with them. Only commands that need a model
    /// fail.
    pub model: Result<model::Model, Failure>,
    /// Parts of the project's file that need trust: the variables it uses, and where the
    /// model runs.
    pub(crate) of_project: Vec<Item>,
    /// Tools whose calls always need approval.
    pub interrupt_on: BTreeSet<String>,
    /// `--trust`: trust everything in the project for this run.
    pub(crate) trust: bool,
    /// Rules for calls.
    pub policy: Policy,
    /// How to handle calls that need approval.
    pub approve: Approve,
    /// Level of the log.
    pub log: String,
    /// The file that permanent answers to questions are added to.
    pub own_rules: Option<OwnRules>,
    /// Whether to print only results and errors.
    pub quiet: bool,
    /// Maximum number of calls that run at the same time.
    pub concurrency: usize,
    /// The user's folders.
    pub folders: haft::Folders,
    /// Variables and folders of the process.
    pub(crate) environment: Environment,
    /// Keys, tokens and passwords in the configuration files.
    pub secrets: Vec<String>,
    /// Warnings about the configuration files.
    pub warnings: Vec<String>,
    /// Every key that is set or has a default, for `haft config show`.
    pub shown: Vec<Shown>,
}

impl Settings {
    /// Returns the text of a key as written in its file, if it contains variables, whose
    /// values must not be shown.
    pub fn as_written(&self, key: &str) -> Option<&str> {
        let shown = self.shown.iter().find(|shown| shown.key == key)?;
        let written = shown.value.as_str()?;
        variables::variables(written).next().map(|_| written)
    }
}

/// A key as `haft config show` prints it.
#[derive(Debug)]
pub struct Shown {
    /// Path of the key, such as `tools.timeout`.
    pub key: &'static str,
    /// The value, with variables unexpanded.
    pub value: Value,
    /// Flag, variable or file and line that sets it.
    pub from: String,
}

/// Returns the folder that a command works in if it does not read the configuration.
pub fn folder(flags: &Flags, environment: &Environment) -> Result<PathBuf, Failure> {
    Ok(paths::start_folder(flags, environment)?.0)
}

/// Checks the text of a file before it is written: its size, keys, values and rules.
pub fn check(text: &str, path: &Path, environment: &Environment) -> Result<(), Failure> {
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
    let layer = layer::Layer::parse(
        layer::Role::Named,
        path,
        &shown,
        text.to_owned(),
        environment,
    )?;
    policy::rules(&layer).map(|_| ())
}

/// Reads another program's file; `None` if it does not exist. Such files may be large:
/// some programs store histories in their settings.
pub fn read_text(path: &Path, shown: &str) -> Result<Option<String>, Failure> {
    read::read_up_to(path, shown, read::Links::Followed, 64 << 20)
}

/// Whether a variable may hold a secret, so that a project's file never gets it.
pub fn is_secret(variable: &str, environment: &Environment) -> bool {
    withheld::is_secret(variable, environment)
}

/// Returns the names of the variables in a text.
pub fn variables(text: &str) -> Vec<String> {
    variables::variables(text).map(str::to_owned).collect()
}

/// Parses a YAML document.
pub fn yaml_value(text: &str, shown: &str) -> Result<Value, Failure> {
    let node = node::parse(text).map_err(|malformed| malformed.failure(shown))?;
    Ok(node.plain())
}

/// Results of reading the settings besides the settings: warnings, and the rows of `haft
/// config show`.
#[derive(Debug, Default)]
pub struct Notes {
    warnings: Vec<String>,
    shown: Vec<Shown>,
}

impl Notes {
    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn show<T>(&mut self, key: &'static str, given: &Given<'_, T>) {
        self.show_value(key, given.written.clone(), given.from.to_string());
    }

    fn show_value(&mut self, key: &'static str, value: Value, from: String) {
        self.shown.push(Shown { key, value, from });
    }

    /// Shows a list, unless it is empty.
    fn show_names<N: Into<Value>>(
        &mut self,
        key: &'static str,
        names: impl IntoIterator<Item = N>,
        from: &[Origin],
    ) {
        let names: Vec<Value> = names.into_iter().map(Into::into).collect();
        if !names.is_empty() {
            self.show_value(key, names.into(), joined(from));
        }
    }

    /// Returns a value, or warns that it is left out because a variable is not set.
    fn skip_unset<'a, T>(&mut self, (_, given): Entry<'a, T>, what: &str) -> Option<Given<'a, T>> {
        given
            .ready()
            .map_err(|failure| self.warn(format!("{failure}: skipped this {what}")))
            .ok()
    }
}

/// Returns the toolset, and the preset, which must belong to it. A project may choose both
/// freely: they decide which tools are offered, not what they may touch.
fn toolset(sources: &Sources, notes: &mut Notes) -> Result<(String, Option<String>), Failure> {
    let toolset = sources.shown("tools.toolset", |file| &file.tools.toolset, notes)?;
    let toolset = toolset.value.0;
    let found = haft::toolsets::by_name(&toolset);
    let preset = sources.first(|file| &file.tools.preset)?;
    if let (Some(given), Some(toolset)) = (&preset, &found)
        && let Err(mut error) = toolset.preset(Some(&given.value))
    {
        error.name = given.text().to_owned();
        let failure = Failure::usage(format!("{}: {error}", given.from));
        return Err(failure.hint("use --preset NAME to choose another one for this run"));
    }
    match &preset {
        Some(preset) => notes.show("tools.preset", preset),
        None => {
            let own = found.and_then(|toolset| Some(toolset.presets.first()?.name));
            notes.show_value("tools.preset", own.into(), Origin::Default.to_string());
        }
    }
    Ok((toolset, preset.map(|preset| preset.value)))
}

/// Whether a preset includes the web tools.
pub fn lists_web(toolset: &str, preset: Option<&str>) -> bool {
    let toolset = haft::toolsets::by_name(toolset);
    let listed = toolset.and_then(|toolset| Some(toolset.preset(preset).ok()?.tools));
    listed.is_some_and(|tools| tools.contains(&"web_fetch"))
}

/// Whether only the project, and not the user, chose a preset with the web tools. Calls
/// then need approval: the address of a page can carry away what the model has read.
fn web_by_project(sources: &Sources, toolset: &str) -> Result<bool, Failure> {
    let (person, project) = sources.apart(|file| &file.tools.preset)?;
    let lists = |given: &Given<'_, String>| lists_web(toolset, Some(&given.value));
    Ok(project.as_ref().is_some_and(lists) && !person.as_ref().is_some_and(lists))
}

/// Returns the time limit of calls: the user's, which the project can shorten.
fn timeout(sources: &Sources, notes: &mut Notes) -> Result<Duration, Failure> {
    // Zero means no limit.
    let length = |seconds: &Number<_>| match seconds.0 {
        0.0 => f64::INFINITY,
        seconds => seconds,
    };
    let seconds = sources.stricter(
        "tools.timeout",
        |file| &file.tools.timeout,
        |seconds| -length(seconds),
        notes,
        Some("a project's file may only shorten it"),
    )?;
    let seconds = seconds.map(|seconds| seconds.0).unwrap_or_default();
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Returns whether edits repair text that almost matches; the project can turn it off.
fn edit_repairs(sources: &Sources, notes: &mut Notes) -> Result<Repairs, Failure> {
    let repair = sources.stricter(
        "tools.edit_repair",
        |file| &file.tools.edit_repair,
        |repair| if repair.0 == "off" { 1.0 } else { 0.0 },
        notes,
        Some("a project's file may only turn it off"),
    )?;
    Ok(match repair {
        Some(repair) if repair.0 == "off" => Repairs::Off,
        _ => Repairs::Safe,
    })
}

/// Reads flags, variables and configuration files.
pub fn load(flags: &Flags, environment: &Environment) -> Result<Settings, Failure> {
    let folders = environment.folders();
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
    let current = environment.current_folder()?;
    let start = paths::start_folder(flags, environment)?;
    let started = start.0.clone();
    let mut sources = Sources::read(flags, environment, &current, &started)?;
    let trust = Trust::load(folders.state.as_deref(), &started, flags.trust);
    let notes = &mut Notes::default();
    let variables = sources.withhold(&trust, notes)?;
    let sources = &sources;
    let (toolset, preset) = toolset(sources, notes)?;
    let paths = Paths::load(sources, start, &current, home, notes)?;
    let timeout = timeout(sources, notes)?;
    let edit_repairs = edit_repairs(sources, notes)?;
    let concurrency = sources.shown(
        "max_tool_concurrency",
        |file| &file.max_tool_concurrency,
        notes,
    )?;
    let (rules, mode) = permissions::sandbox(sources, notes)?;
    let commands = commands::load(sources, notes)?;
    let files = files::load(sources, &toolset, notes)?;
    let effects = effects::load(sources, notes)?;
    let caches = caches::load(sources, notes)?;
    let chat = chat::load(sources, notes)?;
    let channels = channels::load(sources, notes)?;
    let mut web = web::load(sources, home, notes)?;
    web.by_project = web_by_project(sources, &toolset)?;
    let plugins = plugins::load(sources, &flags.plugin, &current, notes)?;
    let mcp = mcp::load(sources, notes)?;
    let model_of_project = model::of_project(sources);
    let is_model_trusted = model_of_project
        .as_ref()
        .is_none_or(|item| trust.allows(item));
    let model = model::load(sources, is_model_trusted, home, notes);
    let interrupt_on = model::interrupt_on(sources, notes)?;
    let policy = policy::load(sources, notes)?.with_network(commands.access.clone());
    network::check(&policy, notes);
    let approve = permissions::approve(sources, notes)?;
    let log = sources.shown("log", |file| &file.log, notes)?;
    let quiet = sources.shown("quiet", |file| &file.quiet, notes)?;

    Ok(Settings {
        secrets: sources
            .secrets()
            .chain(web.proxy_password())
            .chain(mcp.iter().flat_map(mcp::Configured::file_secrets))
            .collect(),
        toolset,
        preset,
        paths,
        timeout,
        edit_repairs,
        rules,
        mode,
        commands,
        files,
        effects,
        caches,
        chat,
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
        log: log.value.0,
        own_rules: OwnRules::new(flags, environment),
        quiet: quiet.value,
        concurrency: usize::try_from(concurrency.value.0).unwrap_or(4),
        folders,
        environment: environment.clone(),
        warnings: std::mem::take(&mut notes.warnings),
        shown: std::mem::take(&mut notes.shown),
    })
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
