//! The context that a tool gets while it runs.

use crate::commands::{self, Live, PACE};
use crate::event::Listener;
use crate::external::installer::Installer;
use crate::limit::{self, Beginning, ShownOutput};
use crate::queue::Position;
use crate::runtime::clock::Clock;
use crate::runtime::exceptions::Exceptions;
use crate::runtime::hidden_paths::Known;
use crate::runtime::network::CallNetwork;
use crate::runtime::{
    ApprovalAnswer, Approver, Call, Filled, Narrow, OuterCall, Recording, Runtime, Session,
};
use crate::state::State;
use crate::update::UpdateSink;
use crate::{Access, Content, Effect, Error, Offered, Progress, Reply, Resource, Update};
use futures::FutureExt;
use haft_ops::exec::{self, Done, Exec, ExecContext};
use haft_ops::executor::sandbox::Request;
use haft_ops::executor::{Captured, Keep, When, clean_path};
use haft_ops::messenger::Messenger;
use haft_ops::processes::{Processes, Status};
use haft_ops::text::limit::{Keep as Cut, Limit};
use haft_ops::{Backend, FilePath, Scope};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Maximum nesting depth of calls.
const MAX_DEPTH: usize = 8;

/// The environment of one call. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) call_id: Arc<str>,
    pub(crate) session: Arc<Session>,
    /// The session's files; changes through it are recorded.
    pub(crate) backend: Arc<dyn Backend>,
    /// Records what the call changes, if it may change something.
    pub(crate) recording: Option<Recording>,
    pub(crate) cancel: CancellationToken,
    pub(crate) clock: Clock,
    /// Position of the call in the queue for files.
    pub(crate) position: Position,
    /// The most that the tool can do.
    pub(crate) effect: Effect,
    /// The user's earlier answer, if the call had to wait for approval.
    pub(crate) answer: Option<ApprovalAnswer>,
    /// Approver of this call, if it differs from the session's.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) on_event: Option<Listener>,
    pub(crate) updates: UpdateSink,
    /// Judges the connections of the call's commands.
    pub(crate) network: Arc<CallNetwork>,
    /// Paths that the policy has checked.
    pub(crate) allowed: Arc<[(FilePath, Access)]>,
    /// Names of the tools being called, outermost first; the last one is this tool.
    pub(crate) within: Arc<[String]>,
    /// Access of its commands beyond the sandbox.
    pub(crate) exceptions: Exceptions,
    /// Whether the model can request such access.
    pub(crate) can_request: bool,
}

impl Context {
    /// Returns the id of this call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the values that tools store between calls of this session.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.session.state
    }

    /// Returns the messenger, which sends messages to channels.
    #[must_use]
    pub fn messenger(&self) -> &dyn Messenger {
        &*self.session.shared.messenger
    }

    /// Returns the backend, where files live.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Returns the style in which the toolset writes paths.
    pub(crate) fn paths(&self) -> crate::toolset::Paths {
        self.session.shared.toolset.paths
    }

    /// Returns whether edits repair a text that is not in the file exactly.
    pub(crate) fn edit_repairs(&self) -> haft_ops::edit::Repairs {
        self.session.shared.edit_repairs
    }

    /// Returns the scope: the roots and path rules of this session.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.session.scope
    }

    /// Checks a path written in the style of the toolset. A path that the tool did not
    /// declare as one of its resources is checked against the rules now, and waits until
    /// earlier calls that write it have ended.
    ///
    /// # Errors
    /// When the scope or a rule does not allow it. A rule that asks counts as a no, because
    /// the call is already running.
    pub async fn resolve(&self, given: &str, access: Access) -> Result<FilePath, Error> {
        let declared =
            |(path, wanted): &&(FilePath, Access)| path.given() == given && *wanted == access;
        let path = match self.allowed.iter().find(declared) {
            Some((path, _)) => path.clone(),
            None => self.undeclared(given, access).await?,
        };
        let known = Known::Approved(given);
        Ok(self.session.judged(self.tool(), path, known))
    }

    async fn undeclared(&self, given: &str, access: Access) -> Result<FilePath, Error> {
        let session = &self.session;
        let path = session
            .shared
            .toolset
            .paths
            .resolve(&session.scope, given, access)?;
        let paths = [(path, access)];
        let resource = Resource::Path(given.to_owned(), access);
        self.may(resource, &paths)?;
        let [(path, _)] = paths;
        let _paused = self.clock.pause();
        tokio::select! {
            () = self.position.join(&path, access) => Ok(path),
            () = self.cancel.cancelled() => Err(Error::Cancelled),
        }
    }

    /// Checks a path that the call found, such as the target of a link. Like
    /// [`Context::found`], it neither waits nor refuses what a rule closes.
    pub(crate) fn resolve_found(&self, given: &str) -> Result<FilePath, Error> {
        let session = &self.session;
        let path = session
            .shared
            .toolset
            .paths
            .resolve(&session.scope, given, Access::Read)?;
        Ok(session.judged(self.tool(), path, Known::Given(given)))
    }

    /// Applies the policy to a path that the arguments did not name, such as a search
    /// result, and to everything below it. [`FilePath::exclusion`] tells whether it
    /// may be read.
    #[must_use]
    pub fn found(&self, path: FilePath) -> FilePath {
        self.session.judged(self.tool(), path, Known::Found)
    }

    /// Returns the name of the tool being called.
    fn tool(&self) -> &str {
        self.within.last().map_or("", String::as_str)
    }

    /// Returns a path as the model wrote it, without decoration such as a leading `@`.
    #[must_use]
    pub fn named(&self, given: &str) -> String {
        self.session
            .shared
            .toolset
            .paths
            .named(&self.session.scope, given)
    }

    /// Formats a path for the model: relative to the work folder, absolute outside it.
    /// Control characters are escaped, so that a name stays on one line.
    #[must_use]
    pub fn shown(&self, real: &Path) -> String {
        self.session.shown(real)
    }

    /// Returns the token that is cancelled when the caller no longer waits for this call.
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns the time to stop and reply with partial results: after `own`, or at the
    /// deadline of the call if that is earlier.
    #[must_use]
    pub fn deadline(&self, own: Duration) -> Instant {
        let own = Instant::now() + own;
        let deadline = self.clock.deadline();
        deadline.map_or(own, |deadline| deadline.min(own))
    }

    /// Returns `own`, or the time left until the deadline of the call if that is shorter.
    #[must_use]
    pub fn time_left(&self, own: Duration) -> Duration {
        self.clock.deadline().map_or(own, |deadline| {
            own.min(deadline.saturating_duration_since(Instant::now()))
        })
    }

    /// Returns the time limit of this call, if it has one.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.clock.limit()
    }

    /// Waits until this call reaches its time limit. Time spent waiting for the user does
    /// not count.
    pub async fn time_is_up(&self) {
        self.clock.over(Duration::ZERO).await;
    }

    /// Runs work that has its own time limit, such as starting a program that later calls
    /// use too. It does not count against the time limit of this call.
    pub async fn off_the_clock<T>(&self, work: impl Future<Output = T>) -> T {
        let _paused = self.clock.pause();
        work.await
    }

    /// Runs a command in the session's environment and sandbox, and shows its output while
    /// it runs.
    ///
    /// # Errors
    /// When the command cannot be started. A command that fails is not an error.
    pub async fn run(&self, request: Exec) -> Result<Done, Error> {
        let exec_context = self.session.exec_context()?;
        let exec_context = self
            .session
            .with_denied_paths_hidden(self.tool(), exec_context);
        let exec_context = self.exceptions.apply(&self.session, exec_context);
        let exec_context = self.recorded(exec_context);
        self.run_in(exec_context, request).await
    }

    /// Whether the user decides about what the call changes after it has ended.
    pub(crate) fn is_reviewed(&self) -> bool {
        let recording = self.recording.as_ref();
        recording.is_some_and(Recording::is_reviewed)
    }

    /// Whether commands have no network, because a rule puts the call under review.
    pub(crate) fn is_offline(&self) -> bool {
        let recording = self.recording.as_ref();
        recording.is_some_and(Recording::is_offline)
    }

    /// Records what commands change.
    fn recorded(&self, exec_context: ExecContext) -> ExecContext {
        match &self.recording {
            Some(recording) => recording.exec_context(&self.session, exec_context),
            None => exec_context,
        }
    }

    async fn run_in(
        &self,
        mut exec_context: ExecContext,
        mut request: Exec,
    ) -> Result<Done, Error> {
        let live = Live::default();
        let watch = |_, bytes: &[u8]| live.push(bytes);
        let admitted = self.network.admit(&mut exec_context, &mut request);
        let stop = self.cancel.child_token();
        let mut run = std::pin::pin!(exec::run(&exec_context, request, &watch, &stop));
        let mut stopped = std::pin::pin!(admitted.must_stop().fuse());
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + PACE, PACE);
        loop {
            tokio::select! {
                biased;
                done = &mut run => {
                    let done = admitted.ended(done)?;
                    if let Some(recording) = &self.recording {
                        recording.command_ended(&done.finished);
                    }
                    if let Some(spill) = &self.session.spill {
                        spill.count(&done.finished.output);
                        spill.count(&done.finished.error);
                    }
                    return Ok(done);
                }
                () = &mut stopped => stop.cancel(),
                _ = tick.tick() => {
                    if let Some(text) = live.take() {
                        self.update(admitted.without_pass(text));
                    }
                }
            }
        }
    }

    /// Runs a program that is a tool: in the sandbox for plugins, with the given
    /// environment. `installer` is who installed it, `name` its name.
    pub(crate) async fn run_program(
        &self,
        (installer, name): (Installer, String),
        request: Exec,
        mut environment: Vec<(OsString, OsString)>,
    ) -> Result<Done, Error> {
        let programs = self.session.programs.as_ref().ok_or_else(|| {
            Error::failed("cannot run programs: the session has no way to start them (in Rust: `Builder::commands`)")
        })?;
        clean_path(&mut environment, &programs.writable(installer));
        let exec_context = ExecContext {
            environment,
            remote_folder: None,
            ..programs.around(installer, &name)
        };
        let exec_context = self
            .session
            .with_denied_paths_hidden(self.tool(), &exec_context);
        let exec_context = self.recorded(exec_context);
        self.run_in(exec_context, request).await
    }

    /// Adds a note for each protected path changed by a program that keeps running between
    /// calls. A failed call may have changed some too.
    ///
    /// # Errors
    /// The given error, if nothing was changed.
    pub(crate) async fn note_protected_changes(
        &self,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let Some(programs) = &self.session.programs else {
            return outcome;
        };
        let findings = programs.own.noticed().await;
        if findings.is_empty() {
            return outcome;
        }
        let mut reply = outcome.unwrap_or_else(|error| self.runtime().failure(&error));
        let text = commands::findings(&findings, &self.session).join("\n");
        reply.content.push(Content::Text { text });
        Ok(reply)
    }

    /// Starts a background process in the sandbox for commands. It ends with the session.
    /// Its output always goes to the process table, whatever the request says.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start(&self, title: String, request: Exec) -> Result<Status, Error> {
        let processes = self.processes()?;
        let exec_context = self.session.exec_context()?;
        let exec_context = self
            .session
            .with_denied_paths_hidden(self.tool(), exec_context);
        let exec_context = self.exceptions.apply(&self.session, exec_context);
        let mut exec_context = self.recorded(exec_context);
        self.network.admit_process(&mut exec_context, &request);
        let (launch, after) = exec::launch(&exec_context, request).await?;
        let status = processes.start(title, launch, after).await?;
        if let Some(recording) = &self.recording {
            recording.process_started(&status.id);
        }
        Ok(status)
    }

    /// Returns the background processes of this session.
    ///
    /// # Errors
    /// When this session cannot run commands.
    pub fn processes(&self) -> Result<&Processes, Error> {
        self.session.processes()
    }

    /// Returns how much output of a command to keep if it will be truncated to `limit`:
    /// enough for that in memory, and all of it on disk if there is more.
    #[must_use]
    pub fn keep(&self, limit: &Limit) -> Keep {
        let (head, tail) = limit::ends_in_memory(limit);
        self.keep_ends(head, tail)
    }

    /// Same as [`Context::keep`], with the given number of bytes from the start and end of
    /// each stream.
    #[must_use]
    pub fn keep_ends(&self, head: usize, tail: usize) -> Keep {
        let spill = self.session.spill.as_ref();
        Keep {
            head,
            tail,
            disk: spill.map(|spill| spill.disk(&self.call_id, When::Overflow)),
        }
    }

    /// Returns the limit for the output of programs: that of any reply. If only one end is
    /// kept, it is the last one, where programs report their result.
    pub(crate) fn program_limit(&self) -> Limit {
        let limit = self.session.shared.toolset.limit;
        Limit {
            keep: match limit.keep {
                Cut::Head | Cut::Tail => Cut::Tail,
                Cut::Middle => Cut::Middle,
            },
            ..limit
        }
    }

    /// Returns the text that every failure starts with in this toolset. Empty if there is
    /// no common start, or if failures are not plain text.
    pub(crate) fn failure_prefix(&self) -> &'static str {
        self.session.shared.toolset.replies.failure_prefix()
    }

    /// Returns the part of a command's output that the model gets.
    pub(crate) fn shown_output(&self, output: &Captured, limit: &Limit) -> ShownOutput {
        self.session.shown_output(output, limit, &self.call_id)
    }

    /// Returns the start of one output stream of a command.
    pub(crate) fn beginning(&self, output: &Captured, most: usize, name: &str) -> Beginning {
        let name = format!("{}_{name}", self.call_id);
        limit::beginning(output, most, self.session.spill.as_ref(), &name)
    }

    /// Returns the path that commands use for a saved output, if file tools use a different
    /// one.
    pub(crate) fn host_path(&self, output: &str) -> Option<String> {
        let file = self.session.spill.as_ref()?.file_of(Path::new(output))?;
        Some(file.to_string_lossy().into_owned())
    }

    /// Saves the full text of a truncated reply and returns its path.
    #[must_use]
    pub fn keep_text(&self, text: &str) -> Option<String> {
        let stored = self.session.spill.as_ref()?.keep(&self.call_id, text);
        Some(stored.ok()?.path.to_string_lossy().into_owned())
    }

    /// Saves bytes next to a reply under the given name and returns their path.
    pub(crate) fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let name: String = name.chars().filter(plain).take(32).collect();
        let name = format!("{}_{name}", self.call_id);
        let stored = self.session.spill.as_ref()?.keep_bytes(&name, bytes);
        Some(stored.ok()?.path.to_string_lossy().into_owned())
    }

    /// Returns the sandbox of commands, if they are sandboxed.
    pub(crate) fn sandbox_request(&self) -> Option<&Request> {
        let sandbox = self.session.exec_context.as_ref()?.sandbox.as_ref()?;
        Some(sandbox.request())
    }

    /// Whether commands can open network sockets.
    pub(crate) fn commands_have_sockets(&self) -> bool {
        let exec_context = self.session.exec_context.as_ref();
        let sandbox = exec_context.and_then(|exec_context| exec_context.sandbox.as_ref());
        sandbox.is_none_or(|sandbox| sandbox.has_sockets())
    }

    /// Returns the sandbox of programs that are tools, if they are sandboxed.
    pub(crate) fn programs_request(&self, installer: Installer) -> Option<&Request> {
        let programs = self.session.programs.as_ref()?;
        let sandbox = programs.of(installer).sandbox.as_ref()?;
        Some(sandbox.request())
    }

    /// Whether the policy allows this call to use a resource that its arguments did not
    /// name, such as the target of a redirect. False if the policy would ask: the model can
    /// make a separate call for it.
    #[must_use]
    pub fn allows(&self, resource: Resource) -> bool {
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        runtime.would_allow(self.tool(), resource, self.is_reviewed())
    }

    /// Shows partial results while the call runs.
    pub fn update(&self, reply: impl Into<Reply>) {
        (self.updates)(Update {
            content: reply.into().content(),
            progress: None,
        });
    }

    /// Shows how much of the work is done, with a text or an empty one.
    pub fn progress(&self, progress: Progress, text: impl Into<Reply>) {
        let reply = text.into();
        let is_empty = reply.text().is_empty();
        (self.updates)(Update {
            content: if is_empty { &[] } else { reply.content() },
            progress: Some(progress),
        });
    }

    /// Asks the user before the call does something. Waiting for the answer does not count
    /// against the call's time limit. Returns false if there is no user to ask.
    ///
    /// # Errors
    /// [`Error::Waiting`] if the user can only answer later: return it with `?`. The call
    /// is then made again from the start, so ask before doing anything.
    pub async fn confirm(&self, question: impl Into<String>) -> Result<bool, Error> {
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        let _paused = self.clock.pause();
        runtime.confirm(self, question.into()).await
    }

    /// Asks the user for data that only they know. `schema` is the JSON Schema of a flat
    /// object with the fields of the form. Waiting for the answer does not count against
    /// the call's time limit.
    pub async fn fill(&self, message: impl Into<String>, schema: Value) -> Filled {
        let _paused = self.clock.pause();
        self.runtime().fill(self, message.into(), schema).await
    }

    /// Returns the user's answer, if this call had to wait for it.
    #[must_use]
    pub fn answer(&self) -> Option<&ApprovalAnswer> {
        self.answer.as_ref()
    }

    /// Checks whether the policy allows a resource that the tool did not declare. A rule
    /// that asks about every call of the tool has been answered already; any other question
    /// counts as a no, because the call is already running.
    pub(crate) fn may(
        &self,
        resource: Resource,
        paths: &[(FilePath, Access)],
    ) -> Result<(), Error> {
        let is_reviewed = self.is_reviewed();
        self.runtime()
            .may(self.tool(), self.effect, resource, paths, is_reviewed)
    }

    /// Returns the session of this call, for making further calls.
    #[must_use]
    pub fn runtime(&self) -> Runtime {
        Runtime {
            session: Arc::clone(&self.session),
        }
    }

    /// Creates a session inside this one, in which this call does its work. While the user
    /// is asked about a call there, the clock of this call stops too.
    #[must_use]
    pub fn narrowed(&self, narrow: Narrow) -> Runtime {
        self.runtime().narrowed_within(narrow, Some(self.outer()))
    }

    /// Returns this call as the outer one of the calls that it makes.
    fn outer(&self) -> OuterCall {
        OuterCall {
            clock: self.clock.clone(),
            position: self.position.clone(),
            recording: self.recording.as_ref().map(Recording::of_inner_call),
        }
    }

    /// Calls another tool of this session on behalf of this call, under the same policy.
    /// The inner call has its own entry in the journal, what it changes belongs to this call,
    /// and it is cancelled with this one.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Reply {
        if self.within.len() >= MAX_DEPTH || self.within.iter().any(|name| name == tool) {
            return Reply::error(format!(
                "cannot call {tool} from here: it is already being called, or calls are nested too deeply"
            ));
        }
        let number = self.session.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let mut call = Call::new(tool, arguments)
            .id(format!("{}.{number}", self.call_id))
            .cancel(self.cancel.child_token());
        call.within = self.within.to_vec();
        call.outer = Some(self.outer());
        call.on_event.clone_from(&self.on_event);
        call.approver.clone_from(&self.approver);
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        runtime.run(call).await
    }

    /// Returns the tools that the model can call, for advice that mentions some of them.
    #[must_use]
    pub fn offered(&self) -> Offered {
        Offered::new(self.session.tools.names())
    }

    /// Returns the names of the tools that the model can call.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.session.tools.names()
    }
}
