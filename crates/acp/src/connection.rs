//! The connection to one client: reads messages, starts what they ask for, and ends
//! everything when the client is gone.

mod queues;

use crate::client::Client;
use crate::outbox::Outbox;
use crate::port::{Host, Start};
use crate::replay;
use crate::rpc::{self, Message, RpcError, code};
use crate::schema::{self, Accepted, Ended, Incoming, Protocol, Replay, method};
use crate::session::{Kept, Session, failed};
use futures::future::join_all;
use haft_mcp::lines::{InputLine, Lines, MAX_LINE, input};
use queues::{Queues, Ticket};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Requests that are worked on at the same time. More are refused.
const MAX_REQUESTS: usize = 256;

/// Sessions that a client may have open at the same time.
const MAX_SESSIONS: usize = 64;

/// Ids of sessions without a prompt that are remembered.
const MAX_UNRECORDED: usize = 4096;

/// Sessions in one answer to `session/list`.
const PAGE: usize = 100;

/// Time that everything has to end when the client is gone.
const END_GRACE: Duration = Duration::from_millis(800);

/// The connection failed.
#[derive(Debug)]
pub struct ServeError(io::Error);

impl std::fmt::Display for ServeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read or write messages: {}", self.0)
    }
}

impl std::error::Error for ServeError {}

/// Serves the client on standard input and output until it disconnects or `shutdown` is
/// cancelled. Everything that was started has ended then.
///
/// # Errors
/// When standard input cannot be read.
pub async fn serve(host: Arc<dyn Host>, shutdown: CancellationToken) -> Result<(), ServeError> {
    let outbox = Outbox::start().map_err(ServeError)?;
    let mut lines = Lines::new(input().map_err(ServeError)?);
    let connection = Arc::new(Connection {
        client: Arc::new(Client::new(outbox.clone())),
        host,
        sessions: Mutex::default(),
        unrecorded: Mutex::default(),
        queues: Queues::default(),
        open: Mutex::default(),
        opening: Semaphore::new(4),
    });
    let ended = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = outbox.broken() => break Ok(()),
            () = shutdown.cancelled() => break Ok(()),
        };
        match line {
            Ok(InputLine::Complete(line)) => Connection::receive(&connection, &line),
            // The id has not been read yet, if there is one.
            Ok(InputLine::TooLong(None)) => {}
            Ok(InputLine::TooLong(id) | InputLine::Skipped(id)) => {
                let message = format!("message too long: at most {MAX_LINE} bytes");
                let error = RpcError::new(code::INVALID_REQUEST, message);
                outbox.push(&rpc::answer(id.unwrap_or_default(), Err(error)));
            }
            Ok(InputLine::End) => break Ok(()),
            Err(error) => break Err(ServeError(error)),
        }
        // A client that does not read its answers is not served on.
        tokio::select! {
            () = outbox.wait_for_room() => {}
            () = shutdown.cancelled() => {}
        }
    };
    let sessions: Vec<_> = connection.lock().drain().map(|(_, one)| one).collect();
    let close = join_all(sessions.iter().map(|session| session.close()));
    let _ = tokio::time::timeout(END_GRACE, close).await;
    let _ = tokio::time::timeout(Duration::from_millis(100), outbox.flush()).await;
    ended
}

struct Connection {
    client: Arc<Client>,
    host: Arc<dyn Host>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// Closed sessions without a prompt, which are not recorded.
    unrecorded: Mutex<HashSet<String>>,
    queues: Queues,
    /// Ids of requests that are worked on, as JSON; the session for prompts.
    open: Mutex<HashMap<String, Option<String>>>,
    /// Limits the sessions that are opened at the same time.
    opening: Semaphore,
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_requests(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(connection: &Arc<Self>, line: &[u8]) {
        match rpc::decode(line) {
            Message::Nothing => {}
            Message::Invalid(answer) => connection.client.outbox.push(&answer),
            Message::Response { id, result } => connection.client.answered(&id, result),
            Message::Notification { method, params } => connection.notified(&method, params),
            Message::Request { id, method, params } => {
                Self::requested(connection, id, &method, params);
            }
        }
    }

    fn notified(&self, method: &str, params: Value) {
        let session = match method {
            method::CANCEL => schema::cancelled(&params),
            method::CANCEL_REQUEST => {
                let id = params.get("requestId").map(Value::to_string);
                id.and_then(|id| self.open_requests().get(&id).cloned().flatten())
            }
            _ => None,
        };
        let session = session.and_then(|id| self.lock().get(&id).cloned());
        if let Some(session) = session {
            session.cancel();
        }
    }

    fn answer(&self, id: Value, result: Result<Value, RpcError>) {
        self.client.outbox.push(&rpc::answer(id, result));
    }

    /// Starts work on a request. What changes the order of things happens here, the rest in a
    /// task.
    fn requested(connection: &Arc<Self>, id: Value, method: &str, params: Value) {
        let key = id.to_string();
        {
            let mut open = connection.open_requests();
            let problem = match open.len() {
                MAX_REQUESTS.. => Some("too many requests are open; wait for answers"),
                _ if open.contains_key(&key) => Some("the id is in use by an open request"),
                _ => None,
            };
            if let Some(problem) = problem {
                drop(open);
                let error = RpcError::new(code::INVALID_REQUEST, problem);
                return connection.answer(id, Err(error));
            }
            open.insert(key.clone(), None);
        }
        match connection.decoded(method, params) {
            Ok(Decoded::Answer(result)) => {
                connection.open_requests().remove(&key);
                connection.answer(id, Ok(result));
            }
            Ok(Decoded::Request(incoming)) => {
                let mut ticket = connection.enter(&incoming);
                if ticket.is_first() {
                    return Self::start(connection, id, incoming, ticket);
                }
                let connection = Arc::clone(connection);
                tokio::spawn(async move {
                    ticket.wait().await;
                    Self::start(&connection, id, incoming, ticket);
                });
            }
            Err(error) => {
                connection.open_requests().remove(&key);
                connection.answer(id, Err(error));
            }
        }
    }

    /// Returns the place of a request in the queue of its session. Prompts and settings only
    /// wait for requests that open or close it.
    fn enter(&self, incoming: &Incoming) -> Ticket {
        match incoming {
            Incoming::Load(id, ..)
            | Incoming::Fork(id, _)
            | Incoming::Close(id)
            | Incoming::Delete(id) => self.queues.enter(id),
            Incoming::Prompt { session: id, .. }
            | Incoming::SetMode(id, _)
            | Incoming::SetOption(schema::Chosen { session: id, .. }) => {
                self.queues.enter_if_busy(id)
            }
            Incoming::Authenticate | Incoming::Logout | Incoming::New(_) | Incoming::List(..) => {
                Ticket::free()
            }
        }
    }

    /// Starts work on a request whose turn it is.
    fn start(connection: &Arc<Self>, id: Value, incoming: Incoming, ticket: Ticket) {
        let key = id.to_string();
        match connection.begin(&key, incoming) {
            Ok(Begun::Answer(result)) => {
                connection.open_requests().remove(&key);
                connection.answer(id, Ok(result));
            }
            Ok(Begun::Work(work)) => {
                let connection = Arc::clone(connection);
                tokio::spawn(async move {
                    let result = connection.work(work).await;
                    drop(ticket);
                    connection.open_requests().remove(&key);
                    let (result, after) = match result {
                        Ok((result, after)) => (Ok(result), after),
                        Err(error) => (Err(error), None),
                    };
                    connection.answer(id, result);
                    if let Some(session) = after {
                        session.tell_commands();
                        session.tell_problems();
                    }
                });
            }
            Ok(Begun::Prompt(session, accepted, parts, acknowledgement)) => {
                if let Some(Accepted { answer, updates }) = acknowledgement {
                    connection.open_requests().remove(&key);
                    connection.answer(id.clone(), Ok(answer));
                    for update in updates {
                        connection.client.notify(&update);
                    }
                }
                let connection = Arc::clone(connection);
                tokio::spawn(async move {
                    let result = session.prompt(accepted, parts).await;
                    let ended = connection
                        .protocol()
                        .map(|known| known.ended(&session.id, result));
                    match ended {
                        Ok(Ended::Answer(result)) => {
                            connection.open_requests().remove(&key);
                            connection.answer(id, result);
                        }
                        Ok(Ended::Update(update)) => connection.client.notify(&update),
                        Err(_) => {}
                    }
                });
            }
            Err(error) => {
                connection.open_requests().remove(&key);
                connection.answer(id, Err(error));
            }
        }
    }

    fn protocol(&self) -> Result<&dyn Protocol, RpcError> {
        self.client.protocol().ok_or_else(|| {
            RpcError::new(
                code::INVALID_REQUEST,
                "initialize must be the first request",
            )
        })
    }

    fn decoded(&self, method: &str, params: Value) -> Result<Decoded, RpcError> {
        if method == method::INITIALIZE {
            let negotiated = schema::negotiate(params)?;
            // A second `initialize` changes nothing.
            let known = self.client.negotiated.get_or_init(|| negotiated);
            let answer = known.protocol.initialize(&self.host.info())?;
            return Ok(Decoded::Answer(answer));
        }
        let incoming = self.protocol()?.decode(method, params)?;
        Ok(Decoded::Request(incoming))
    }

    fn begin(&self, key: &str, incoming: Incoming) -> Result<Begun, RpcError> {
        let protocol = self.protocol()?;
        Ok(Begun::Work(match incoming {
            Incoming::Authenticate => Work::Authenticate,
            Incoming::Logout => return Ok(Begun::Answer(json!({}))),
            Incoming::New(place) => Work::New(place),
            Incoming::Load(id, place, replay) => Work::Load(id, place, replay),
            Incoming::Fork(id, place) => Work::Fork(id, place),
            Incoming::List(folder, from) => Work::List(folder, from),
            Incoming::Close(id) => Work::Close(self.session(&id)?),
            Incoming::Delete(id) => Work::Delete(id),
            Incoming::Prompt {
                session: id,
                parts,
                content,
            } => {
                let session = self.session(&id)?;
                let accepted = session.accept()?;
                let is_recorded = session.records(&parts);
                let acknowledgement = protocol.accepted(&id, content, is_recorded);
                self.open_requests().insert(key.to_owned(), Some(id));
                return Ok(Begun::Prompt(session, accepted, parts, acknowledgement));
            }
            Incoming::SetMode(id, mode) => {
                let session = self.session(&id)?;
                session.set_mode(mode)?;
                session.tell_settings();
                return Ok(Begun::Answer(json!({})));
            }
            Incoming::SetOption(chosen) => Work::SetOption(self.session(&chosen.session)?, chosen),
        }))
    }

    fn session(&self, id: &str) -> Result<Arc<Session>, RpcError> {
        let found = self.lock().get(id).cloned();
        found.ok_or_else(|| {
            let message = format!(
                "session {id} is not open here; open it with session/load or session/resume"
            );
            RpcError::new(code::NOT_FOUND, message)
        })
    }

    /// Does the work of a request. With the answer it returns a session whose slash
    /// commands have to be sent.
    async fn work(&self, work: Work) -> Result<(Value, Option<Arc<Session>>), RpcError> {
        let protocol = self.protocol()?;
        match work {
            Work::Authenticate => {
                self.host.check_model().await.map_err(failed)?;
                Ok((json!({}), None))
            }
            Work::New(place) => {
                let (session, _) = self.open(Start::New(None), place, None).await?;
                let answer = protocol.created(&session.id, &session.shown())?;
                Ok((answer, Some(session)))
            }
            Work::Load(id, place, replay) => {
                let (session, messages) = self.load(id, place).await?;
                if replay == Replay::Everything {
                    protocol.begin(&session.id, 0);
                    session.replay(messages).await;
                }
                session.tell_usage();
                self.client.tell(|protocol| protocol.idle(&session.id));
                Ok((protocol.opened(&session.shown())?, Some(session)))
            }
            Work::Fork(id, place) => {
                let start = match self.is_unrecorded(&id) {
                    true => Start::New(None),
                    false => Start::Recorded(self.host.fork(&id).await.map_err(failed)?),
                };
                let (session, _) = self.open(start, place, None).await?;
                let answer = protocol.created(&session.id, &session.shown())?;
                Ok((answer, Some(session)))
            }
            Work::List(folder, from) => {
                let listed = self.host.list(folder.as_deref()).await.map_err(failed)?;
                let page: Vec<_> = listed.iter().skip(from).take(PAGE).cloned().collect();
                let next = from + page.len();
                let next = (next < listed.len()).then(|| next.to_string());
                Ok((protocol.listed(&page, next)?, None))
            }
            Work::Close(session) => {
                self.close(&session).await;
                Ok((json!({}), None))
            }
            Work::Delete(id) => {
                let open = self.lock().get(&id).cloned();
                if let Some(session) = open {
                    self.close(&session).await;
                }
                let is_unrecorded = self.unrecorded_ids().remove(&id);
                if !is_unrecorded {
                    self.host.delete(&id).await.map_err(failed)?;
                }
                Ok((json!({}), None))
            }
            Work::SetOption(session, chosen) => {
                session.set_option(chosen).await?;
                Ok((protocol.option_set(&session.shown())?, None))
            }
        }
    }

    async fn open(
        &self,
        start: Start,
        place: schema::Place,
        kept: Option<Kept>,
    ) -> Result<(Arc<Session>, Vec<haft_agent::Message>), RpcError> {
        let _one = self.opening.acquire().await;
        if self.lock().len() >= MAX_SESSIONS {
            let message = format!("{MAX_SESSIONS} sessions are open; close one first");
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        let (session, messages) =
            Session::open(&self.client, &self.host, start, place, kept).await?;
        self.protocol()?
            .begin(&session.id, replay::prompts(&messages));
        self.unrecorded_ids().remove(&session.id);
        self.lock().insert(session.id.clone(), Arc::clone(&session));
        Ok((session, messages))
    }

    fn unrecorded_ids(&self) -> MutexGuard<'_, HashSet<String>> {
        self.unrecorded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this client has created a session that has had no prompt since.
    fn is_unrecorded(&self, id: &str) -> bool {
        let open = self.lock().get(id).cloned();
        match open {
            Some(session) => session.is_unrecorded(),
            None => self.unrecorded_ids().contains(id),
        }
    }

    async fn close(&self, session: &Session) {
        if session.is_unrecorded() {
            let mut ids = self.unrecorded_ids();
            if ids.len() >= MAX_UNRECORDED {
                ids.clear();
            }
            ids.insert(session.id.clone());
        }
        self.lock().remove(&session.id);
        session.close().await;
    }

    /// Opens an existing session. One that this client has open is opened again, with the
    /// settings that the user chose in it.
    async fn load(
        &self,
        id: String,
        place: schema::Place,
    ) -> Result<(Arc<Session>, Vec<haft_agent::Message>), RpcError> {
        let start = match self.is_unrecorded(&id) {
            true => Start::New(Some(id.clone())),
            false => Start::Recorded(id.clone()),
        };
        let open = self.lock().get(&id).cloned();
        let Some(session) = open else {
            return self.open(start, place, None).await;
        };
        if session.is_busy() {
            let message = "the session is working on a prompt; cancel it first";
            return Err(RpcError::new(code::INVALID_REQUEST, message));
        }
        session.check_open(start.clone(), &place).await?;
        let kept = session.kept();
        self.close(&session).await;
        let loaded = self.open(start.clone(), place, Some(kept.clone())).await;
        if loaded.is_err() {
            // The session stays open as it was.
            let _ = self.open(start, session.place().clone(), Some(kept)).await;
        }
        loaded
    }
}

/// A request that has been read.
enum Decoded {
    /// It is done.
    Answer(Value),
    Request(Incoming),
}

/// Beginning of a request.
enum Begun {
    /// It is done.
    Answer(Value),
    Work(Work),
    /// A prompt, and the answer to it that does not wait for its end.
    Prompt(
        Arc<Session>,
        crate::session::Accepted,
        Vec<crate::prompt::Part>,
        Option<Accepted>,
    ),
}

/// A request whose parameters are valid.
enum Work {
    Authenticate,
    New(schema::Place),
    Load(String, schema::Place, Replay),
    Fork(String, schema::Place),
    List(Option<std::path::PathBuf>, usize),
    Close(Arc<Session>),
    Delete(String),
    SetOption(Arc<Session>, schema::Chosen),
}
