//! Builds the runtime of a session from its settings.

use crate::args::Shared;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::record::Record;
use crate::signals::Signals;
use crate::{confinement, file_backend, git_ssh, haft_sandbox, log, output};
use haft::commands::{CommandLocation, Commands};
use haft::ops::backend::Kept;
use haft::ops::exec::caches::CacheSettings;
use haft::ops::exec::network::Gateway;
use haft::ops::executor::sandbox::Network;
use haft::ops::executor::{Itself, Ssh, Target};
use haft::ops::messenger::Messenger;
use haft::ops::scope::{FileRules, Writing};
use haft::{Approver, BuildError, Listed, Runtime};
use haft_config::commands::{Executor, Host};
use haft_config::external;
use haft_config::files::{Execution, has_virtual_paths};
use haft_config::{self, Settings};
use haft_mcp::client::{Progress, RemoteServer};
use haft_store::sessions::SessionFile;
use haft_web::channels::{Channels, RetryPolicy, Sink};
use haft_web::client::{Client, DnsLookup, SetupError};
use haft_web::fetch::Cache;
use haft_web::gateway::Proxy;
use haft_web::{Fetcher, Searcher};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Selection of tools that a session offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The tools of the preset, as a model sees them.
    Preset,
    /// All tools of the toolset: the user named one on the command line.
    Every,
}

/// Reads the configuration, starts logging and prints warnings.
pub(crate) fn settings(shared: &Shared) -> Result<Settings, Failure> {
    let settings = settings_of_agent(shared)?;
    note_model(&settings);
    Ok(settings)
}

/// Like [`settings`], for a command that shows or takes back changes: one of them may have broken
/// the folder's haft.yaml, which is ignored then.
pub(crate) fn settings_for_changes(shared: &Shared) -> Result<Settings, Failure> {
    let broken = match haft_config::load(&shared.flags(), crate::env::read()) {
        Ok(_) => return settings(shared),
        Err(broken) => broken,
    };
    let flags = haft_config::Flags {
        ignore_project: true,
        ..shared.flags()
    };
    let Ok(settings) = haft_config::load(&flags, crate::env::read()) else {
        return Err(broken.into());
    };
    log::start(&settings.log, &settings.secrets);
    note_warnings(&settings);
    output::note(&format!(
        "this folder's haft.yaml is ignored, because it cannot be read: {}",
        Failure::from(broken).message
    ));
    Ok(settings)
}

/// Prints the error in the model's settings, if there is one.
pub(crate) fn note_model(settings: &Settings) {
    if let (Err(failure), false) = (&settings.model, settings.quiet) {
        output::note(&Failure::from(failure.clone()).message);
    }
}

/// Like [`settings`], for a command that needs a model. Errors in the model's settings
/// are not printed here; the command fails with them.
pub(crate) fn settings_of_agent(shared: &Shared) -> Result<Settings, Failure> {
    let settings = haft_config::load(&shared.flags(), crate::env::read())?;
    log::start(&settings.log, &settings.secrets);
    note_warnings(&settings);
    Ok(settings)
}

/// Prints the warnings about the configuration.
pub(crate) fn note_warnings(settings: &Settings) {
    if !settings.quiet {
        output::warnings(&settings.warnings);
    }
}

/// Like [`settings_of_agent`], but logs to a file, because the chat uses the screen.
pub(crate) fn settings_of_chat(shared: &Shared) -> Result<Settings, Failure> {
    let settings = haft_config::load(&shared.flags(), crate::env::read())?;
    let file = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("chat.log"));
    log::start_in(&settings.log, &settings.secrets, file.as_deref());
    note_warnings(&settings);
    Ok(settings)
}

/// Builds a session for inspection only: no model or client gets its tools. It may
/// therefore be in any folder; but in a folder that is closed to tools, plugins that are
/// started to list their tools cannot write anything.
pub(crate) fn build(settings: &Settings, offer: Offer) -> Result<Runtime, Failure> {
    let mut builder = builder(settings, offer, None, None)?;
    let is_confined = settings.rules.writing != Writing::Anywhere;
    if is_confined && settings.paths.open_to_tools().is_err() {
        builder = builder.rules(FileRules {
            writing: Writing::Nothing,
            ..settings.rules
        });
    }
    finish(settings, builder)
}

/// Builds a session whose tools can be called.
pub(crate) fn build_with(
    settings: &Settings,
    offer: Offer,
    approver: Option<Arc<dyn Approver>>,
    record: Option<Record>,
) -> Result<Runtime, Failure> {
    settings.paths.open_to_tools()?;
    let builder = builder(settings, offer, approver, record)?;
    finish(settings, builder)
}

/// Recorded state with which an agent's session starts; empty for a new session.
pub(crate) struct SessionState {
    pub(crate) id: String,
    /// Saved state of the tools.
    pub(crate) state: serde_json::Map<String, serde_json::Value>,
    /// Files that are stored in the session.
    pub(crate) files: Vec<SessionFile>,
}

/// Builds the session of an agent, which records its calls itself.
pub(crate) fn build_for_agent(
    settings: &Settings,
    approver: Arc<dyn Approver>,
    saved: SessionState,
) -> Result<Runtime, Failure> {
    settings.paths.open_to_tools()?;
    let builder = builder(settings, Offer::Preset, Some(approver), None)?;
    let SessionState { id, state, files } = saved;
    let files = files.into_iter().map(|file| Kept {
        path: file.path,
        bytes: file.bytes,
        modified: file.modified,
    });
    let builder = builder.session(id).remembering(state);
    finish(settings, builder.restored_files(files.collect()))
}

fn builder(
    settings: &Settings,
    offer: Offer,
    approver: Option<Arc<dyn Approver>>,
    record: Option<Record>,
) -> Result<haft::Builder, Failure> {
    let mut builder = Runtime::builder()
        .dir(&settings.paths.work_dir)
        .toolset(&settings.toolset)
        .roots(settings.paths.roots.clone())
        .rules(settings.rules)
        .folders(settings.folders.clone())
        .timeout(settings.timeout)
        .edit_repairs(settings.edit_repairs)
        .concurrency(settings.concurrency)
        .backend(file_backend::backing(settings)?)
        .policy(settings.policy.clone())
        .rules_begin(&settings.paths.started)
        .approve(settings.approve)
        .interrupt_on(settings.interrupt_on.clone());
    if matches!(settings.files.execution, Execution::Local) || !has_virtual_paths(&settings.toolset)
    {
        builder = builder.commands(commands(settings)?);
    }
    if !settings.channels.is_empty() {
        builder = builder.messenger(messenger(settings)?);
    }
    builder = with_web(settings, builder, offer)?;
    let external = external::load(settings);
    if !settings.quiet {
        output::warnings(&external.warnings);
    }
    builder = builder
        .protect([settings.paths.protect.clone(), external.protect].concat())
        .programs_run(Commands {
            gateway: gateway(settings),
            ..local_commands(Network::On, &[])
        })
        .programs_read(external.readable)
        .inert(external::folders_of(settings))
        .startable(external::trusted_folders(settings));
    for plugin in external.plugins {
        builder = builder.add_plugin(plugin);
    }
    for mut server in external.servers {
        let name = server.name.clone();
        server.progress = progress(settings);
        let server = RemoteServer::new(server)
            .map_err(|error| Failure::usage(format!("MCP server {name}: {error}")))?;
        builder = builder.source(server);
    }
    for program in external.programs {
        builder = builder.executable(program);
    }
    if let Some((plugin, program)) = haft_sandbox::plugin(settings, offer)? {
        builder = builder.add_plugin(plugin).programs_read([program]);
    }
    if let Some(reason) = confinement::approval_reason(settings) {
        builder = builder.ask_first(reason, haft::Effect::Execute);
    }
    if let Some(store) = crate::effects::recording(settings) {
        builder = builder.effects(store);
    }
    if let Some(record) = record {
        builder = builder.session(record.session).journal(record.journal);
    }
    if let Some(approver) = approver {
        builder = builder.approver(approver);
    }
    if let Some(own_rules) = &settings.own_rules {
        builder = builder.own_rules(Arc::new(own_rules.clone()));
    }
    if let Some(preset) = &settings.preset {
        builder = builder.preset(preset);
    }
    if offer == Offer::Every {
        builder = builder.every_tool();
    }
    Ok(builder)
}

fn finish(settings: &Settings, builder: haft::Builder) -> Result<Runtime, Failure> {
    builder.build().map_err(|error| match error {
        // Errors about backends name the file that configures them.
        BuildError::Route(..) if settings.files.has_variables => Failure::usage(format!(
            "{}: cannot use the backend: a path built from its variables does not exist or is not allowed",
            settings.files.from
        )),
        error @ (BuildError::Route(..) | BuildError::Routes(_)) => {
            Failure::usage(format!("{}: {error}", settings.files.from))
        }
        error => Failure::usage(error.to_string()),
    })
}

/// Shows that a server is being downloaded.
pub(crate) fn progress(settings: &Settings) -> Option<Progress> {
    (!settings.quiet).then(|| -> Progress { Arc::new(|line| output::note(&line)) })
}

/// Adds the web tools if the toolset or the configuration offers them.
fn with_web(
    settings: &Settings,
    mut builder: haft::Builder,
    offer: Offer,
) -> Result<haft::Builder, Failure> {
    let listed = match settings.toolset.as_str() {
        _ if settings.web.enabled => Listed::Always,
        "standard" => Listed::ByPreset,
        _ => return Ok(builder),
    };
    let (fetcher, searcher) = web(settings)?;
    for tool in haft_web::tools(fetcher, searcher) {
        builder = builder.own_tool(tool, listed);
    }
    if settings.web.by_project && !settings.web.enabled && offer == Offer::Preset {
        let reason =
            "the project's haft.yaml enables the web tools, your own does not (tools.web.enabled)";
        builder = builder.ask_first(reason, haft::Effect::Network);
    }
    Ok(builder)
}

/// Creates the clients for fetching pages and for searching.
pub(crate) fn web(settings: &Settings) -> Result<(Fetcher, Searcher), Failure> {
    let own = &settings.web;
    let client = Client::new(haft_web::Settings {
        allow: own.allow.clone(),
        deny: own.deny.clone(),
        ca_file: own.ca_file.clone(),
        proxy: own.proxy.clone(),
        ..haft_web::Settings::default()
    })
    .map_err(|error| Failure::usage(format!("tools.web.ca_file: {error}")))?;
    let folder = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("web"));
    let fetcher = Fetcher::new(client.clone(), folder.map(Cache::new));
    Ok((fetcher, Searcher::new(client, own.engines.clone())))
}

/// Creates the client that sends messages to channels.
fn messenger(settings: &Settings) -> Result<Arc<dyn Messenger>, Failure> {
    let setup = |error: SetupError| Failure::usage(format!("tools.channels: {error}"));
    let client = Client::new(haft_web::Settings::default()).map_err(setup)?;
    let mut policy = RetryPolicy::DEFAULT;
    if !settings.timeout.is_zero() {
        policy.timeout = policy.timeout.min(settings.timeout);
    }
    let console = Sink::new(crate::stderr::PatientStderr);
    let channels =
        Channels::new(settings.channels.clone(), &client, policy, &console).map_err(setup)?;
    Ok(Arc::new(channels))
}

/// Returns how commands are run: on this machine or over ssh.
fn commands(settings: &Settings) -> Result<Commands, Failure> {
    let own = &settings.commands;
    match &own.executor {
        Executor::Local => {
            let mut commands = Commands {
                gateway: gateway(settings),
                caches: caches(settings),
                ..local_commands(own.network, &own.granted)
            };
            git_ssh::prepare(settings, &mut commands);
            Ok(commands)
        }
        Executor::Ssh(host) => remote_commands(settings, host),
    }
}

/// Returns the way out of the network that the commands of a session share. Even if no host is
/// open, it tells which ones a command wanted, and the user may open one for a call.
fn gateway(settings: &Settings) -> Option<Arc<dyn Gateway>> {
    if settings.commands.network != Network::Session {
        return None;
    }
    let forwards = settings.policy.open_loopback_ports();
    let proxy = Proxy::new(DnsLookup::default(), forwards);
    Some(Arc::new(proxy))
}

/// Runs commands on another machine.
fn remote_commands(settings: &Settings, host: &Host) -> Result<Commands, Failure> {
    let folder = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("ssh"))
        .ok_or_else(|| Failure::usage("commands over ssh need a state folder: set HOME"))?;
    let target = Target {
        host: host.name.clone(),
        port: None,
        options: host.options.clone(),
        environment: env::read().for_ssh(),
        folder,
    };
    let ssh = Ssh::new(Arc::new(Itself::new().executor()), target)
        .map_err(|error| Failure::usage(format!("executor: {error}")))?;
    Ok(Commands {
        executor: Arc::new(ssh),
        environment: env::read().for_another_machine(&settings.commands.granted),
        place: CommandLocation::Elsewhere {
            dir: host.dir.clone(),
        },
        gateway: None,
        caches: None,
    })
}

/// Returns the caches of commands, unless the user disabled them.
fn caches(settings: &Settings) -> Option<CacheSettings> {
    settings.caches.enabled.then(|| CacheSettings {
        places: env::read().cache_places(),
        max: settings.caches.max,
    })
}

/// Runs commands on this machine. Haft starts itself as their supervisor.
pub(crate) fn local_commands(network: Network, granted: &[String]) -> Commands {
    let itself = Itself::new();
    Commands {
        executor: Arc::new(itself.executor()),
        environment: env::read().for_commands(granted),
        place: CommandLocation::Here {
            helper: itself.helper(),
            network,
            sockets: env::read().socket_folders(),
            readable: Vec::new(),
        },
        gateway: None,
        caches: None,
    }
}

/// Waits until plugins and MCP servers have listed their tools, and prints their
/// problems.
pub(crate) async fn ready(runtime: &Runtime, quiet: bool) {
    let problems = runtime.ready().await;
    if !quiet {
        output::warnings(problems);
    }
}

/// Same as [`ready`], in a task of its own: a server that takes its time does not delay the
/// session.
pub(crate) fn ready_later(settings: &Settings, runtime: &Runtime) -> JoinHandle<()> {
    let (runtime, quiet) = (runtime.clone(), settings.quiet);
    tokio::spawn(async move { ready(&runtime, quiet).await })
}

/// Same as [`ready_later`], and then [`note_interrupts`].
pub(crate) fn ready_and_note_later(settings: &Settings, runtime: &Runtime) {
    let (loading, runtime) = (ready_later(settings, runtime), runtime.clone());
    let (names, toolset) = (settings.interrupt_on.clone(), settings.toolset.clone());
    if !settings.quiet {
        tokio::spawn(async move {
            let _ = loading.await;
            note_unknown(&names, &toolset, &runtime);
        });
    }
}

/// Ends everything the session started, and prints the result of the last check of
/// protected files.
pub(crate) async fn close(runtime: &Runtime) {
    // Printed even with --quiet: a changed protected file outlives this session.
    for note in runtime.close().await {
        output::note(&haft::ops::text::decode::visible(&note));
    }
}

/// Closes the session unless a signal comes first. The next session in the work folder
/// then does the check.
pub(crate) async fn close_unless(runtime: &Runtime, signals: &mut Signals) -> Option<Exit> {
    tokio::select! {
        () = close(runtime) => None,
        exit = signals.next() => Some(exit),
    }
}

/// Warns about names in `interrupt_on` that match no tool: a misspelled name guards
/// nothing. Tools of the toolset that are not offered need no guard, so they cause no
/// warning.
pub(crate) fn note_interrupts(settings: &Settings, runtime: &Runtime) {
    if !settings.quiet {
        note_unknown(&settings.interrupt_on, &settings.toolset, runtime);
    }
}

fn note_unknown(names: &BTreeSet<String>, toolset: &str, runtime: &Runtime) {
    if names.is_empty() {
        return;
    }
    let mut known = runtime.tools().names();
    if let Some(toolset) = haft::toolsets::by_name(toolset) {
        let tools = toolset.tools.iter();
        known.extend(tools.map(|tool| tool.definition().name.clone()));
    }
    let unknown = names.iter().filter(|name| !known.contains(name));
    let lines = unknown.map(|name| {
        let hint = haft::ops::text::spelling::hint(name, &known);
        format!(
            "warning: tools.interrupt_on: unknown tool \"{name}\", so this entry has no effect{hint}"
        )
    });
    output::warnings(&lines.collect::<Vec<_>>());
}

/// Error for an unknown tool name, with the closest known name.
pub(crate) fn unknown_tool(runtime: &Runtime, name: &str) -> Failure {
    let names = runtime.tools().names();
    let hint = haft::ops::text::spelling::hint(name, &names);
    let name = haft::ops::text::brief(name, 100);
    Failure::usage(format!("unknown tool \"{name}\"{hint}")).hint(format!(
        "toolset {} has: {}",
        runtime.toolset(),
        haft::ops::text::few(&names, 60)
    ))
}
