//! Tools that are other programs: plugins, executables, Lua modules and MCP servers.
//!
//! There are three tiers, and a later one wins by name: built in; the user's `tools/` in
//! the config folder; the project's `tools/` and its configuration file. Nothing in the
//! project runs unless the user trusts it.

pub(crate) mod command;
mod config_links;
mod installer;
mod lua_names;
mod own_tools;
mod page;
mod program_files;
mod tools_folder;
pub use installer::{STARTED, folders_of, trusted_folders, untrusted_folders};
pub mod servers;

use crate::Settings;
use crate::plugins::{AddedVariables, Configured, Owner};
use crate::trust::{Item, Pin, Trust};
use command::{CommandLine, Folders, WrittenCommand};
use config_links::{linked_files, with_reachable_paths};
use haft::{Check, Installer, Overrides, Plugin, Protocol};
use installer::{installer, installer_of, starting};
use program_files::{ProgramWords, add_interpreters, first_line};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tools_folder::{FoundTool, Tier};

/// External tools of a session, and warnings about those that are not used.
#[derive(Default)]
pub struct External {
    /// Plugins, including Lua modules.
    pub plugins: Vec<Plugin>,
    /// Executables in `tools/`.
    pub programs: Vec<haft::Executable>,
    /// MCP servers.
    pub servers: Vec<haft_mcp::client::Remote>,
    /// Problems, and what was left out because it is not trusted.
    pub warnings: Vec<String>,
    /// Files of these programs in places that programs cannot read otherwise.
    pub readable: Vec<PathBuf>,
    /// Targets of links in the config folder. No tool may write them, since they run in
    /// other folders without asking.
    pub protect: Vec<PathBuf>,
}

/// Returns everything in a project that needs trust, and problems with the rest.
pub fn of_project(settings: &Settings) -> (Vec<Item>, Vec<String>) {
    let mut items = settings.of_project.clone();
    items.extend(crate::skills::of_project(settings));
    for plugin in &settings.plugins {
        let line = line(plugin, settings);
        if needs_trust(plugin, &line) {
            items.push(item(plugin, &line));
        }
    }
    items.extend(servers::of_project(settings));
    let (found, problems) = tools_folder::look(&settings.paths.started, Tier::Project, settings);
    let built_in = built_in(settings);
    items.extend(own_tools::needing_trust(settings));
    for tool in found {
        let names = tool.names();
        let replaced = built_in.iter().filter(|name| names.contains(name));
        let remarks = replaced.map(|name| format!("replaces the built-in tool {name}"));
        items.push(Item {
            remarks: remarks.collect(),
            ..tool.item()
        });
    }
    items.extend(starting(settings));
    (items, problems)
}

fn built_in(settings: &Settings) -> Vec<String> {
    let toolset = haft::toolsets::by_name(&settings.toolset);
    let tools = toolset.into_iter().flat_map(|toolset| toolset.tools);
    tools.map(|tool| tool.definition().name.clone()).collect()
}

/// Loads the external tools of a session.
pub fn load(settings: &Settings) -> External {
    let mut external = External::default();
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.paths.started, settings.trust);
    let mut waiting = Vec::new();
    for plugin in &settings.plugins {
        let line = line(plugin, settings);
        let item = item(plugin, &line);
        let problem = line.problem.as_ref();
        external
            .warnings
            .extend(problem.map(|problem| format!("{}: {problem}", plugin.from)));
        if plugin.owner == Owner::User {
            let files = with_folders(item.pin.files.clone(), settings);
            external.protect.extend(linked_files(files, settings));
        }
        let mut check = None;
        if needs_trust(plugin, &line) {
            if !trust.allows(&item) {
                waiting.push(item);
                continue;
            }
            check = Some(trust_check(item.clone(), settings));
        } else {
            let files = with_folders(item.pin.files.clone(), settings);
            external.readable.extend(files);
        }
        let plugin = program(plugin, line, &item, check, settings);
        external.plugins.push(plugin);
    }
    for server in servers::all(settings) {
        external.warnings.extend(server.problem);
        external.protect.extend(server.protect);
        if let Some(item) = server.waits {
            waiting.push(item);
            continue;
        }
        external.readable.extend(server.own_files);
        external.servers.push(server.remote);
    }
    // The user's tools first; the project's replace them.
    let own = settings.folders.config.as_deref();
    let (mut tools, problems) = own
        .map(|own| tools_folder::look(own, Tier::User, settings))
        .unwrap_or_default();
    external
        .protect
        .extend(own.into_iter().flat_map(tools_folder::links));
    external.warnings.extend(problems);
    let mut asked = Vec::new();
    let (project, problems) = tools_folder::look(&settings.paths.started, Tier::Project, settings);
    external.warnings.extend(problems);
    for tool in project {
        let item = tool.item();
        if trust.allows(&item) {
            tools.retain(|other| other.name != tool.name);
            tools.push(tool);
        } else {
            waiting.push(item);
            asked.push(tool);
        }
    }
    for tool in tools {
        if let Some(problem) = tool.link_problem(folders(settings)) {
            // The project has the same file, which already waits for trust.
            if !asked.iter().any(|other| other.is_file_of(&tool)) {
                external.warnings.push(problem);
            }
            continue;
        }
        let item = match tool.tier {
            Tier::Project => Some(tool.item()),
            Tier::User => own_tools::item_to_trust(&tool, settings),
        };
        match item {
            Some(item) if !trust.allows(&item) => waiting.push(item),
            item => external.add(tool, item, &trust, settings),
        }
    }
    // Lua modules are run by haft itself, wherever it is installed.
    if !external.plugins.is_empty() {
        external.readable.push(settings.environment.own_program());
    }
    if !waiting.is_empty() {
        let (all, _) = of_project(settings);
        external
            .warnings
            .push(untrusted_note(&waiting, &all, &trust));
    }
    external
}

/// Names the items that were not run because they are not trusted.
fn untrusted_note(waiting: &[Item], all: &[Item], trust: &Trust) -> String {
    let names: Vec<String> = waiting
        .iter()
        .map(|item| {
            let changed = if trust.trusted_before(item, all) {
                ", changed"
            } else {
                ""
            };
            format!("{} ({}{changed})", item.name, item.kind)
        })
        .collect();
    format!(
        "not run because it is not trusted: {}; review it with `haft trust`, or pass --trust to run it once",
        names.join(", ")
    )
}

fn folders(settings: &Settings) -> Folders<'_> {
    Folders {
        started: settings.paths.project(),
        current: settings.paths.current.as_deref(),
        work_dir: &settings.paths.work_dir,
        config: settings.folders.config.as_deref(),
        roots: &settings.paths.roots,
        state: settings.folders.state.as_deref(),
    }
}

/// Returns a plugin's command line as it is run.
fn line(plugin: &Configured, settings: &Settings) -> CommandLine {
    let written = WrittenCommand {
        program: &plugin.program,
        arguments: &plugin.arguments,
        environment: &plugin.environment,
        dir: plugin.dir.as_deref(),
        base: &plugin.folder,
        owner: plugin.owner,
        process: &settings.environment,
    };
    written.line(folders(settings))
}

/// Whether a plugin needs trust: it is configured by the project, or runs something in
/// it.
fn needs_trust(plugin: &Configured, line: &CommandLine) -> bool {
    plugin.is_project() || !line.reasons.is_empty()
}

impl External {
    /// Adds a tool, with its trusted item if it needs trust.
    fn add(&mut self, tool: FoundTool, item: Option<Item>, trust: &Trust, settings: &Settings) {
        let check = item.clone().map(|item| trust_check(item, settings));
        // These bytes are run or shown to the model, so they must be the trusted ones.
        let is_trusted = |file: &Path, bytes: &[u8]| {
            let item = item.as_ref();
            item.is_none_or(|item| trust.allows_with(item, &[(file, bytes)]))
        };
        match tool.build(check, &is_trusted, settings) {
            Ok(tools_folder::BuiltTool::Lua(plugin)) => self.plugins.push(*plugin),
            Ok(tools_folder::BuiltTool::Program(program)) => self.programs.push(*program),
            Err(problem) => return self.warnings.push(problem),
        }
        if tool.tier == Tier::User {
            self.readable.extend(tool.read());
        }
    }
}

/// Returns a check that an item is still what was trusted.
fn trust_check(item: Item, settings: &Settings) -> Check {
    let (everything, project) = (settings.trust, settings.paths.started.clone());
    let state = settings.folders.state.clone();
    Arc::new(move || {
        let trust = Trust::load(state.as_deref(), &project, everything);
        trust.check(&item).ok_or_else(|| {
            format!(
                "{} was not run because it changed since it was trusted; review it with `haft trust`",
                item.name
            )
        })
    })
}

/// Adds the folders of files that are below the config folder.
fn with_folders(mut files: Vec<PathBuf>, settings: &Settings) -> Vec<PathBuf> {
    let config = settings.folders.config.as_deref();
    let folders: Vec<PathBuf> = files
        .iter()
        .filter_map(|file| file.parent())
        .filter(|folder| {
            config.is_some_and(|config| folder.starts_with(config) && *folder != config)
        })
        .map(Path::to_owned)
        .collect();
    files.extend(folders);
    files
}

/// Returns the variables that a configuration sets.
fn pairs(environment: &AddedVariables) -> Vec<(&str, &str)> {
    let values = environment.values.iter();
    values
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn item(plugin: &Configured, line: &CommandLine) -> Item {
    let known = ProgramWords {
        program: &plugin.program,
        located: &line.program,
        arguments: &line.arguments,
        variables: pairs(&plugin.environment),
        folders: vec![&line.dir, &plugin.folder],
    }
    .files();
    // As written, because variables may hold secrets.
    let shown = [vec![plugin.written_program()], plugin.written_arguments()].concat();
    let mut remarks = remarks(plugin);
    remarks.extend(runs_in(plugin.dir.as_deref()));
    remarks.extend(named_by(plugin.is_project(), &plugin.from, line));
    remarks.extend(known.remark());
    let program = real_path(&plugin.program);
    Item {
        kind: "plugin",
        name: plugin.name.clone(),
        shown: shlex::try_join(shown.iter().map(String::as_str)).unwrap_or_default(),
        pin: Pin {
            written: format!(
                "{}\n{:?}\n{program:?}\n{:?}{}",
                sorted(&plugin.written),
                plugin.environment.sorted(),
                plugin.arguments,
                plugin
                    .dir
                    .as_ref()
                    .map(|dir| format!("\n{:?}", real_path(dir)))
                    .unwrap_or_default()
            ),
            files: known.files,
        },
        remarks,
    }
}

/// Returns the real path, because several paths may lead to the project.
fn real_path(path: &Path) -> PathBuf {
    let real = haft::ops::scope::real(path).filter(|_| path.is_absolute());
    real.unwrap_or_else(|| path.to_owned())
}

/// Sorts the keys, because their order does not matter.
fn sorted(written: &serde_json::Value) -> serde_json::Value {
    let mut written = written.clone();
    written.sort_all_objects();
    written
}

/// Explains why something configured outside the project needs trust.
fn named_by(is_project: bool, from: &str, line: &CommandLine) -> Option<String> {
    let is_asked = !is_project && !line.reasons.is_empty();
    is_asked.then(|| format!("configured in {from}: {}", line.reasons.join(", ")))
}

/// Names the configured folder, because the program may load code from there.
fn runs_in(dir: Option<&Path>) -> Option<String> {
    dir.map(|dir| format!("runs in {}", dir.display()))
}

/// Lists the variables that a plugin would get and the tools it may replace, as written.
fn remarks(plugin: &Configured) -> Vec<String> {
    let own = plugin.environment.names.iter().cloned();
    let written = |name: &String| match &plugin.written["env"][name] {
        serde_json::Value::String(text) => format!("{name}={text}"),
        _ => name.clone(),
    };
    let made = plugin.environment.values.iter();
    let names: Vec<String> = own.chain(made.map(|(name, _)| written(name))).collect();
    let sees =
        (!names.is_empty()).then(|| format!("gets environment variables: {}", names.join(", ")));
    let replaces = plugin
        .overrides
        .then(|| "may replace any built-in tool (override: true)".to_owned());
    sees.into_iter().chain(replaces).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs are checked before a scope exists"
)]
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file())
}

fn program(
    plugin: &Configured,
    line: CommandLine,
    item: &Item,
    check: Option<Check>,
    settings: &Settings,
) -> Plugin {
    let installer = match needs_trust(plugin, &line) {
        true => Installer::Project,
        false => installer(Some(&line), settings),
    };
    let line = with_reachable_paths(line, settings);
    let arguments = line.arguments.into_iter().map(OsString::from).collect();
    Plugin {
        label: plugin.label.clone(),
        shown: Some(plugin.written_program()),
        installer,
        environment: Some(environment(&plugin.environment, settings)),
        dir: Some(line.dir).filter(|dir| *dir != settings.paths.work_dir),
        protocol: plugin.protocol,
        timeout: plugin.timeout,
        start_timeout: plugin.start_timeout,
        limits_set_in: match plugin.owner {
            Owner::Typed => "an entry for it under `tools.plugins`".to_owned(),
            _ => "its entry under `tools.plugins`".to_owned(),
        },
        overrides: if plugin.overrides {
            Overrides::Any
        } else {
            Overrides::Nothing
        },
        log: log(&plugin.label, settings),
        check,
        memory: memory(item, settings),
        stamp: Some(stamp(item.pin.files.clone())),
        ..Plugin::new(line.program, arguments)
    }
}

/// Returns a program's environment. Its `PATH` contains no folder of the project; the
/// session removes other writable folders.
fn environment(own: &AddedVariables, settings: &Settings) -> Vec<(OsString, OsString)> {
    let mut environment = settings.environment.for_programs(&own.names);
    for (name, value) in &own.values {
        environment.retain(|(known, _)| known.to_str() != Some(name));
        environment.push((name.into(), value.into()));
    }
    haft::ops::executor::clean_path(&mut environment, &folders_of(settings));
    environment
}

/// Stores a plugin's handshake, keyed by the content of its files.
fn memory(item: &Item, settings: &Settings) -> Option<Arc<dyn haft::Memory>> {
    let folder = settings.folders.state.as_ref()?.join("plugins/known");
    // A program known only by name could be a different one tomorrow.
    if item.pin.files.is_empty() {
        return None;
    }
    Some(Arc::new(RememberedPlugin {
        folder,
        pin: item.pin.clone(),
    }))
}

/// Stores the handshake of haft's own program, identified by its time and size because it
/// is too large to hash at every start.
pub fn memory_of_own(
    name: &str,
    program: &Path,
    arguments: &[OsString],
    settings: &Settings,
) -> Option<Arc<dyn haft::Memory>> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let folder = settings.folders.state.as_ref()?.join("plugins/known");
    let mut hasher = DefaultHasher::new();
    (program, arguments, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    stamp(vec![program.to_owned()])().hash(&mut hasher);
    let file = folder.join(format!("{name}-{:016x}.json", hasher.finish()));
    Some(Arc::new(servers::PrivateFile(file)))
}

struct RememberedPlugin {
    folder: PathBuf,
    pin: Pin,
}

impl RememberedPlugin {
    fn file(&self) -> Option<PathBuf> {
        Some(self.folder.join(format!("{}.json", self.pin.hash().ok()?)))
    }
}

impl haft::Memory for RememberedPlugin {
    fn load(&self) -> Option<serde_json::Value> {
        servers::PrivateFile(self.file()?).load()
    }

    fn store(&self, introduction: &serde_json::Value) {
        if let Some(file) = self.file() {
            haft::Memory::store(&servers::PrivateFile(file), introduction);
        }
    }
}

/// Returns a number that changes when the files change.
#[expect(
    clippy::disallowed_methods,
    reason = "times and sizes of what is run; no content is read"
)]
fn stamp(files: Vec<PathBuf>) -> haft::Stamp {
    use std::hash::{DefaultHasher, Hash, Hasher};
    use std::os::unix::fs::MetadataExt;
    Arc::new(move || {
        let mut hasher = DefaultHasher::new();
        for file in &files {
            let data = std::fs::metadata(file).ok();
            let data = data.map(|data| (data.ino(), data.size(), data.mtime(), data.mtime_nsec()));
            data.hash(&mut hasher);
        }
        hasher.finish()
    })
}

/// Returns the path of a program's log.
fn log(label: &str, settings: &Settings) -> Option<PathBuf> {
    let state = settings.folders.state.as_ref()?;
    Some(state.join("plugins").join(format!("{label}.log")))
}

/// Returns a Lua module as a plugin.
fn lua(tool: &FoundTool, source: String, check: Option<Check>, settings: &Settings) -> Plugin {
    // Haft enforces the time limit of calls; the module's process must not do so earlier.
    let mut limits = haft_script::Limits::default();
    limits.seconds = limits.seconds.max(settings.timeout.as_secs_f64());
    let load = haft_script::Load {
        path: tool.shown.clone(),
        source,
        rights: match tool.tier {
            Tier::Project => haft_script::Rights::Pure,
            Tier::User => haft_script::Rights::Full,
        },
        limits,
    };
    Plugin {
        label: tool.name.clone(),
        program: settings.environment.own_program(),
        shown: None,
        arguments: vec!["__lua".into()],
        environment: Some(environment(&AddedVariables::default(), settings)),
        dir: None,
        protocol: Protocol::Second,
        timeout: None,
        start_timeout: None,
        limits_set_in: format!("the table that {} returns", tool.shown),
        // Only these names, because the user trusted them.
        overrides: Overrides::Named(tool.names()),
        first_line: Some(load.line()),
        may_be_empty: true,
        log: log(&tool.name, settings),
        check,
        installer: installer_of(tool.tier, settings),
        memory: memory(&tool.item(), settings),
        // The source is sent in the first line, so a changed file affects only the next
        // session.
        stamp: None,
        guest: None,
        files: tool.files(),
        trace: haft::Trace::default(),
    }
}
