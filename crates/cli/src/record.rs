//! Records calls made with `haft call` and `haft mcp`: the intent before a call runs, the
//! outcome after it.

use crate::env;
use crate::output;
use async_trait::async_trait;
use haft::{Error, Intent, Journal, Outcome};
use haft_config::Settings;
use haft_store::sessions::{self, Batch, Call, NewSession, Session, SessionKind, Sessions};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// File name of the session database in the state folder.
pub(crate) const FILE: &str = "sessions.db";

/// Tool name under which a note at the end of a session is recorded. No tool can have
/// this name.
const END: &str = "(end of session)";

/// Journal of one session.
pub(crate) struct Record {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) session: String,
}

/// Creates the record of a new session, or nothing without a state folder. The database
/// is opened by the first call.
pub(crate) fn calls(settings: &Settings, kind: SessionKind) -> Option<Record> {
    Some(Records::new(settings, kind)?.begin())
}

/// Creates records for several sessions in one database, which is opened once.
pub(crate) struct Records {
    database: Arc<Database>,
    new: NewSession,
    warns: bool,
}

impl Records {
    /// Returns nothing without a state folder.
    pub(crate) fn new(settings: &Settings, kind: SessionKind) -> Option<Self> {
        Some(Self {
            database: Arc::new(Database {
                state: settings.folders.state.clone()?,
                secrets: settings.secrets.clone(),
                opened: OnceLock::new(),
            }),
            new: NewSession {
                id: None,
                kind,
                work_dir: settings.paths.work_dir.clone(),
                toolset: settings.toolset.clone(),
                provider: String::new(),
                model: String::new(),
                title: None,
                parent: None,
                system: None,
            },
            warns: !settings.quiet,
        })
    }

    /// Creates the record of another session.
    pub(crate) fn begin(&self) -> Record {
        let id = sessions::new_id();
        let new = NewSession {
            id: Some(id.clone()),
            ..self.new.clone()
        };
        Record {
            session: id.clone(),
            journal: Arc::new(Recorder {
                id,
                pending: PendingSession {
                    database: Arc::clone(&self.database),
                    new,
                },
                warns: self.warns,
                session: OnceCell::new(),
                call_count: AtomicU64::new(0),
                open: Mutex::default(),
            }),
        }
    }
}

/// The database, opened when first needed.
struct Database {
    state: PathBuf,
    secrets: Vec<String>,
    /// The open database, or the reason why it cannot be opened.
    opened: OnceLock<Result<Sessions, String>>,
}

/// Opens the session database of a state folder and redacts secrets in what it records.
pub(crate) fn open(state: &Path, secrets: &[String]) -> Result<Sessions, String> {
    let sessions = Sessions::open(state.join(FILE)).map_err(|error| error.to_string())?;
    sessions.redact(
        env::read()
            .secrets()
            .into_iter()
            .chain(secrets.iter().cloned()),
    );
    Ok(sessions)
}

/// Everything needed to create the session in the database.
#[derive(Clone)]
struct PendingSession {
    database: Arc<Database>,
    new: NewSession,
}

impl PendingSession {
    fn begin(self) -> Result<Session, String> {
        let Database {
            state,
            secrets,
            opened,
        } = &*self.database;
        let sessions = opened.get_or_init(|| open(state, secrets)).clone()?;
        sessions.begin(self.new).map_err(|error| error.to_string())
    }
}

/// Records into one session.
struct Recorder {
    id: String,
    pending: PendingSession,
    warns: bool,
    /// The session, or the reason why it cannot be recorded.
    session: OnceCell<Result<Session, String>>,
    /// Number of calls so far.
    call_count: AtomicU64,
    /// Running calls by the ids their callers chose, which may repeat.
    open: Mutex<HashMap<String, Vec<RunningCall>>>,
}

struct RunningCall {
    call: Call,
    title: Option<String>,
}

impl RunningCall {
    /// Returns the batch that records the intent. The first call also gives the session
    /// its title.
    fn intent_batch(&self) -> Batch {
        Batch {
            calls: vec![self.call.clone()],
            title: self.title.clone(),
            ..Batch::default()
        }
    }
}

impl Recorder {
    /// Returns the session, which the first call creates on a blocking thread, because
    /// another process may hold the database lock.
    async fn session(&self) -> Result<&Session, &str> {
        let begin = || async {
            let pending = self.pending.clone();
            let begun = haft::ops::blocking::on_a_thread(|| pending.begin()).await;
            let begun = begun.unwrap_or_else(Err);
            if let (Err(reason), true) = (&begun, self.warns) {
                output::note(&format!(
                    "warning: calls cannot be recorded: {reason}; calls that change something are refused"
                ));
            }
            begun
        };
        self.session
            .get_or_init(begin)
            .await
            .as_ref()
            .map_err(String::as_str)
    }

    /// Numbers a call. Returns it with the id that its caller chose.
    fn running(&self, intent: Intent) -> (String, RunningCall) {
        let number = self.call_count.fetch_add(1, Ordering::Relaxed) + 1;
        let arguments = intent.arguments.unwrap_or_default().to_string();
        let running = RunningCall {
            title: (number == 1).then(|| title(&intent.tool, &arguments)),
            call: Call {
                // Unique in the database: callers start their numbering over in each
                // session.
                call_id: format!("{}-{number}", self.id),
                tool: intent.tool,
                arguments,
                has_effect: intent.effect.may_change(),
            },
        };
        (intent.call_id, running)
    }

    /// Removes a call from the running ones.
    fn take_running(&self, call_id: &str) -> Option<RunningCall> {
        let mut calls = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let same = calls.get_mut(call_id)?;
        let open = same.pop();
        if same.is_empty() {
            calls.remove(call_id);
        }
        open
    }
}

#[async_trait]
impl Journal for Recorder {
    async fn intents(&self, intents: Vec<Intent>) -> Result<(), Error> {
        let has_effect = intents.iter().any(|intent| intent.effect.may_change());
        let session = match self.session().await {
            Ok(session) => session,
            // Nothing can be recorded, so nothing may change.
            Err(reason) if has_effect => return Err(Error::failed(reason)),
            Err(_) => return Ok(()),
        };
        let calls = intents.into_iter().map(|intent| self.running(intent));
        let calls: Vec<_> = calls.collect();
        let with_effect = calls.iter().map(|(_, one)| one);
        let with_effect = with_effect.filter(|one| one.call.has_effect);
        let batches: Vec<_> = with_effect.map(RunningCall::intent_batch).collect();
        if !batches.is_empty() {
            session.commit_all(batches).await.map_err(store_error)?;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for (call_id, one) in calls {
            open.entry(call_id).or_default().push(one);
        }
        Ok(())
    }

    async fn outcome(&self, outcome: Outcome) -> Result<(), Error> {
        let (Some(open), Ok(session)) = (self.take_running(&outcome.call_id), self.session().await)
        else {
            return Ok(());
        };
        let output = outcome
            .output
            .map(|path| path.to_string_lossy().into_owned());
        let outcomes = vec![sessions::Outcome {
            call_id: open.call.call_id.clone(),
            reply: outcome.reply.to_string(),
            is_error: outcome.is_error,
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            output,
        }];
        if open.call.has_effect {
            let batch = Batch {
                outcomes,
                ..Batch::default()
            };
            return session.commit(batch).await.map(drop).map_err(store_error);
        }
        // A call that only read something leaves no doubt after a kill, so its record may
        // be written later.
        let batch = Batch {
            outcomes,
            ..open.intent_batch()
        };
        session.commit_soon(batch).await.map_err(store_error)
    }

    fn recorded_as(&self, call_id: &str) -> Option<String> {
        let calls = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let open = calls.get(call_id)?.last()?;
        Some(open.call.call_id.clone())
    }

    async fn note(&self, text: String) -> Result<(), Error> {
        let session = self.session().await.map_err(Error::failed)?;
        let call_id = format!("{}-end", self.id);
        let reply = serde_json::json!({
            "content": [{ "type": "text", "text": text }],
            "is_error": false,
        });
        let batch = Batch {
            calls: vec![Call {
                call_id: call_id.clone(),
                tool: END.to_owned(),
                arguments: "{}".to_owned(),
                has_effect: false,
            }],
            outcomes: vec![sessions::Outcome {
                call_id,
                reply: reply.to_string(),
                is_error: false,
                duration_ms: 0,
                output: None,
            }],
            ..Batch::default()
        };
        session.commit(batch).await.map(drop).map_err(store_error)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn store_error(error: sessions::Error) -> Error {
    Error::failed(error.to_string())
}

/// Title of a session: its first call, shortened.
fn title(tool: &str, arguments: &str) -> String {
    let words: String = arguments.chars().take(120).collect();
    format!("{tool} {words}")
}
