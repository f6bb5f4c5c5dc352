//! What a tool may use while it runs.

use crate::commands::{self, Live, PACE};
use crate::event::Listener;
use crate::external::standing::Standing;
use crate::limit::{self, Beginning, Said};
use crate::runtime::clock::Clock;
use crate::runtime::closing::Known;
use crate::runtime::{Answer, Approver, Call, Filled, Narrow, Runtime, Session};
use crate::state::State;
use crate::{Access, Content, Effect, Error, Offered, Reply, Resource};
use haft_ops::exec::{self, Done, Exec, Surroundings};
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

/// How deeply calls may be nested.
const DEEPEST: usize = 8;

/// Where updates of a running call go.
pub(crate) type UpdateSink = Arc<dyn Fn(&[Content]) + Send + Sync>;

/// The surroundings of one call. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) call_id: Arc<str>,
    pub(crate) session: Arc<Session>,
    pub(crate) cancel: CancellationToken,
    pub(crate) clock: Clock,
    /// What a person said about the call before.
    pub(crate) answer: Option<Answer>,
    /// Who is asked, if it is not whom the session asks.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) on_event: Option<Listener>,
    pub(crate) updates: UpdateSink,
    /// The paths that the policy has checked.
    pub(crate) allowed: Arc<[(FilePath, Access)]>,
    /// The tools that are being called, the outermost first and this one last.
    pub(crate) within: Arc<[String]>,
}

impl Context {
    /// The id of this call.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// What tools remember between calls of this session.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.session.state
    }

    /// Who sends messages.
    #[must_use]
    pub fn messenger(&self) -> &dyn Messenger {
        &*self.session.messenger
    }

    /// Where files live.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.session.backend
    }

    /// Which files there may be.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.session.scope
    }

    /// Checks a path as the toolset writes paths.
    ///
    /// # Errors
    /// When the scope does not admit it.
    pub fn resolve(&self, given: &str, access: Access) -> Result<FilePath, Error> {
        let checked =
            |(path, wanted): &&(FilePath, Access)| path.given() == given && *wanted == access;
        let session = &self.session;
        let (path, known) = match self.allowed.iter().find(checked) {
            Some((path, _)) => (path.clone(), Known::Approved(given)),
            None => {
                let path = session.paths.resolve(&session.scope, given, access)?;
                (path, Known::Given(given))
            }
        };
        Ok(session.judged(self.tool(), path, known))
    }

    /// A path that this call did not name: the rules are asked about it, and about what
    /// is found from it. [`FilePath::closed`] says whether it may be read.
    #[must_use]
    pub fn found(&self, path: FilePath) -> FilePath {
        self.session.judged(self.tool(), path, Known::Found)
    }

    /// The tool that this is a call of.
    fn tool(&self) -> &str {
        self.within.last().map_or("", String::as_str)
    }

    /// A path as the model gave it, without what it may write around it.
    #[must_use]
    pub fn named(&self, given: &str) -> String {
        self.session.paths.named(&self.session.scope, given)
    }

    /// A path for the model: relative to the work folder, absolute outside it.
    /// Control characters are made visible, so that a name stays on its line.
    #[must_use]
    pub fn shown(&self, real: &Path) -> String {
        self.session.shown(real)
    }

    /// Cancelled when nobody waits for this call any more.
    #[must_use]
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// When to stop with what there is: after `own`, or earlier if the session
    /// says so.
    #[must_use]
    pub fn deadline(&self, own: Duration) -> Instant {
        let own = Instant::now() + own;
        let deadline = self.clock.deadline();
        deadline.map_or(own, |deadline| deadline.min(own))
    }

    /// How long `own` may last before the session says that it is over.
    #[must_use]
    pub fn time_left(&self, own: Duration) -> Duration {
        self.clock.deadline().map_or(own, |deadline| {
            own.min(deadline.saturating_duration_since(Instant::now()))
        })
    }

    /// The time limit of this call, if it has one.
    #[must_use]
    pub fn limit(&self) -> Option<Duration> {
        self.clock.limit()
    }

    /// Waits until the limit of this call is reached. Time in which a person is asked
    /// does not count.
    pub async fn time_is_up(&self) {
        self.clock.over(Duration::ZERO).await;
    }

    /// Does something that has a time limit of its own, such as starting a program that
    /// stays for later calls. It takes nothing from the time of this call.
    pub async fn off_the_clock<T>(&self, work: impl Future<Output = T>) -> T {
        let _paused = self.clock.pause();
        work.await
    }

    /// Runs a command as the session runs commands, and shows what it says while
    /// it does.
    ///
    /// # Errors
    /// When it did not begin. How it ended is never an error.
    pub async fn run(&self, request: Exec) -> Result<Done, Error> {
        let surroundings = self.session.surroundings()?;
        let surroundings = self.session.closed_to(self.tool(), surroundings);
        self.run_in(&surroundings, request).await
    }

    async fn run_in(&self, surroundings: &Surroundings, request: Exec) -> Result<Done, Error> {
        let live = Live::default();
        let watch = |_, bytes: &[u8]| live.push(bytes);
        let mut run = std::pin::pin!(exec::run(surroundings, request, &watch, &self.cancel));
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + PACE, PACE);
        loop {
            tokio::select! {
                biased;
                done = &mut run => {
                    let done = done?;
                    if let Some(spill) = &self.session.spill {
                        spill.count(&done.finished.output);
                        spill.count(&done.finished.error);
                    }
                    return Ok(done);
                }
                _ = tick.tick() => {
                    if let Some(text) = live.take() {
                        self.update(text);
                    }
                }
            }
        }
    }

    /// Runs a program that is a tool, by whose word it is and what it is called:
    /// confined as plugins are, with an environment of its own.
    pub(crate) async fn run_program(
        &self,
        (standing, name): (Standing, String),
        request: Exec,
        mut environment: Vec<(OsString, OsString)>,
    ) -> Result<Done, Error> {
        let programs = self.session.programs.as_ref().ok_or_else(|| {
            Error::failed("programs cannot be run: nobody has said how to start them")
        })?;
        clean_path(&mut environment, &programs.writable(standing));
        let surroundings = Surroundings {
            environment,
            elsewhere: None,
            ..programs.around(standing, &name)
        };
        let surroundings = self.session.closed_to(self.tool(), &surroundings);
        self.run_in(&surroundings, request).await
    }

    /// Adds a note on each protected place that was touched by a program that goes on
    /// between calls. A call that failed may have touched some too.
    ///
    /// # Errors
    /// The error that came in, if nothing was touched.
    pub(crate) async fn watched(&self, outcome: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(programs) = &self.session.programs else {
            return outcome;
        };
        let touched = programs.own.noticed().await;
        if touched.is_empty() {
            return outcome;
        }
        let mut reply = outcome.unwrap_or_else(|error| self.runtime().failure(&error));
        let text = commands::touched(&touched, &self.session).join("\n");
        reply.content.push(Content::Text { text });
        Ok(reply)
    }

    /// Starts a process that goes on beside the calls of this session and ends
    /// with it, confined as its commands are. What it says is kept by the table,
    /// whatever the request says of that.
    ///
    /// # Errors
    /// When it did not begin.
    pub async fn start(&self, title: String, request: Exec) -> Result<Status, Error> {
        let processes = self.processes()?;
        let surroundings = self.session.surroundings()?;
        let surroundings = self.session.closed_to(self.tool(), surroundings);
        let (launch, after) = exec::launch(&surroundings, request).await?;
        Ok(processes.start(title, launch, after).await?)
    }

    /// The processes that go on beside the calls of this session.
    ///
    /// # Errors
    /// When this session runs no commands.
    pub fn processes(&self) -> Result<&Processes, Error> {
        self.session.processes()
    }

    /// What is kept of a command's output that will be cut to `limit`: enough for
    /// that in memory, and the whole of it on the disk once that is not all.
    #[must_use]
    pub fn keep(&self, limit: &Limit) -> Keep {
        let (head, tail) = limit::held(limit);
        self.keep_ends(head, tail)
    }

    /// The same with so many bytes of the beginning and the end of each stream.
    #[must_use]
    pub fn keep_ends(&self, head: usize, tail: usize) -> Keep {
        let spill = self.session.spill.as_ref();
        Keep {
            head,
            tail,
            disk: spill.map(|spill| spill.disk(&self.call_id, When::Overflow)),
        }
    }

    /// How much of what a program says a model gets: as much as of any reply. Where only
    /// one end of it is kept, that is the one where programs say what came of it.
    pub(crate) fn program_limit(&self) -> Limit {
        let limit = self.session.toolset.limit;
        Limit {
            keep: match limit.keep {
                Cut::Head | Cut::Tail => Cut::Tail,
                Cut::Middle => Cut::Middle,
            },
            ..limit
        }
    }

    /// What the text of every failure begins with in this toolset; nothing where it
    /// begins with its own words, or is no plain text.
    pub(crate) fn failure_start(&self) -> String {
        let words = "failed";
        let text = (self.session.toolset.failure)(&Error::failed(words), &Offered::default());
        let text = text.text();
        text.strip_suffix(words).unwrap_or_default().to_owned()
    }

    /// What a model gets of a command's output.
    pub(crate) fn said(&self, output: &Captured, limit: &Limit) -> Said {
        self.session.said(output, limit, &self.call_id)
    }

    /// The beginning of one stream of a command.
    pub(crate) fn beginning(&self, output: &Captured, most: usize, name: &str) -> Beginning {
        let name = format!("{}_{name}", self.call_id);
        limit::beginning(output, most, self.session.spill.as_ref(), &name)
    }

    /// Where commands find a kept output, if it has another name for file tools.
    pub(crate) fn host_path(&self, output: &str) -> Option<String> {
        let file = self.session.spill.as_ref()?.file_of(Path::new(output))?;
        Some(file.to_string_lossy().into_owned())
    }

    /// Keeps a text whole that a reply gives in part, and says where.
    #[must_use]
    pub fn keep_text(&self, text: &str) -> Option<String> {
        let kept = self.session.spill.as_ref()?.keep(&self.call_id, text);
        Some(kept.ok()?.path.to_string_lossy().into_owned())
    }

    /// Keeps bytes beside a reply, under a name of their own, and says where.
    pub(crate) fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let name: String = name.chars().filter(plain).take(32).collect();
        let name = format!("{}_{name}", self.call_id);
        let kept = self.session.spill.as_ref()?.keep_bytes(&name, bytes);
        Some(kept.ok()?.path.to_string_lossy().into_owned())
    }

    /// What confines commands, where something does.
    pub(crate) fn sandbox_request(&self) -> Option<&Request> {
        let sandbox = self.session.surroundings.as_ref()?.sandbox.as_ref()?;
        Some(sandbox.request())
    }

    /// The same for programs that are tools.
    pub(crate) fn programs_request(&self, standing: Standing) -> Option<&Request> {
        let programs = self.session.programs.as_ref()?;
        let sandbox = programs.of(standing).sandbox.as_ref()?;
        Some(sandbox.request())
    }

    /// Whether the rules let this call touch something that it did not name before it
    /// began: a host that another one leads to. What a person would be asked about
    /// is no, for it can be a call of its own.
    #[must_use]
    pub fn allows(&self, resource: Resource) -> bool {
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        runtime.would_allow(self.tool(), resource)
    }

    /// Shows what there is so far, while the call goes on.
    pub fn update(&self, reply: impl Into<Reply>) {
        (self.updates)(reply.into().content());
    }

    /// Asks a person before something that the call is about to do. Time in which
    /// they think is not the call's. Nobody there means no.
    ///
    /// # Errors
    /// [`Error::Waiting`] when they can only say later: pass it on with `?`. The call
    /// is made again then, from its beginning, so ask before anything is done.
    pub async fn confirm(&self, question: impl Into<String>) -> Result<bool, Error> {
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        let _paused = self.clock.pause();
        runtime.confirm(self, question.into()).await
    }

    /// Asks a person for something that only they know: a message, and the JSON
    /// Schema of a flat object with the fields. Time in which they think is not the
    /// call's.
    pub async fn fill(&self, message: impl Into<String>, schema: Value) -> Filled {
        let _paused = self.clock.pause();
        self.runtime().fill(self, message.into(), schema).await
    }

    /// What a person said about this call, when it had to wait for them.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.answer.as_ref()
    }

    /// Whether the rules let this call touch something that its arguments did not name.
    /// What a person has already said yes to, the call as such, is not asked again; any
    /// other question is a no here: the call runs already.
    pub(crate) fn may(
        &self,
        effect: Effect,
        resource: Resource,
        paths: &[(FilePath, Access)],
    ) -> Result<(), Error> {
        self.runtime().may(self.tool(), effect, resource, paths)
    }

    /// The session that this call is part of, to make calls of one's own.
    #[must_use]
    pub fn runtime(&self) -> Runtime {
        Runtime {
            session: Arc::clone(&self.session),
        }
    }

    /// Makes a session within this one in which this call does its work. While a person
    /// is asked about a call there, no time passes for this call either.
    #[must_use]
    pub fn narrowed(&self, narrow: Narrow) -> Runtime {
        self.runtime().narrowed_within(narrow, Some(&self.clock))
    }

    /// Calls another tool of this session on behalf of this call: under the same
    /// policy, with a record of its own, and ended with it.
    pub async fn call_tool(&self, tool: &str, arguments: Value) -> Reply {
        if self.within.len() >= DEEPEST || self.within.iter().any(|name| name == tool) {
            return Reply::error(format!(
                "{tool} cannot be called from here: it is being called already, or the calls are nested too deeply"
            ));
        }
        let number = self.session.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let mut call = Call::new(tool, arguments)
            .id(format!("{}.{number}", self.call_id))
            .cancel(self.cancel.child_token());
        call.within = self.within.to_vec();
        call.clock = Some(self.clock.clone());
        call.on_event.clone_from(&self.on_event);
        call.approver.clone_from(&self.approver);
        let runtime = Runtime {
            session: Arc::clone(&self.session),
        };
        runtime.run(call).await
    }

    /// The tools that a model can call in this session, for advice that names some.
    #[must_use]
    pub fn offered(&self) -> Offered {
        Offered::new(self.session.tools.names())
    }

    /// The names of the tools that a model can call in this session.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        self.session.tools.names()
    }
}
