//! From settings to a session of tools.

use crate::args::Shared;
use crate::backing;
use crate::config::commands::{Executor, Host};
use crate::config::files::{Execution, has_a_tree};
use crate::config::{self, Settings};
use crate::env;
use crate::exit::{Exit, Failure};
use crate::record::Record;
use crate::signals::Signals;
use crate::{external, log, output, place, sandbox};
use haft::commands::{Commands, Place};
use haft::ops::backend::Kept;
use haft::ops::executor::sandbox::Network;
use haft::ops::executor::{Itself, Ssh, Target};
use haft::ops::messenger::Messenger;
use haft::ops::scope::{FileRules, Writing};
use haft::{Approver, BuildError, Listed, Runtime};
use haft_mcp::client::RemoteServer;
use haft_store::sessions::SessionFile;
use haft_web::channels::{Channels, RetryPolicy, Sink};
use haft_web::client::{Client, SetupError};
use haft_web::fetch::Cache;
use haft_web::{Fetcher, Searcher};
use std::sync::Arc;

/// Which tools a session has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// Those that a model would see.
    Preset,
    /// Every one of the toolset: a person asked for one by its name.
    Every,
}

/// Reads the configuration, starts to log, and says what the person should know.
pub(crate) fn settings(shared: &Shared) -> Result<Settings, Failure> {
    let settings = settings_of_agent(shared)?;
    note_model(&settings);
    Ok(settings)
}

/// Says what is wrong with the settings of the model.
pub(crate) fn note_model(settings: &Settings) {
    if let (Err(failure), false) = (&settings.model, settings.quiet) {
        output::note(&failure.message);
    }
}

/// The same for a command that needs a model, and fails where its settings are wrong.
pub(crate) fn settings_of_agent(shared: &Shared) -> Result<Settings, Failure> {
    let settings = config::load(shared)?;
    log::start(&settings.log, &settings.secrets);
    note_warnings(&settings);
    Ok(settings)
}

/// Says what the person should know about the configuration.
pub(crate) fn note_warnings(settings: &Settings) {
    if !settings.quiet {
        for warning in &settings.warnings {
            output::note(warning);
        }
    }
}

/// The same for a chat, whose screen is no place for logs.
pub(crate) fn settings_of_chat(shared: &Shared) -> Result<Settings, Failure> {
    let settings = config::load(shared)?;
    let file = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("chat.log"));
    log::start_in(&settings.log, &settings.secrets, file.as_deref());
    note_warnings(&settings);
    Ok(settings)
}

/// Makes a session to look at: no model and no client gets its tools. So it may be in any
/// folder, but in one that tools do not get, the programs that it starts to ask for their
/// tools may write nothing.
pub(crate) fn build(settings: &Settings, offer: Offer) -> Result<Runtime, Failure> {
    let mut builder = described(settings, offer, None, None)?;
    let is_confined = settings.rules.writing != Writing::Anywhere;
    if is_confined && settings.open_to_tools().is_err() {
        builder = builder.rules(FileRules {
            writing: Writing::Nothing,
            ..settings.rules
        });
    }
    built(settings, builder)
}

/// Makes the session.
pub(crate) fn build_with(
    settings: &Settings,
    offer: Offer,
    approver: Option<Arc<dyn Approver>>,
    record: Option<Record>,
) -> Result<Runtime, Failure> {
    settings.open_to_tools()?;
    let builder = described(settings, offer, approver, record)?;
    built(settings, builder)
}

/// A session by its id, and what it brings.
pub(crate) struct GoingOn {
    pub(crate) id: String,
    /// What its tools remember.
    pub(crate) state: serde_json::Map<String, serde_json::Value>,
    /// The files that it holds itself.
    pub(crate) files: Vec<SessionFile>,
}

/// Makes the session of an agent, which records what it does itself.
pub(crate) fn build_for_agent(
    settings: &Settings,
    approver: Arc<dyn Approver>,
    going_on: GoingOn,
) -> Result<Runtime, Failure> {
    settings.open_to_tools()?;
    let builder = described(settings, Offer::Preset, Some(approver), None)?;
    let GoingOn { id, state, files } = going_on;
    let files = files.into_iter().map(|file| Kept {
        path: file.path,
        bytes: file.bytes,
        modified: file.modified,
    });
    let builder = builder.session(id).remembering(state);
    built(settings, builder.holding(files.collect()))
}

fn described(
    settings: &Settings,
    offer: Offer,
    approver: Option<Arc<dyn Approver>>,
    record: Option<Record>,
) -> Result<haft::Builder, Failure> {
    let mut builder = Runtime::builder()
        .dir(&settings.work_dir)
        .toolset(&settings.toolset)
        .roots(settings.roots.clone())
        .rules(settings.rules)
        .folders(settings.folders.clone())
        .timeout(settings.timeout)
        .concurrency(settings.concurrency)
        .backend(backing::backing(settings)?)
        .policy(settings.policy.clone())
        .rules_begin(&settings.started)
        .approve(settings.approve)
        .interrupt_on(settings.interrupt_on.clone());
    if matches!(settings.files.execution, Execution::Local) || !has_a_tree(&settings.toolset) {
        builder = builder.commands(commands(settings)?);
    }
    if !settings.channels.is_empty() {
        builder = builder.messenger(messenger(settings)?);
    }
    builder = with_web(settings, builder, offer)?;
    let external = external::load(settings);
    if !settings.quiet {
        for warning in &external.warnings {
            output::note(warning);
        }
    }
    builder = builder
        .protect([settings.protect.clone(), external.protect].concat())
        .programs_run(here(Network::On, &[]))
        .programs_read(external.readable)
        .inert(external::folders_of(settings))
        .startable(external::trusted_folders(settings));
    for plugin in external.plugins {
        builder = builder.add_plugin(plugin);
    }
    for server in external.servers {
        let name = server.name.clone();
        let server = RemoteServer::new(server)
            .map_err(|error| Failure::usage(format!("MCP server {name}: {error}")))?;
        builder = builder.source(server);
    }
    for program in external.programs {
        builder = builder.executable(program);
    }
    if let Some((plugin, program)) = sandbox::plugin(settings, offer)? {
        builder = builder.add_plugin(plugin).programs_read([program]);
    }
    if let Some(reason) = place::needs_a_person(settings) {
        builder = builder.ask_first(reason, haft::Effect::Execute);
    }
    if let Some(record) = record {
        builder = builder.session(record.session).journal(record.journal);
    }
    if let Some(approver) = approver {
        builder = builder.approver(approver);
    }
    if let Some(preset) = &settings.preset {
        builder = builder.preset(preset);
    }
    if offer == Offer::Every {
        builder = builder.every_tool();
    }
    Ok(builder)
}

fn built(settings: &Settings, builder: haft::Builder) -> Result<Runtime, Failure> {
    builder.build().map_err(|error| match error {
        // What is wrong with a backend is wrong in its file.
        BuildError::Route(..) if settings.files.has_variables => Failure::usage(format!(
            "{}: backend cannot be used: what its variables make is not there, or not allowed",
            settings.files.from
        )),
        error @ (BuildError::Route(..) | BuildError::Routes(_)) => {
            Failure::usage(format!("{}: {error}", settings.files.from))
        }
        error => Failure::usage(error.to_string()),
    })
}

/// With the tools of the web, where they belong.
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
            "the project's haft.yaml offers the web tools, and yours does not (tools.web.enabled)";
        builder = builder.ask_first(reason, haft::Effect::Network);
    }
    Ok(builder)
}

/// Who fetches pages, and who searches.
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

/// Who sends messages.
fn messenger(settings: &Settings) -> Result<Arc<dyn Messenger>, Failure> {
    let setup = |error: SetupError| Failure::usage(format!("tools.channels: {error}"));
    let client = Client::new(haft_web::Settings::default()).map_err(setup)?;
    let mut policy = RetryPolicy::DEFAULT;
    if !settings.timeout.is_zero() {
        policy.timeout = policy.timeout.min(settings.timeout);
    }
    let console = Sink::new(std::io::stderr());
    let channels =
        Channels::new(settings.channels.clone(), &client, policy, &console).map_err(setup)?;
    Ok(Arc::new(channels))
}

/// How commands are run.
fn commands(settings: &Settings) -> Result<Commands, Failure> {
    let own = &settings.commands;
    match &own.executor {
        Executor::Local => Ok(here(own.network, &own.granted)),
        Executor::Ssh(host) => elsewhere(settings, host),
    }
}

/// Commands on another machine.
fn elsewhere(settings: &Settings, host: &Host) -> Result<Commands, Failure> {
    let folder = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("ssh"))
        .ok_or_else(|| Failure::usage("commands by ssh need a state folder: set HOME"))?;
    let target = Target {
        host: host.name.clone(),
        port: None,
        options: host.options.clone(),
        environment: env::for_ssh(),
        folder,
    };
    let ssh = Ssh::new(Arc::new(Itself::new().executor()), target)
        .map_err(|error| Failure::usage(format!("executor: {error}")))?;
    Ok(Commands {
        executor: Arc::new(ssh),
        environment: env::for_another_machine(&settings.commands.granted),
        place: Place::Elsewhere {
            dir: host.dir.clone(),
        },
    })
}

/// Commands on this machine: this binary watches over each of them.
pub(crate) fn here(network: Network, granted: &[String]) -> Commands {
    let itself = Itself::new();
    Commands {
        executor: Arc::new(itself.executor()),
        environment: env::for_commands(granted),
        place: Place::Here {
            helper: itself.helper(),
            network,
            sockets: env::socket_folders(),
        },
    }
}

/// Waits until programs that bring tools have been met, and says what is wrong with
/// some of them.
pub(crate) async fn ready(runtime: &Runtime, quiet: bool) {
    for problem in runtime.ready().await {
        if !quiet {
            output::note(&haft::ops::text::decode::visible(problem));
        }
    }
}

/// Ends what the session started, and says what was found when somebody looked for the
/// last time at what was not to be touched.
pub(crate) async fn close(runtime: &Runtime) {
    // Said to whoever wants to hear nothing, too: it is still there when haft is not.
    for note in runtime.close().await {
        output::note(&haft::ops::text::decode::visible(&note));
    }
}

/// The same, but a signal does not wait for it. Then the next session in the work folder
/// looks.
pub(crate) async fn close_unless(runtime: &Runtime, signals: &mut Signals) -> Option<Exit> {
    tokio::select! {
        () = close(runtime) => None,
        exit = signals.next() => Some(exit),
    }
}

/// Says which tools are to wait for a person and are not there: a name that is written
/// otherwise would guard nothing. Those of the toolset that are not offered need no guard.
pub(crate) fn note_interrupts(settings: &Settings, runtime: &Runtime) {
    if settings.quiet || settings.interrupt_on.is_empty() {
        return;
    }
    let mut known = runtime.tools().names();
    if let Some(toolset) = haft::toolsets::by_name(&settings.toolset) {
        let tools = toolset.tools.iter();
        known.extend(tools.map(|tool| tool.definition().name.clone()));
    }
    let unknown = settings.interrupt_on.iter();
    for name in unknown.filter(|name| !known.contains(name)) {
        let near = haft::ops::text::spelling::closest(name, known.iter().cloned(), 1);
        let meant = near.first();
        let meant = meant.map(|near| format!("; did you mean \"{near}\"?"));
        let line = format!(
            "warning: tools.interrupt_on names \"{name}\", which is no tool of this session: \
             nothing waits for a person because of it{}",
            meant.unwrap_or_default()
        );
        output::note(&haft::ops::text::decode::visible(&line));
    }
}

/// Says that there is no such tool, and which was probably meant.
pub(crate) fn unknown_tool(runtime: &Runtime, name: &str) -> Failure {
    let names = runtime.tools().names();
    let near = haft::ops::text::spelling::closest(name, names.iter().cloned(), 1);
    let meant = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default();
    let name = haft::ops::text::brief(name, 100);
    Failure::usage(format!("unknown tool \"{name}\"{meant}")).hint(format!(
        "toolset {} has: {}",
        runtime.toolset(),
        haft::ops::text::few(&names, 60)
    ))
}
