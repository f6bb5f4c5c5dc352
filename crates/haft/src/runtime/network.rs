//! The connections of a call's commands. Each is judged by the rules and by the hosts that
//! the user opened. If a rule says ask, the user is asked while the connection waits, once
//! for each host and port of a call.

mod ask;
mod notes;
mod programs;

use super::approve::about_saved_rules;
use super::{ApprovalAnswer, Approver, Call, Recording, Runtime, Session};
use crate::event::Listener;
use crate::policy::{self, CommandLine, Connection, ConnectionJudgement, NetworkHost};
use crate::runtime::clock::Clock;
use crate::{Approve, Error, Reply, Verdict};
use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt, Shared};
use haft_ops::exec::network::{HostJudge, HostVerdict, Pass, Refusal};
use haft_ops::exec::{Done, Exec, ExecContext, Sandbox};
use haft_ops::executor::sandbox::Network;
use haft_ops::executor::{Ended, Program};
use notes::{Refusals, RefusedHost, Why};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) use notes::LateRefusals;
pub(crate) use programs::ProgramConnections;

/// Maximum number of questions about connections in a call.
const MAX_QUESTIONS: usize = 32;

/// The user's answer about a connection, which several connections may wait for.
type UserAnswer = Shared<BoxFuture<'static, HostVerdict>>;

/// The connections of one call's commands.
pub(crate) struct CallNetwork {
    /// Not kept alive, because background processes of the session hold this.
    session: Weak<Session>,
    call_id: String,
    tool: String,
    clock: Clock,
    cancel: CancellationToken,
    /// The user's earlier answer, if the call had to wait for one.
    answer: Option<ApprovalAnswer>,
    approver: Option<Arc<dyn Approver>>,
    on_event: Option<Listener>,
    /// Hosts that the user opened for this call.
    granted: Vec<NetworkHost>,
    state: Mutex<State>,
    /// Cancelled when the user can only answer later.
    waits: CancellationToken,
    /// Whether no host is open, because a rule puts the call under review.
    is_closed: bool,
    /// Whether the user may be asked.
    may_ask: bool,
}

#[derive(Default)]
struct State {
    /// The user's answers, by host and port.
    answers: HashMap<(String, u16), UserAnswer>,
    refusals: Refusals,
    /// What became of rules that the user added to their own file.
    saved: Vec<Value>,
    /// The question that the user can only answer later.
    question: Option<String>,
    /// Whether the call has ended.
    is_over: bool,
}

impl CallNetwork {
    pub(super) fn new(
        runtime: &Runtime,
        call: &Call,
        clock: &Clock,
        granted: &[NetworkHost],
        recording: Option<&Recording>,
    ) -> Arc<Self> {
        Arc::new(Self {
            session: Arc::downgrade(&runtime.session),
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            clock: clock.clone(),
            cancel: call.cancel.clone(),
            answer: call.answer_within.clone(),
            approver: call.approver.clone(),
            on_event: call.on_event.clone(),
            granted: granted.to_vec(),
            state: Mutex::default(),
            waits: CancellationToken::new(),
            is_closed: recording.is_some_and(Recording::is_offline),
            may_ask: true,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a command to the way out of the session's network, if there is one. From then
    /// on, the time that the user takes for an answer does not count against its limit.
    pub(crate) fn admit(
        self: &Arc<Self>,
        exec_context: &mut ExecContext,
        request: &mut Exec,
    ) -> Admitted {
        let is_admitted = self.admit_program(exec_context, request, true);
        Admitted {
            limit: request.limit.take_if(|_| is_admitted),
            pass: exec_context.pass.clone().filter(|_| is_admitted),
            began: self.clock.ran(),
            is_timed_out: AtomicBool::new(false),
            call: Arc::clone(self),
        }
    }

    /// Same as [`CallNetwork::admit`], for a process that may outlive the call.
    pub(crate) fn admit_process(
        self: &Arc<Self>,
        exec_context: &mut ExecContext,
        request: &Exec,
    ) -> bool {
        self.admit_program(exec_context, request, false)
    }

    fn admit_program(
        self: &Arc<Self>,
        exec_context: &mut ExecContext,
        request: &Exec,
        stops_to_wait: bool,
    ) -> bool {
        let sandbox = exec_context.sandbox.as_ref();
        let shares = |sandbox: &&Arc<Sandbox>| sandbox.request().network == Network::Session;
        let (Some(_), Some(gateway)) = (sandbox.filter(shares), exec_context.network.gateway())
        else {
            return false;
        };
        if self.is_closed {
            return false;
        }
        let command = CommandNetwork {
            call: Arc::clone(self),
            program: request.program.clone(),
            stops_to_wait,
            line: OnceLock::new(),
            resumed: OnceLock::new(),
        };
        exec_context.pass = Some(gateway.admit(Arc::new(command)));
        true
    }

    /// Returns a note for each host that was refused, in brackets.
    pub(crate) fn notes(&self) -> Vec<String> {
        let late = self
            .session
            .upgrade()
            .map(|session| session.late_refusals.take());
        let late = late.unwrap_or_default();
        let mut notes = self.state().refusals.notes("");
        notes.extend(late.notes(" of an earlier command"));
        notes
    }

    /// Adds what happened to the details of the call's reply.
    pub(super) fn details(&self, mut reply: Reply) -> Reply {
        let state = self.state();
        let refused = state.refusals.hosts();
        if !refused.is_empty() {
            reply = reply.detail("refused_hosts", refused);
        }
        if let Some(saved) = state.saved.last() {
            reply = about_saved_rules(reply, saved.clone());
        }
        reply
    }

    /// Notes that the call has ended. Refusals from now on appear in a later reply.
    pub(super) fn end(&self) {
        self.state().is_over = true;
    }

    fn refuse(&self, refused: RefusedHost) -> HostVerdict {
        let mut state = self.state();
        match (state.is_over, self.session.upgrade()) {
            (true, Some(session)) => session.late_refusals.add(refused),
            _ => state.refusals.add(refused),
        }
        HostVerdict::Refused
    }
}

/// A running command of a call.
pub(crate) struct Admitted {
    call: Arc<CallNetwork>,
    /// The pass of the command, if it has one.
    pass: Option<Pass>,
    /// Its time limit, if it is measured here.
    limit: Option<Duration>,
    /// Time on the clock of the call when it began.
    began: Duration,
    is_timed_out: AtomicBool,
}

impl Admitted {
    /// Waits until the command must be stopped: its time is up, or the user can only answer
    /// later.
    pub(crate) async fn must_stop(&self) {
        let over = async {
            let Some(limit) = self.limit else {
                return std::future::pending().await;
            };
            loop {
                let ran = self.call.clock.ran().saturating_sub(self.began);
                let Some(left) = limit.checked_sub(ran).filter(|left| !left.is_zero()) else {
                    return;
                };
                // The clock may stand still.
                tokio::time::sleep(left.max(Duration::from_millis(20))).await;
            }
        };
        let stopped = async {
            tokio::select! {
                () = over => self.is_timed_out.store(true, Ordering::Relaxed),
                () = self.call.waits.cancelled() => {}
            }
        };
        stopped.await;
    }

    /// Takes note of the end of the command.
    ///
    /// # Errors
    /// [`Error::Waiting`] if the user has to answer a question first.
    pub(crate) fn ended(&self, done: haft_ops::Result<Done>) -> Result<Done, Error> {
        if let Some(question) = self.call.state().question.clone() {
            return Err(Error::Waiting { question });
        }
        let mut done = done?;
        let finished = &mut done.finished;
        if self.is_timed_out.load(Ordering::Relaxed) && finished.ended == Ended::Cancelled {
            finished.ended = Ended::TimedOut;
        }
        let Some(pass) = &self.pass else {
            return Ok(done);
        };
        for bytes in [
            &mut finished.output.head,
            &mut finished.output.tail,
            &mut finished.error.head,
            &mut finished.error.tail,
        ] {
            hide(bytes, pass.name.as_bytes());
            // As clients send it.
            hide(bytes, pass.sent_as.as_bytes());
        }
        // They keep their way out until the session ends.
        if !finished.survivors.is_empty()
            && let Some(session) = self.call.session.upgrade()
        {
            session.late_refusals.keep(pass.clone());
        }
        Ok(done)
    }

    /// Returns output without the name of the pass, which is a credential.
    pub(crate) fn without_pass(&self, text: String) -> String {
        match &self.pass {
            Some(pass) if text.contains(&pass.name) || text.contains(&pass.sent_as) => text
                .replace(&pass.name, HIDDEN)
                .replace(&pass.sent_as, HIDDEN),
            _ => text,
        }
    }
}

/// Stands for the name of a pass in output.
const HIDDEN: &str = "***";

/// Overwrites every occurrence of a name.
fn hide(bytes: &mut [u8], name: &[u8]) {
    let found: Vec<usize> = memchr::memmem::find_iter(bytes, name).collect();
    for at in found {
        if let Some(place) = bytes.get_mut(at..at + name.len()) {
            place.fill(b'*');
        }
    }
}

/// The connections of one command.
pub(crate) struct CommandNetwork {
    call: Arc<CallNetwork>,
    program: Program,
    /// Whether it is stopped, to run again later, when the user can only answer later.
    stops_to_wait: bool,
    line: OnceLock<CommandLine>,
    /// Answers from before the call had to wait.
    resumed: OnceLock<ask::Resumed>,
}

impl CommandNetwork {
    /// Returns the command as the user reads it.
    fn shown(&self) -> String {
        match &self.program {
            Program::Shell { script, .. } => script.clone(),
            Program::Direct(words) => {
                let words = words.iter().map(|word| word.to_string_lossy());
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Identifies the command when its call is made again.
    fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.call.tool.as_bytes());
        hasher.update([0]);
        hasher.update(self.shown().as_bytes());
        let bytes = hasher.finalize();
        bytes
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    fn judged(&self, session: &Session, host: &str, port: u16) -> ConnectionJudgement {
        let line = || policy::command_line(&self.program);
        let line = Some(self.line.get_or_init(line));
        let policy = session.approval.policy();
        policy.judge_connection(&Connection { host, port, line })
    }

    /// Decides about a connection at once, or returns the user's answer, which may be to come.
    fn decide(self: Arc<Self>, host: &str, port: u16) -> Result<HostVerdict, UserAnswer> {
        let call = Arc::clone(&self.call);
        let Some(session) = call.session.upgrade() else {
            return Ok(HostVerdict::Refused);
        };
        let judged = self.judged(&session, host, port);
        let refuse = |why| {
            let host = host.to_owned();
            call.refuse(RefusedHost { host, port, why })
        };
        let is_granted = call.granted.iter().any(|open| open.covers(host, port));
        // The model chose the name, and the user saw no address.
        let granted = match host.parse::<IpAddr>() {
            Ok(_) => HostVerdict::Any,
            Err(_) => judged.allowed(),
        };
        Ok(match judged.verdict {
            // A rule denies it, or nothing opens it.
            Verdict::Deny if is_granted && !judged.is_denied_by_rule() => granted,
            Verdict::Deny => refuse(Why::of(&judged)),
            Verdict::Ask if is_granted => granted,
            Verdict::Allow | Verdict::Review => judged.allowed(),
            Verdict::Ask => match session.approval.approve {
                Approve::Auto => judged.allowed(),
                Approve::Never => refuse(Why::Never),
                Approve::Ask => match self.asked(session, judged, host, port) {
                    Some(answer) => return Err(answer),
                    None => refuse(Why::TooMany),
                },
            },
        })
    }

    /// Asks the user about a connection, once for each host and port of the call. Returns
    /// `None` if the call has asked too often.
    fn asked(
        self: Arc<Self>,
        session: Arc<Session>,
        judged: ConnectionJudgement,
        host: &str,
        port: u16,
    ) -> Option<UserAnswer> {
        let call = Arc::clone(&self.call);
        let mut state = call.state();
        let key = (host.to_owned(), port);
        if let Some(answer) = state.answers.get(&key) {
            return Some(answer.clone());
        }
        if state.answers.len() >= MAX_QUESTIONS {
            return None;
        }
        let host = host.to_owned();
        // A task of its own: a client that gives up does not withdraw the question.
        let asking = tokio::spawn(async move {
            let answer = self.ask(&session, &host, port, &judged).await;
            answer.unwrap_or_else(|why| self.call.refuse(RefusedHost { host, port, why }))
        });
        let answer = asking.map(|answer| answer.unwrap_or(HostVerdict::Refused));
        let answer = answer.boxed().shared();
        state.answers.insert(key, answer.clone());
        Some(answer)
    }
}

#[async_trait]
impl HostJudge for CommandNetwork {
    async fn judge(self: Arc<Self>, host: &str, port: u16) -> HostVerdict {
        let (call, stops_to_wait) = (Arc::clone(&self.call), self.stops_to_wait);
        let verdict = match self.decide(host, port) {
            Ok(verdict) => verdict,
            Err(answer) => answer.await,
        };
        if stops_to_wait && call.waits.is_cancelled() {
            // A refusal could still be written to a file before the command is stopped. The
            // connection closes with its process instead.
            std::future::pending::<()>().await;
        }
        verdict
    }

    fn refused(&self, host: &str, port: u16, reason: Refusal) {
        let why = match reason {
            Refusal::Address(what) => Why::Private(what),
            Refusal::Name(what) => Why::OtherName(what),
        };
        let host = host.to_owned();
        self.call.refuse(RefusedHost { host, port, why });
    }
}
