//! Tools that are other programs: what there is, what of it may run, and how.
//!
//! Three tiers, the later one wins by name: built in, the person's `tools/` in the
//! config folder, the project's `tools/` and what its file names. Of the project
//! nothing runs that the person has not said yes to.

pub(crate) mod command;
mod folder;
mod linked;
mod lua_names;
mod own;
mod page;
mod standing;
pub(crate) use page::limit;
pub(crate) use standing::{STARTED, folders_of, held_back, trusted_folders};
pub(crate) mod servers;

use crate::config::Settings;
use crate::config::plugins::{Configured, Environment, Whose};
use crate::env;
use crate::trust::{Item, Pin, Trust};
use command::{Folders, Line, Written, paths_of_argument, paths_of_value};
use folder::{Found, Tier};
use haft::ops::beneath;
use haft::{Check, Overrides, Plugin, Protocol, Standing};
use linked::{linked, started};
use standing::{standing, standing_of, starting};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a session is given, and what the person should know about the rest.
#[derive(Default)]
pub(crate) struct External {
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) programs: Vec<haft::Executable>,
    /// MCP servers.
    pub(crate) servers: Vec<haft_mcp::client::Remote>,
    pub(crate) warnings: Vec<String>,
    /// Files of theirs that lie where programs may not look otherwise.
    pub(crate) readable: Vec<PathBuf>,
    /// What the links of the config folder lead to: no tool may write it, since it runs in
    /// other folders without a question.
    pub(crate) protect: Vec<PathBuf>,
}

/// Everything of a project that would run.
pub(crate) fn of_project(settings: &Settings) -> (Vec<Item>, Vec<String>) {
    let mut items = settings.of_project.clone();
    items.extend(crate::agent::skills_of_project(settings));
    for plugin in &settings.plugins {
        let line = line(plugin, settings);
        if needs_trust(plugin, &line) {
            items.push(item(plugin, &line));
        }
    }
    items.extend(servers::of_project(settings));
    let (found, problems) = folder::look(&settings.started, Tier::Project);
    let built_in = built_in(settings);
    items.extend(own::needing_trust(settings));
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

/// What a session gets.
pub(crate) fn load(settings: &Settings) -> External {
    let mut external = External::default();
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.started, settings.trust);
    let mut waiting = Vec::new();
    for plugin in &settings.plugins {
        let line = line(plugin, settings);
        let item = item(plugin, &line);
        let problem = line.problem.as_ref();
        external
            .warnings
            .extend(problem.map(|problem| format!("{}: {problem}", plugin.from)));
        if plugin.whose == Whose::Person {
            let files = beside(item.pin.files.clone(), settings);
            external.protect.extend(linked(files, settings));
        }
        let mut check = None;
        if needs_trust(plugin, &line) {
            if !trust.allows(&item) {
                waiting.push(item);
                continue;
            }
            check = Some(pinned(item.clone(), settings));
        } else {
            let files = beside(item.pin.files.clone(), settings);
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
    // The person's first: the project's take their place.
    let own = settings.folders.config.as_deref();
    let (mut tools, problems) = own
        .map(|own| folder::look(own, Tier::Person))
        .unwrap_or_default();
    external
        .protect
        .extend(own.into_iter().flat_map(folder::links));
    external.warnings.extend(problems);
    let mut asked = Vec::new();
    let (project, problems) = folder::look(&settings.started, Tier::Project);
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
        if let Some(problem) = tool.leads_into(folders(settings)) {
            // The project has the same file, and waits for a yes to it.
            if !asked.iter().any(|other| other.is_file_of(&tool)) {
                external.warnings.push(problem);
            }
            continue;
        }
        let item = match tool.tier {
            Tier::Project => Some(tool.item()),
            Tier::Person => own::item_to_trust(&tool, settings),
        };
        match item {
            Some(item) if !trust.allows(&item) => waiting.push(item),
            item => external.add(tool, item, &trust, settings),
        }
    }
    // What runs modules of Lua is haft itself, wherever it is installed.
    if !external.plugins.is_empty() {
        external.readable.push(env::itself());
    }
    if !waiting.is_empty() {
        let (all, _) = of_project(settings);
        external.warnings.push(said_of(&waiting, &all, &trust));
    }
    external
}

/// One line about what waits for a yes.
fn said_of(waiting: &[Item], all: &[Item], trust: &Trust) -> String {
    let names: Vec<String> = waiting
        .iter()
        .map(|item| {
            let changed = if trust.knew(item, all) {
                ", changed"
            } else {
                ""
            };
            format!("{} ({}{changed})", item.name, item.kind)
        })
        .collect();
    format!(
        "not run, because this folder is not trusted with it: {}; `haft trust` shows it, --trust runs it this once",
        names.join(", ")
    )
}

fn folders(settings: &Settings) -> Folders<'_> {
    Folders {
        started: settings.project(),
        current: settings.current.as_deref(),
        work_dir: &settings.work_dir,
        config: settings.folders.config.as_deref(),
        roots: &settings.roots,
        state: settings.folders.state.as_deref(),
    }
}

/// The command line of a plugin, as it is run.
fn line(plugin: &Configured, settings: &Settings) -> Line {
    let written = Written {
        program: &plugin.program,
        arguments: &plugin.arguments,
        environment: &plugin.environment,
        dir: plugin.dir.as_deref(),
        base: &plugin.folder,
        whose: plugin.whose,
    };
    written.line(folders(settings))
}

/// What the project says, and what would run something of the project.
fn needs_trust(plugin: &Configured, line: &Line) -> bool {
    plugin.is_project() || !line.reasons.is_empty()
}

impl External {
    /// Adds a tool, with the item that the person trusted if it needs trust.
    fn add(&mut self, tool: Found, item: Option<Item>, trust: &Trust, settings: &Settings) {
        let check = item.clone().map(|item| pinned(item, settings));
        // A module runs as it was read, and so is a page told: those very bytes must be
        // the trusted ones.
        let is_trusted = |file: &Path, bytes: &[u8]| {
            let item = item.as_ref();
            item.is_none_or(|item| trust.allows_with(item, &[(file, bytes)]))
        };
        match tool.made(check, &is_trusted, settings) {
            Ok(folder::Made::Lua(plugin)) => self.plugins.push(*plugin),
            Ok(folder::Made::Program(program)) => self.programs.push(*program),
            Err(problem) => return self.warnings.push(problem),
        }
        if tool.tier == Tier::Person {
            self.readable.extend(tool.read());
        }
    }
}

/// A check that a thing is what was trusted, whatever it was when the session began.
fn pinned(item: Item, settings: &Settings) -> Check {
    let (everything, project) = (settings.trust, settings.started.clone());
    let state = settings.folders.state.clone();
    Arc::new(move || {
        let trust = Trust::load(state.as_deref(), &project, everything);
        trust.check(&item).ok_or_else(|| {
            format!(
                "{} has changed since it was trusted, and was not run; `haft trust` shows it",
                item.name
            )
        })
    })
}

/// What a plugin of the person's has to read to run: its files, and what lies beside
/// them in a folder of its own below haft's.
fn beside(mut files: Vec<PathBuf>, settings: &Settings) -> Vec<PathBuf> {
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

/// What a script names in its first line belongs to it, when it is no program of the
/// system.
fn add_interpreters(files: &mut Vec<PathBuf>, work_dir: &Path) {
    let mut at = 0;
    while let Some(script) = files.get(at) {
        at += 1;
        let Some(line) = first_line(script) else {
            continue;
        };
        for word in line.split_whitespace() {
            let path = work_dir.join(word);
            let is_system = ["/usr/", "/bin/", "/sbin/"]
                .iter()
                .any(|system| path.starts_with(system));
            if word.contains('/')
                && !is_system
                && is_file(&path)
                && !files.contains(&path)
                && at < 20
            {
                files.push(path);
            }
        }
    }
}

/// What stands after `#!` in the first line of a script.
fn first_line(script: &Path) -> Option<String> {
    let mut begin = [0; 256];
    let read = beneath::open(script).ok()?.begin(&mut begin).ok()?;
    let text = String::from_utf8_lossy(begin.get(..read).unwrap_or_default());
    Some(text.strip_prefix("#!")?.lines().next()?.to_owned())
}

/// The files that a program is: itself, and what its arguments and variables name, as it
/// would find it or as its file may mean it. The first folder is the one it runs in.
fn program_files<'a>(
    program: &Path,
    arguments: &'a [String],
    values: impl Iterator<Item = &'a str>,
    folders: &[&Path],
) -> Vec<PathBuf> {
    let file = |path: &Path| path.is_absolute() && is_file(path);
    let mut files: Vec<PathBuf> = [program.to_owned()]
        .into_iter()
        .filter(|path| file(path))
        .collect();
    let words = arguments.iter().flat_map(|word| paths_of_argument(word));
    for word in words {
        for folder in folders {
            let path: PathBuf = folder.join(word).components().collect();
            if file(&path) && !files.contains(&path) {
                files.push(path);
            }
        }
    }
    let first = folders.first().copied().unwrap_or(Path::new("/"));
    for value in values.flat_map(paths_of_value) {
        let path: PathBuf = first.join(value).components().collect();
        if file(&path) && !files.contains(&path) {
            files.push(path);
        }
    }
    add_interpreters(&mut files, first);
    files
}

fn item(plugin: &Configured, line: &Line) -> Item {
    let values = plugin.environment.values.iter();
    let files = program_files(
        &plugin.program,
        &line.arguments,
        values.map(|(_, value)| value.as_str()),
        &[&line.dir, &plugin.folder],
    );
    // As it is written: what a variable holds may be secret, and is not to be shown.
    let shown = [vec![plugin.written_program()], plugin.written_arguments()].concat();
    let mut remarks = remarks(plugin);
    remarks.extend(runs_in(plugin.dir.as_deref()));
    remarks.extend(named_by(plugin.is_project(), &plugin.from, line));
    if files.is_empty() {
        remarks.push("none of its files is known: they may change unnoticed".to_owned());
    }
    let program = where_it_is(&plugin.program);
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
                    .map(|dir| format!("\n{:?}", where_it_is(dir)))
                    .unwrap_or_default()
            ),
            files,
        },
        remarks,
    }
}

/// A path with every link followed: the project may be come to by another way.
fn where_it_is(path: &Path) -> PathBuf {
    let real = haft::ops::scope::real(path).filter(|_| path.is_absolute());
    real.unwrap_or_else(|| path.to_owned())
}

/// The same with its keys in the order of the alphabet: another order is no change.
fn sorted(written: &serde_json::Value) -> serde_json::Value {
    let mut written = written.clone();
    written.sort_all_objects();
    written
}

/// Why something that the project did not name is its matter all the same.
fn named_by(is_project: bool, from: &str, line: &Line) -> Option<String> {
    let is_asked = !is_project && !line.reasons.is_empty();
    is_asked.then(|| format!("named by {from}: {}", line.reasons.join(", ")))
}

/// The folder that an entry says its program runs in: code may be loaded from there.
fn runs_in(dir: Option<&Path>) -> Option<String> {
    dir.map(|dir| format!("runs in {}", dir.display()))
}

/// What a plugin would get and may replace, as it is written.
fn remarks(plugin: &Configured) -> Vec<String> {
    let own = plugin.environment.names.iter().cloned();
    let written = |name: &String| match &plugin.written["env"][name] {
        serde_json::Value::String(text) => format!("{name}={text}"),
        _ => name.clone(),
    };
    let made = plugin.environment.values.iter();
    let names: Vec<String> = own.chain(made.map(|(name, _)| written(name))).collect();
    let sees =
        (!names.is_empty()).then(|| format!("sees of the environment: {}", names.join(", ")));
    let replaces = plugin
        .overrides
        .then(|| "may replace built-in tools of any name (override: true)".to_owned());
    sees.into_iter().chain(replaces).collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file())
}

fn program(
    plugin: &Configured,
    line: Line,
    item: &Item,
    check: Option<Check>,
    settings: &Settings,
) -> Plugin {
    let standing = match needs_trust(plugin, &line) {
        true => Standing::Guest,
        false => standing(Some(&line), settings),
    };
    let line = started(line, settings);
    Plugin {
        label: plugin.label.clone(),
        program: line.program,
        shown: Some(plugin.written_program()),
        standing,
        arguments: line.arguments.into_iter().map(OsString::from).collect(),
        environment: Some(environment(&plugin.environment, settings)),
        dir: Some(line.dir).filter(|dir| *dir != settings.work_dir),
        protocol: plugin.protocol,
        timeout: plugin.timeout,
        start_timeout: plugin.start_timeout,
        limits_set_in: match plugin.whose {
            Whose::Typed => "an entry for it under `tools.plugins`".to_owned(),
            _ => "its entry under `tools.plugins`".to_owned(),
        },
        overrides: if plugin.overrides {
            Overrides::Any
        } else {
            Overrides::Nothing
        },
        first_line: None,
        may_be_empty: false,
        log: log(&plugin.label, settings),
        check,
        memory: memory(item, settings),
        stamp: Some(stamp(item.pin.files.clone())),
        guest: None,
        files: Vec::new(),
    }
}

/// All that a program sees of the environment. Its `PATH` leads nowhere into the project,
/// also where the project moves the work folder: the session takes out the rest.
fn environment(own: &Environment, settings: &Settings) -> Vec<(OsString, OsString)> {
    let mut environment = env::for_programs(&own.names);
    for (name, value) in &own.values {
        environment.retain(|(known, _)| known.to_str() != Some(name));
        environment.push((name.into(), value.into()));
    }
    haft::ops::executor::clean_path(&mut environment, &folders_of(settings));
    environment
}

/// What a program said of itself is remembered for exactly what it is.
fn memory(item: &Item, settings: &Settings) -> Option<Arc<dyn haft::Memory>> {
    let folder = settings.folders.state.as_ref()?.join("plugins/known");
    // One that runs nothing but a name from PATH may be another one tomorrow.
    if item.pin.files.is_empty() {
        return None;
    }
    Some(Arc::new(Known {
        folder,
        pin: item.pin.clone(),
    }))
}

/// The same of a program that belongs to haft: too large to be read at every start, so
/// what tells it from another is when and how large it was made.
pub(crate) fn memory_of_own(
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
    Some(Arc::new(servers::Kept(file)))
}

struct Known {
    folder: PathBuf,
    pin: Pin,
}

impl Known {
    fn file(&self) -> Option<PathBuf> {
        Some(self.folder.join(format!("{}.json", self.pin.hash().ok()?)))
    }
}

impl haft::Memory for Known {
    fn load(&self) -> Option<serde_json::Value> {
        servers::Kept(self.file()?).load()
    }

    fn store(&self, introduction: &serde_json::Value) {
        if let Some(file) = self.file() {
            haft::Memory::store(&servers::Kept(file), introduction);
        }
    }
}

/// A number for the state of some files.
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

/// Where what a program says to its log is kept.
fn log(label: &str, settings: &Settings) -> Option<PathBuf> {
    let state = settings.folders.state.as_ref()?;
    Some(state.join("plugins").join(format!("{label}.log")))
}

/// A module of Lua as the plugin that it becomes.
fn lua(tool: &Found, source: String, check: Option<Check>, settings: &Settings) -> Plugin {
    // haft ends a call that takes too long: the module's process must not do so before.
    let mut limits = haft_script::Limits::default();
    limits.seconds = limits.seconds.max(settings.timeout.as_secs_f64());
    let load = haft_script::Load {
        path: tool.shown.clone(),
        source,
        rights: match tool.tier {
            Tier::Project => haft_script::Rights::Pure,
            Tier::Person => haft_script::Rights::Full,
        },
        limits,
    };
    Plugin {
        label: tool.name.clone(),
        program: env::itself(),
        shown: None,
        arguments: vec!["__lua".into()],
        environment: Some(environment(&Environment::default(), settings)),
        dir: None,
        protocol: Protocol::Second,
        timeout: None,
        start_timeout: None,
        limits_set_in: format!("the table that {} returns", tool.shown),
        // No others: these are what somebody said yes to.
        overrides: Overrides::Named(tool.names()),
        first_line: Some(load.line()),
        may_be_empty: true,
        log: log(&tool.name, settings),
        check,
        standing: standing_of(tool.tier, settings),
        memory: memory(&tool.item(), settings),
        // Its source is in the first line: another one is another session's.
        stamp: None,
        guest: None,
        files: tool.files(),
    }
}
