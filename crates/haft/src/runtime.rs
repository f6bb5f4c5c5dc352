//! The runtime: the path of every call, top to bottom. ARCHITECTURE.md shows it as a list.

mod admit;
mod approve;
mod build;
mod call;
mod changes;
pub(crate) mod clock;
mod conclude;
mod end;
pub(crate) mod exceptions;
mod external_tools;
mod files;
mod form;
pub(crate) mod hidden_paths;
mod inspect;
mod memory_files;
mod narrow;
pub(crate) mod network;
mod pictures;
mod recording;
mod review;
mod sandbox_prompt;
mod saved_output;
mod second_look;
mod session;
mod sibling;
#[cfg(test)]
mod tests;
mod undeclared;

pub use admit::Admitted;
pub use approve::{ApprovalAnswer, Approve, Approver, Explained, OwnRules, Question, Refused};
pub use build::{BuildError, Builder, Folders, Listed};
pub use call::Call;
pub(crate) use call::OuterCall;
pub use changes::Changes;
pub use files::{Backing, Disk, Naming};
pub use form::{Filled, Form};
pub use hidden_paths::PromptFiles;
pub use memory_files::{MemoryFiles, MemoryMark};
pub use narrow::Narrow;
pub(crate) use recording::Recording;
pub use review::Review;
pub(crate) use session::Session;
pub use sibling::Sibling;

use crate::context::Context;
use crate::event::{Event, EventKind};
use crate::journal::Journal;
use crate::queue::Position;
use crate::registry::{Entry, ToolOrigin};
use crate::update::UpdateSink;
use crate::{Error, PreparedCall, Reply, limit};
use admit::{Admission, AnswerDetail, NotAdmitted};
use clock::Clock;
use conclude::{Ended, HowEnded};
use exceptions::Exceptions;
use futures::{FutureExt, Stream, StreamExt};
use haft_ops::backend::Recorded;
use haft_ops::{Access, Backend, FilePath};
use network::CallNetwork;
use second_look::Asks;
use serde_json::Value;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;

/// Extra time after its deadline in which a tool may still reply by itself. After that it
/// is dropped and the runtime replies for it.
const GRACE: Duration = Duration::from_millis(1500);

/// Maximum length of a refusal's reason in an event, in characters.
const MAX_REASON_CHARS: usize = 4_000;

/// A session: one toolset, the tools added to it, and everything its calls share. Cheap to
/// clone; clones are the same session.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) session: Arc<Session>,
}

/// Facts about a running call that its tool uses through the context.
struct Running<'a> {
    clock: &'a Clock,
    position: &'a Position,
    /// Paths that the policy has checked.
    paths: Arc<[(FilePath, Access)]>,
    recording: Option<Recording>,
    exceptions: Exceptions,
    network: &'a Arc<CallNetwork>,
}

impl Runtime {
    /// Returns a builder with default settings.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Calls a tool and waits for its reply. A failure is a reply too.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.run(Call::new(tool, arguments)).await
    }

    /// Makes one call and returns exactly one reply, whatever happens.
    pub async fn run(&self, call: Call) -> Reply {
        let admitted = self.admit(call).await;
        self.finish(admitted).await
    }

    /// Makes several calls, as many at a time as the session allows, and returns their
    /// replies in the order of the calls.
    pub async fn run_all(&self, calls: Vec<Call>) -> Vec<Reply> {
        let mut replies: Vec<(usize, Reply)> = self.run_each(calls).await.collect().await;
        replies.sort_by_key(|(number, _)| *number);
        replies.into_iter().map(|(_, reply)| reply).collect()
    }

    /// Makes several calls and yields each reply when it is ready, with the index of its
    /// call.
    pub async fn run_each(&self, calls: Vec<Call>) -> impl Stream<Item = (usize, Reply)> + Send {
        let calls = self.admit_all(calls).await;
        self.finish_each(calls)
    }

    /// Makes admitted calls, as many at a time as the session allows, and yields each reply
    /// when it is ready, with the index of its call.
    pub fn finish_each(
        &self,
        calls: Vec<Admitted>,
    ) -> impl Stream<Item = (usize, Reply)> + Send + use<> {
        let concurrency = self.session.shared.concurrency;
        let runtime = self.clone();
        futures::stream::iter(calls.into_iter().enumerate())
            .map(move |(number, admitted)| {
                let runtime = runtime.clone();
                async move { (number, runtime.finish(admitted).await) }
            })
            .buffer_unordered(concurrency)
    }

    /// Makes an admitted call: asks the user if that is needed, waits for the call's turn,
    /// records the intent, runs the tool, truncates the reply and records the outcome.
    pub async fn finish(&self, admitted: Admitted) -> Reply {
        let Admitted {
            call,
            admission,
            mut journal,
        } = admitted;
        let made = match admission {
            Ok(admission) => self.make(&call, admission, &mut journal).await,
            Err(NotAdmitted::Refused(error)) => Err(error),
            Err(NotAdmitted::Replaced(reply)) => Ok(Ended::replaced(reply)),
        };
        let ended = made.unwrap_or_else(|error| self.refused(&call, &error));
        self.conclude(&call, journal, ended).await
    }

    /// Everything up to the reply. An error means that the tool did not run. `journal` is
    /// the one that has the intent.
    async fn make(
        &self,
        call: &Call,
        admission: Admission,
        journal: &mut Option<Arc<dyn Journal>>,
    ) -> Result<Ended, Error> {
        let session = &self.session;
        let (admission, answered) = self.approved(call, admission).await?;
        tokio::select! {
            () = admission.ticket.turn() => {}
            () = call.cancel.cancelled() => return Err(Error::Cancelled),
        }
        call.run_hook().await.map_err(Error::Fault)?;
        if let (None, Some(own)) = (&journal, &session.journal) {
            let recorded = own.intents(vec![admission.intent(call)]).await;
            recorded.map_err(|error| {
                let reason = format!("the call could not be recorded, so it was not made: {error}");
                Error::Fault(reason)
            })?;
            *journal = Some(Arc::clone(own));
        }
        let Admission {
            entry,
            prepared,
            arguments,
            repairs,
            ticket,
            paths,
            question: _,
            review,
            exceptions,
        } = admission;
        let access = exceptions.detail();
        let limit = entry.tool.limit(session.shared.timeout);
        let outer = self.outer_call(call).map(|outer| outer.clock.clone());
        let clock = Clock::new(limit, outer);
        self.emit(call, || EventKind::ToolStart {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: Value::clone(&arguments),
        });
        // The tool may now own them without a copy.
        drop(arguments);

        let recording = self.begin_recording(call, &entry, review);
        let network = CallNetwork::new(self, call, &clock, &exceptions.hosts, recording.as_ref());
        let running = Running {
            clock: &clock,
            position: ticket.position(),
            paths,
            recording: recording.clone(),
            network: &network,
            exceptions,
        };
        let mut reply = match self.execute(call, &entry, prepared, running).await {
            Ok(reply) => reply,
            Err(error) => self.failure(&error),
        };
        network.end();
        reply = network.details(reply);
        if entry.origin == ToolOrigin::Added {
            pictures::check(&mut reply, &call.cancel).await;
        }
        if let Some(access) = access {
            reply.details.insert("access".to_owned(), access);
        }
        reply = match answered {
            Some(AnswerDetail::ChangedArguments(arguments)) => {
                reply.detail("changed_arguments", arguments)
            }
            Some(AnswerDetail::SavedRules(saved)) => approve::about_saved_rules(reply, saved),
            None => reply,
        };
        let ignored: Vec<&str> = repairs.iter().filter_map(crate::Repair::ignored).collect();
        reply = reply.ignored(&ignored);
        if !repairs.is_empty() {
            reply.details.insert(
                "repairs".to_owned(),
                serde_json::to_value(&repairs).unwrap_or_default(),
            );
        }
        tracing::debug!(
            call = call.id,
            tool = call.tool,
            is_error = reply.is_error,
            took = ?clock.ran(),
            "called"
        );
        let cut = limit::apply(
            &mut reply,
            &session.shared.toolset,
            session.spill.as_ref(),
            &call.id,
        );
        // Tools that truncate by themselves report it in the details.
        let is_truncated = cut || reply.details.get("truncated") == Some(&Value::Bool(true));
        let duration = clock.ran();
        let how = HowEnded::Made {
            duration,
            is_truncated,
        };
        Ok(Ended {
            reply: self.end_recording(call, recording, reply).await,
            how,
            ticket: Some(ticket),
        })
    }

    /// Runs the tool in its own task: a panic ends there, and a tool that never yields
    /// cannot keep the runtime from replying.
    async fn execute(
        &self,
        call: &Call,
        entry: &Entry,
        prepared: Box<dyn PreparedCall>,
        running: Running<'_>,
    ) -> Result<Reply, Error> {
        let clock = running.clock;
        let stop = call.cancel.child_token();
        // Cancels the tool however this function ends, even if it is dropped.
        let _stopping = stop.clone().drop_guard();
        let recording = running.recording;
        let interrupted = recording.clone();
        let recorded = recording.as_ref().map(|recording| {
            let backend = Arc::clone(&self.session.backend);
            Arc::new(Recorded::new(backend, recording.recorder().clone())) as Arc<dyn Backend>
        });
        let cx = Context {
            backend: recorded.unwrap_or_else(|| Arc::clone(&self.session.backend)),
            recording,
            call_id: call.id.as_str().into(),
            session: Arc::clone(&self.session),
            cancel: stop.clone(),
            clock: clock.clone(),
            position: running.position.clone(),
            effect: entry.tool.effect(),
            answer: call.answer_within.clone(),
            approver: call.approver.clone(),
            on_event: call.on_event.clone(),
            updates: self.updates(call),
            network: Arc::clone(running.network),
            allowed: running.paths,
            within: call.within.iter().chain([&call.tool]).cloned().collect(),
            exceptions: running.exceptions,
            can_request: self.offers_exceptions(entry, self.asks(call) == Asks::User),
        };
        let watching = entry.tool.outlives_calls().then(|| cx.clone());
        let mut work = AssertUnwindSafe(prepared.run(cx)).catch_unwind();
        // A tool of the toolset that finishes without waiting ends here, without the cost
        // of a task and a timer. Other tools might never return from the poll.
        if entry.origin == ToolOrigin::Toolset
            && let Poll::Ready(ended) = futures::poll!(&mut work)
        {
            return ended.unwrap_or_else(|panic| Err(panicked(call, &*panic)));
        }
        let over = clock.over(GRACE);
        let cancelled = async {
            call.cancel.cancelled().await;
            // A tool that watches its token may still reply with partial results.
            tokio::time::sleep(GRACE).await;
        };
        let only_waits = entry.tool.only_waits();
        let ended = async {
            if only_waits {
                return work
                    .await
                    .unwrap_or_else(|panic| Err(panicked(call, &*panic)));
            }
            let mut task = AbortOnDrop(tokio::spawn(work));
            match (&mut task.0).await {
                Ok(ended) => ended.unwrap_or_else(|panic| Err(panicked(call, &*panic))),
                Err(_) => Err(Error::Cancelled),
            }
        };
        let outcome = tokio::select! {
            ended = ended => ended,
            () = over => Err(self.out_of_time(clock)),
            () = cancelled => Err(Error::Cancelled),
        };
        if let (Some(recording), Err(Error::TimedOut { .. } | Error::Cancelled)) =
            (&interrupted, &outcome)
        {
            recording.interrupt();
        }
        let outcome = self.explained(entry.tool.installer(), outcome);
        match watching {
            Some(cx) => cx.note_protected_changes(outcome).await,
            None => outcome,
        }
    }

    /// Returns the failure of a call that did not finish within its limit.
    fn out_of_time(&self, clock: &Clock) -> Error {
        let after = clock.limit().unwrap_or_default();
        match self.session.shared.timeout == Some(after) {
            true => Error::session_limit(after),
            false => Error::TimedOut { after },
        }
    }

    fn updates(&self, call: &Call) -> UpdateSink {
        let (runtime, call) = (self.clone(), call.clone());
        Arc::new(move |update| {
            if let Some(listener) = &call.on_update {
                listener(update);
            }
            if update.content.is_empty() {
                return;
            }
            runtime.emit(&call, || EventKind::ToolUpdate {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                content: update.content.to_vec(),
            });
        })
    }

    pub(crate) fn failure(&self, error: &Error) -> Reply {
        if let Error::Detailed { error, details } = error {
            let mut reply = self.failure(error);
            reply.details.extend(details.clone());
            return reply;
        }
        let mut reply = (self.session.shared.toolset.failure)(error, &self.offered());
        reply.is_error = true;
        reply.is_pending = matches!(error, Error::Waiting { .. });
        reply
    }

    fn unknown_tool(&self, name: &str) -> Error {
        let names = self.session.tools.names();
        let similar = haft_ops::text::spelling::closest(name, names.iter().cloned(), 3);
        Error::UnknownTool {
            name: name.to_owned(),
            similar,
            known: names,
        }
    }

    /// Gives the call an id if it has none.
    fn identified(&self, mut call: Call) -> Call {
        if call.id.is_empty() {
            let number = self.session.calls.fetch_add(1, Ordering::Relaxed) + 1;
            call.id = format!("call-{number}");
        }
        call
    }

    fn is_watched(&self, call: &Call) -> bool {
        call.on_event.is_some() || self.session.shared.watch.is_some()
    }

    fn emit(&self, call: &Call, kind: impl FnOnce() -> EventKind) {
        if !self.is_watched(call) {
            return;
        }
        let kind = kind();
        if let Some(listener) = &call.on_event {
            listener(&kind);
        }
        if let Some(watch) = &self.session.shared.watch {
            let seq = self.session.events.fetch_add(1, Ordering::Relaxed) + 1;
            let time = haft_ops::text::moment::to_millis(SystemTime::now());
            watch(&Event {
                kind,
                session: self.session.id.clone(),
                seq,
                time,
            });
        }
    }
}

fn panicked(call: &Call, panic: &(dyn Any + Send)) -> Error {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Error::Panicked {
        tool: call.tool.clone(),
        message,
    }
}

/// A task that is aborted together with the call it belongs to.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
