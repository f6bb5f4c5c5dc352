//! A session: its own parts, and the settings that it shares with others.

use super::approve::Approval;
use super::exceptions::WiderSandbox;
use super::files::Files;
use super::network::LateRefusals;
use super::recording;
use super::sibling::Origin;
use super::{MemoryFiles, OuterCall, Runtime};
use crate::event::EventSink;
use crate::external::executable::Executable;
use crate::external::plugin::{Host, Programs};
use crate::external::source::Sourced;
use crate::journal::Journal;
use crate::queue::Queue;
use crate::state::State;
use crate::{Error, Tools, Toolset, limit};
use haft_ops::edit::Repairs;
use haft_ops::effects;
use haft_ops::exec::{ExecContext, Sandbox};
use haft_ops::executor::Captured;
use haft_ops::executor::sandbox::Network;
use haft_ops::messenger::Messenger;
use haft_ops::processes::{MAX_ACTIVE, Processes};
use haft_ops::spill::{self, Spill};
use haft_ops::text::limit::Limit;
use haft_ops::{Backend, Scope};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// Maximum log size of one stream of a background process, in bytes: the session's limit
/// for saved output, shared by all processes that can run at once.
const MAX_LOG_BYTES: u64 = spill::MAX_SESSION / (2 * MAX_ACTIVE as u64);

/// Settings that a session shares with its siblings and with the sessions inside it.
pub(crate) struct SharedSettings {
    pub(crate) toolset: Toolset,
    /// Tools that the preset leaves out. A session inside this one may be granted some.
    pub(super) reserve: Tools,
    /// Folders that relative paths in rules start from.
    pub(crate) bases: Vec<PathBuf>,
    pub(crate) messenger: Arc<dyn Messenger>,
    pub(super) timeout: Option<Duration>,
    /// Whether edits repair a text that is not in the file exactly.
    pub(crate) edit_repairs: Repairs,
    pub(super) concurrency: usize,
    pub(super) watch: Option<EventSink>,
    /// Store of recorded changes, unless recording is off.
    pub(super) effects: Option<effects::Store>,
    /// Source of the files, for creating siblings.
    pub(super) origin: Origin,
}

/// Everything that the calls of a session share.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) shared: Arc<SharedSettings>,
    pub(crate) tools: Tools,
    pub(crate) backend: Arc<dyn Backend>,
    /// Files that live in memory.
    pub(super) memory_files: MemoryFiles,
    pub(crate) scope: Scope,
    pub(crate) exec_context: Option<ExecContext>,
    /// How to run programs that are tools or provide tools.
    pub(crate) programs: Option<Programs>,
    /// Background processes, created on first use. They end with the session.
    pub(super) processes: Arc<OnceLock<Processes>>,
    pub(super) journal: Option<Arc<dyn Journal>>,
    /// Records what calls change.
    pub(crate) effects: Option<effects::Session>,
    /// Sandboxes, each with the same one without network, for calls under review; created on
    /// first use.
    pub(super) offline: Mutex<Vec<(Arc<Sandbox>, Arc<Sandbox>)>>,
    /// Sandboxes with folders that the user opened; created on first use.
    pub(super) wider: Mutex<Vec<WiderSandbox>>,
    /// Records of sessions inside this one, such as those of sub-agents: the user may undo
    /// what they changed. The sessions inside share the list.
    pub(super) inner_effects: Arc<Mutex<Vec<effects::Session>>>,
    /// Ids of the undos that reviews made.
    pub(super) reverts: Mutex<BTreeSet<String>>,
    pub(crate) spill: Option<Spill>,
    /// Connections of processes that calls left running.
    pub(crate) late_refusals: LateRefusals,
    pub(crate) state: Arc<State>,
    pub(super) queue: Queue,
    pub(crate) approval: Arc<Approval>,
    /// Tools whose calls always need approval, whatever the rules say.
    pub(super) interrupt_on: BTreeSet<String>,
    /// Name of the sub-agent that works in this session, if it is inside another one.
    pub(super) agent: Option<String>,
    /// The call that does its work in this session, if there is one.
    pub(super) outer: Option<OuterCall>,
    /// Number of events so far.
    pub(super) events: AtomicU64,
    /// Number of calls so far.
    pub(crate) calls: AtomicU64,
    pub(super) external: ExternalTools,
    /// The session that loaded the tools, if this one is its sibling.
    pub(super) tools_from: Option<Runtime>,
}

/// Programs and other sources that provide tools. Siblings and inner sessions have none,
/// because they use the loaded tools.
#[derive(Default)]
pub(super) struct ExternalTools {
    /// Programs that provide tools over JSON lines.
    pub(super) plugins: Vec<Arc<Host>>,
    /// Programs that are tools.
    pub(super) executables: Vec<Executable>,
    /// Other sources of tools, such as MCP servers.
    pub(super) sources: Vec<Arc<Sourced>>,
    /// Problems found when they were loaded.
    pub(super) loaded: tokio::sync::OnceCell<Vec<String>>,
}

impl Session {
    /// Creates a session that records nothing, saves no outputs and has made no calls.
    pub(super) fn new(shared: Arc<SharedSettings>, id: String, tools: Tools, files: Files) -> Self {
        let effects = recording::session(&shared, &id, &files.scope);
        if let (Some(effects), Some(programs)) = (&effects, &files.programs) {
            programs.changes.record(effects);
        }
        Self {
            id,
            shared,
            tools,
            backend: files.backend,
            memory_files: files.memory_files,
            scope: files.scope,
            exec_context: files.exec_context,
            programs: files.programs,
            processes: Arc::default(),
            journal: None,
            effects,
            offline: Mutex::default(),
            wider: Mutex::default(),
            inner_effects: Arc::default(),
            reverts: Mutex::default(),
            spill: None,
            late_refusals: LateRefusals::default(),
            state: Arc::default(),
            queue: Queue::default(),
            approval: Arc::default(),
            interrupt_on: BTreeSet::new(),
            agent: None,
            outer: None,
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            external: ExternalTools::default(),
            tools_from: None,
        }
    }

    /// Makes the session ready for calls.
    pub(super) fn start(self) -> Runtime {
        let session = Arc::new(self);
        session.tools.belong_to(&session);
        if let Some(programs) = &session.programs {
            programs.connections.belong_to(&session);
        }
        Runtime { session }
    }

    /// Returns the files, for a session that works on the same ones.
    pub(super) fn files(&self) -> Files {
        Files {
            backend: Arc::clone(&self.backend),
            memory_files: self.memory_files.clone(),
            scope: self.scope.clone(),
            exec_context: self.exec_context.clone(),
            programs: self.programs.clone(),
        }
    }

    /// Returns the folder for the outputs of another session, next to this one's.
    pub(super) fn spill_beside(&self, id: &str) -> Option<Spill> {
        let spill = self.spill.as_ref()?;
        let called = spill.called_folder().with_file_name(id);
        Some(Spill::new(spill.folder().with_file_name(id)).called(called))
    }

    /// Returns a sandbox without its network.
    pub(super) fn offline(&self, usual: &Arc<Sandbox>) -> Arc<Sandbox> {
        let is_closed = match usual.request().network {
            Network::Off => true,
            Network::Session => !self.has_forwards(),
            Network::On => false,
        };
        if is_closed {
            return Arc::clone(usual);
        }
        let mut known = recording::lock(&self.offline);
        if let Some((_, offline)) = known.iter().find(|(one, _)| Arc::ptr_eq(one, usual)) {
            return Arc::clone(offline);
        }
        let offline = Arc::new(usual.without_network());
        known.push((Arc::clone(usual), Arc::clone(&offline)));
        offline
    }

    /// Whether the user opened hosts to commands, or wants to be asked about some.
    pub(crate) fn opens_hosts(&self) -> bool {
        self.approval.policy().opens_hosts()
    }

    /// Whether ports of this machine appear in the network of the session's commands.
    fn has_forwards(&self) -> bool {
        let exec_context = self.exec_context.as_ref();
        let gateway = exec_context.and_then(|exec_context| exec_context.network.gateway());
        gateway.is_some_and(|gateway| !gateway.forwards().is_empty())
    }

    /// Returns how to run commands.
    ///
    /// # Errors
    /// When the session was set up without commands.
    pub(crate) fn exec_context(&self) -> Result<&ExecContext, Error> {
        self.exec_context.as_ref().ok_or_else(|| {
            Error::failed(
                "this session cannot run commands: it was set up without them \
                 (haft.yaml: `execution: local`; in Rust: `Builder::commands`)",
            )
        })
    }

    /// Returns the background processes.
    ///
    /// # Errors
    /// When the session cannot run commands, or has no folder for their output.
    pub(crate) fn processes(&self) -> Result<&Processes, Error> {
        let exec_context = self.exec_context()?;
        let spill = self.spill.as_ref().ok_or_else(|| {
            Error::failed("cannot start a process: there is no state folder for its output")
        })?;
        Ok(self.processes.get_or_init(|| {
            Processes::new(
                Arc::clone(&exec_context.executor),
                spill.folder().join("processes"),
                MAX_LOG_BYTES,
            )
        }))
    }

    pub(crate) fn shown_output(
        &self,
        output: &Captured,
        limit: &Limit,
        call_id: &str,
    ) -> limit::ShownOutput {
        limit::captured(
            output,
            limit,
            &self.shared.toolset,
            self.spill.as_ref(),
            call_id,
        )
    }
}
