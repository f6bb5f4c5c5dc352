//! A server of a session: its connection, when there is one, and its past.

use super::call::{Call, Outcome};
use super::connect::{Connection, Opening, Refused, Way};
use super::content;
use super::listed::{self, Listed, Taken};
use super::remote::{Reach, Remote, SetupError};
use super::sign_in::SignIn;
use super::tool::RemoteTool;
use futures::future::BoxFuture;
use haft::{AnyTool, Brought, Context, Error, Programs, Recheck, Reply, Source, Standing};
use haft_web::Client;
use rmcp::model::{ClientRequest, PingRequest};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as Latch, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// How long a server has to begin and to list its tools, each.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many crashes in a row are borne of a program.
const CRASHES: u32 = 5;

/// How long after a crash the next start waits; it doubles from crash to crash.
const BACKOFF: Duration = Duration::from_millis(100);

/// The longest wait before an address is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long a server that did not answer a call has to show that it lives.
const ALIVE: Duration = Duration::from_secs(2);

/// How far apart two looks at a list are that keeps changing.
const APART: Duration = Duration::from_millis(500);

/// How long what is remembered of a server counts.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is remembered is made anew when its form changes.
const FORM: u64 = 1;

/// An MCP server as a source of tools.
pub struct RemoteServer {
    pub(super) remote: Remote,
    pub(super) client: Client,
    pub(super) sign_in: Option<Arc<SignIn>>,
    itself: Weak<Self>,
    programs: OnceLock<Option<Programs>>,
    slot: Mutex<Slot>,
    /// The list as it was last seen.
    known: Latch<Option<Arc<Known>>>,
    /// Whether the server says that it is another one now.
    is_stale: AtomicBool,
    looked: Latch<Option<Instant>>,
    changes: watch::Sender<u64>,
}

/// A list of tools, and what can be taken of it.
struct Known {
    raw: Vec<Value>,
    taken: Taken,
}

struct Slot {
    connection: Option<Arc<Connection>>,
    opening: Opening,
    crashes: u32,
    crashed: Option<Instant>,
}

fn lock<T>(latch: &Latch<T>) -> MutexGuard<'_, T> {
    latch.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RemoteServer {
    /// A server, which is not reached before somebody needs it.
    ///
    /// # Errors
    /// When no connection could ever be made.
    pub fn new(remote: Remote) -> Result<Arc<Self>, SetupError> {
        let client = Client::new(haft_web::Settings::default())
            .map_err(|error| SetupError(error.to_string()))?;
        let sign_in = match (&remote.reach, &remote.tokens) {
            (Reach::Address { url, .. }, Some(tokens)) => {
                let sign_in = SignIn::new(
                    url.clone(),
                    client.clone(),
                    remote.identity.clone(),
                    Arc::clone(tokens),
                );
                Some(Arc::new(sign_in))
            }
            _ => None,
        };
        Ok(Arc::new_cyclic(|itself| Self {
            remote,
            client,
            sign_in,
            itself: Weak::clone(itself),
            programs: OnceLock::new(),
            slot: Mutex::new(Slot {
                connection: None,
                opening: Opening::Unknown,
                crashes: 0,
                crashed: None,
            }),
            known: Latch::default(),
            is_stale: AtomicBool::new(false),
            looked: Latch::default(),
            changes: watch::Sender::new(0),
        }))
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.remote.name
    }

    /// The machine it is on, where that is not this one.
    pub(super) fn host(&self) -> Option<String> {
        match &self.remote.reach {
            Reach::Program { .. } => None,
            Reach::Address { url, .. } => url.host_str().map(str::to_owned),
        }
    }

    /// Whose word its program is, where it is one.
    pub(super) fn standing(&self) -> Option<Standing> {
        match &self.remote.reach {
            Reach::Program { .. } => Some(self.remote.standing),
            Reach::Address { .. } => None,
        }
    }

    pub(super) fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::failed(format!("{} {what}", self.label()))
    }

    fn told(&self, what: impl std::fmt::Display) -> String {
        format!("{} {what}", self.label())
    }

    /// How it is reached.
    pub(super) fn way(&self, opening: Opening) -> Way<'_> {
        let itself = Weak::clone(&self.itself);
        Way {
            remote: &self.remote,
            programs: self.programs.get().and_then(Option::as_ref),
            client: &self.client,
            sign_in: self.sign_in.as_ref(),
            opening,
            changed: Arc::new(move || {
                if let Some(server) = itself.upgrade() {
                    server.is_stale.store(true, Ordering::SeqCst);
                    server.changes.send_modify(|changes| *changes += 1);
                }
            }),
        }
    }

    pub(super) fn run_with(&self, programs: Option<&Programs>) {
        let _ = self.programs.set(programs.cloned());
    }

    /// Whether it may be used now, and how to look again at what it is.
    pub(super) fn may_run(&self) -> Result<Option<Recheck>, Error> {
        match &self.remote.check {
            Some(check) => check().map(Some).map_err(Error::failed),
            None => Ok(None),
        }
    }

    /// It has listed its tools, so it has loaded what it is: that must still be what was
    /// checked, or it gets no call.
    pub(super) async fn look_again(
        &self,
        recheck: Option<Recheck>,
        connection: &Connection,
    ) -> Result<(), Error> {
        let Some(Err(reason)) = recheck.map(|recheck| recheck()) else {
            return Ok(());
        };
        connection.end().await;
        Err(self.failed(format!("was ended before it got a call: {reason}")))
    }

    fn why(&self, refused: Refused) -> Error {
        match refused {
            Refused::Failed(words) => self.failed(words),
            Refused::SignIn(_) => self.failed(format!(
                "wants you to sign in: `haft mcp test {}`",
                self.remote.name
            )),
        }
    }

    /// Reaches it and learns which tools it has.
    async fn meet(&self, opening: Opening) -> Result<(Arc<Connection>, Vec<Value>), Error> {
        let recheck = self.may_run()?;
        let connection = self.way(opening).go(PATIENCE).await;
        let connection = connection.map_err(|refused| self.why(refused))?;
        let raw = match tokio::time::timeout(PATIENCE, connection.list()).await {
            Ok(Ok(raw)) => raw,
            Ok(Err(_)) if connection.is_over() => {
                return Err(self.failed(connection.broke().await));
            }
            Ok(Err(words)) => return Err(self.failed(words)),
            Err(_) => {
                connection.end().await;
                return Err(self.failed(format!(
                    "did not list its tools within {} seconds",
                    PATIENCE.as_secs()
                )));
            }
        };
        self.look_again(recheck, &connection).await?;
        self.remember(&connection, &raw);
        Ok((Arc::new(connection), raw))
    }

    /// The connection to call, made if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut slot = self.slot.lock().await;
        if let Some(connection) = &slot.connection
            && !connection.is_over()
        {
            return Ok(Arc::clone(connection));
        }
        // One that ended since its last call crashed as well.
        if slot.connection.take().is_some() {
            slot.crash();
        }
        let is_program = matches!(self.remote.reach, Reach::Program { .. });
        if is_program && slot.crashes >= CRASHES {
            return Err(self.failed(format!(
                "is disabled: it ended {CRASHES} times in a row; `haft mcp test {}` shows what is wrong",
                self.remote.name
            )));
        }
        if let Some(crashed) = slot.crashed {
            let wait = BACKOFF * 2_u32.saturating_pow(slot.crashes.saturating_sub(1));
            tokio::time::sleep_until(crashed + wait.min(LONGEST_WAIT)).await;
        }
        match self.meet(slot.opening).await {
            Ok((connection, raw)) => {
                slot.opening = connection.opening();
                slot.connection = Some(Arc::clone(&connection));
                drop(slot);
                self.learn(raw);
                Ok(connection)
            }
            Err(error) => {
                slot.opening = Opening::Unknown;
                slot.crash();
                Err(error)
            }
        }
    }

    /// What it has is this now; whoever offers its tools is told if that is news.
    fn learn(&self, raw: Vec<Value>) {
        let before = lock(&self.known).clone();
        if before.as_ref().is_some_and(|before| before.raw == raw) {
            return;
        }
        self.keep(raw);
        if before.is_some() {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    fn keep(&self, raw: Vec<Value>) -> Arc<Known> {
        let taken = listed::take(&self.remote, &raw);
        let known = Arc::new(Known { raw, taken });
        *lock(&self.known) = Some(Arc::clone(&known));
        known
    }

    /// A list, held to what was seen before.
    pub(super) fn held(&self, mut taken: Taken) -> Taken {
        if let Some(pins) = &self.remote.pins {
            taken.hold_to(&**pins);
        }
        taken
    }

    /// Asks it what it has now.
    async fn look_anew(&self) -> Result<(), Error> {
        let connection = self.connection().await?;
        let raw = tokio::time::timeout(PATIENCE, connection.list()).await;
        if let Ok(Ok(raw)) = raw {
            self.remember(&connection, &raw);
            self.keep(raw);
        }
        Ok(())
    }

    /// What it has, without reaching it where that is known.
    async fn look(&self) -> Result<Arc<Known>, Error> {
        if self.is_stale.swap(false, Ordering::SeqCst) {
            let last = *lock(&self.looked);
            if let Some(last) = last {
                // One that changes all the time is looked at twice a second.
                tokio::time::sleep_until(last + APART).await;
            }
            *lock(&self.looked) = Some(Instant::now());
            if let Err(error) = self.look_anew().await {
                // What it had is offered on: a call reaches it again, or says why not.
                if lock(&self.known).is_none() {
                    return Err(error);
                }
                self.is_stale.store(true, Ordering::SeqCst);
                tracing::warn!(%error, "what an MCP server has now is not known");
            }
        }
        if let Some(known) = lock(&self.known).clone() {
            return Ok(known);
        }
        if let Some((opening, raw)) = self.remembered() {
            self.slot.lock().await.opening = opening;
            return Ok(self.keep(raw));
        }
        self.connection().await?;
        let known = lock(&self.known).clone();
        Ok(known.unwrap_or_else(|| self.keep(Vec::new())))
    }

    pub(super) fn remember(&self, connection: &Connection, raw: &[Value]) {
        if let Some(memory) = &self.remote.memory {
            let handshake = connection.opening() == Opening::Handshake;
            memory.store(&json!({
                "form": FORM, "at": now(), "handshake": handshake, "tools": raw,
            }));
        }
    }

    pub(super) fn remembered(&self) -> Option<(Opening, Vec<Value>)> {
        let kept = self.remote.memory.as_ref()?.load()?;
        let is_fresh = |at: u64| now().checked_sub(at).is_some_and(|age| age < DAY.as_secs());
        if kept["form"] != FORM || !kept["at"].as_u64().is_some_and(is_fresh) {
            return None;
        }
        let opening = match kept["handshake"].as_bool()? {
            true => Opening::Handshake,
            false => Opening::Stateless,
        };
        Some((opening, kept["tools"].as_array()?.clone()))
    }

    /// Calls one of its tools.
    pub(super) async fn call(
        &self,
        tool: &Listed,
        arguments: Value,
        cx: &Context,
    ) -> Result<Reply, Error> {
        let connection = tokio::select! {
            connection = cx.off_the_clock(self.connection()) => connection?,
            () = cx.cancel().cancelled() => return Err(Error::Cancelled),
        };
        // It may have become another one since it was offered.
        let known = lock(&self.known).clone();
        let now =
            known.and_then(|known| known.taken.tools.iter().find(|one| *one == tool).cloned());
        let Some(now) = now else {
            return Err(self.failed(format!(
                "has changed its tool {}, or has it no more: it was not called; `haft mcp test {}` shows it",
                listed::shown(&tool.own),
                self.remote.name
            )));
        };
        let call = Call {
            server: &self.remote.name,
            tool: &tool.own,
            arguments: match arguments {
                Value::Object(fields) => fields,
                _ => serde_json::Map::new(),
            },
            patience: self.remote.timeout,
            cx,
        };
        let outcome = tokio::select! {
            biased;
            outcome = call.make(&connection) => outcome,
            () = cx.time_is_up() => Outcome::OverLimit,
        };
        match outcome {
            Outcome::Answered(result) => {
                let mut slot = self.slot.lock().await;
                slot.crashes = 0;
                slot.crashed = None;
                drop(slot);
                match content::misfit(&result, now.output.as_deref()) {
                    None => Ok(content::reply(&result)),
                    Some(why) => Err(self.failed(format!(
                        "answered {} with a result that does not match the output schema it declares: {why}",
                        listed::shown(&tool.own)
                    ))),
                }
            }
            Outcome::Refused(words) => Err(self.failed(format!("refused the call: {words}"))),
            Outcome::SignIn(challenge) => {
                if let Some(sign_in) = &self.sign_in {
                    sign_in.want(&challenge);
                }
                Err(self.why(Refused::SignIn(Some(challenge))))
            }
            Outcome::Unreached(words) => {
                self.drop_connection(&connection).await;
                Err(self.failed(format!(
                    "was not reached: {words}; the next call tries anew"
                )))
            }
            Outcome::Broke => Err(self.broke(&connection).await),
            Outcome::TimedOut => {
                self.doubt(&connection);
                Err(self.silent(cx.limit()))
            }
            Outcome::OverLimit => {
                self.doubt(&connection);
                Err(Error::session_limit(cx.limit().unwrap_or_default()))
            }
            Outcome::Cancelled => {
                self.doubt(&connection);
                Err(Error::Cancelled)
            }
        }
    }

    /// The failure of a call that went too long without a sign of life, in a session with
    /// this limit for every call.
    fn silent(&self, session: Option<Duration>) -> Error {
        let after = self.remote.timeout;
        match session.filter(|limit| *limit <= after) {
            Some(limit) => Error::session_limit(limit),
            None => Error::Failed {
                text: Error::TimedOut { after }.to_string(),
                hint: Some(format!(
                    "to allow more time without an answer or progress, set `timeout` (seconds) in the entry of the MCP server {}",
                    self.remote.name
                )),
            },
        }
    }

    /// The next call makes another one.
    async fn drop_connection(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot.lock().await;
        if slot.is(connection) {
            slot.connection = None;
            slot.crash();
        }
        drop(slot);
        connection.end().await;
    }

    /// The connection broke in the middle of a call.
    async fn broke(&self, connection: &Arc<Connection>) -> Error {
        let how = connection.broke().await;
        let mut slot = self.slot.lock().await;
        // Of several calls that it took with it one counts it.
        if slot.is(connection) {
            slot.connection = None;
            slot.crash();
        }
        drop(slot);
        self.failed(how)
    }

    /// One that did not answer a call may not answer anything any more: then it is
    /// ended, and the next call has another one.
    fn doubt(&self, connection: &Arc<Connection>) {
        let (Some(server), connection) = (self.itself.upgrade(), Arc::clone(connection)) else {
            return;
        };
        tokio::spawn(async move {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            let answer = tokio::time::timeout(ALIVE, connection.peer.send_request(ping)).await;
            if answer.is_ok() && !connection.is_over() {
                return;
            }
            let mut slot = server.slot.lock().await;
            if slot.is(&connection) {
                slot.connection = None;
            }
            drop(slot);
            connection.end().await;
        });
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

impl Slot {
    fn is(&self, connection: &Arc<Connection>) -> bool {
        let current = self.connection.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, connection))
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.crashed = Some(Instant::now());
    }
}

impl Source for RemoteServer {
    fn label(&self) -> String {
        format!("MCP server {}", self.remote.name)
    }

    fn tools<'a>(
        &'a self,
        programs: Option<&'a Programs>,
    ) -> BoxFuture<'a, Result<Brought, Error>> {
        Box::pin(async move {
            self.run_with(programs);
            let Some(server) = self.itself.upgrade() else {
                return Ok(Brought::default());
            };
            let taken = self.held(self.look().await?.taken.clone());
            let mut problems: Vec<String> = taken
                .problems
                .iter()
                .map(|problem| self.told(problem))
                .collect();
            if !taken.changed.is_empty() {
                let names: Vec<String> = taken
                    .changed
                    .iter()
                    .map(|(name, ..)| listed::shown(name))
                    .collect();
                problems.push(self.told(format!(
                    "describes {} in another way than when it was first seen, so it is not offered; `haft mcp test {}` shows the change and accepts it",
                    names.join(", "),
                    self.remote.name
                )));
            }
            if taken.tools.is_empty() && problems.is_empty() {
                problems.push(self.told("has no tools"));
            }
            let tool = |listed| -> Arc<dyn AnyTool> {
                Arc::new(RemoteTool {
                    listed,
                    server: Arc::clone(&server),
                })
            };
            Ok(Brought {
                tools: taken.tools.into_iter().map(tool).collect(),
                problems,
            })
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }
}
