//! The record of calls that a person or another program makes: what is about to be done
//! before it is done, what came of it after.

use crate::config::Settings;
use crate::{env, output};
use async_trait::async_trait;
use haft::{Effect, Error, Intent, Journal, Outcome};
use haft_store::sessions::{self, Batch, Call, Kind, New, Session, Sessions};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// The database of sessions in a state folder.
pub(crate) const FILE: &str = "sessions.db";

/// What the record calls the end of a session, where it has something to say: no tool has
/// such a name.
const END: &str = "(end of session)";

/// Where calls are recorded.
pub(crate) struct Record {
    pub(crate) journal: Arc<dyn Journal>,
    /// The id of the session.
    pub(crate) session: String,
}

/// Makes a record for calls. Without a state folder there is none. Nothing is opened
/// before the first call.
pub(crate) fn calls(settings: &Settings, kind: Kind) -> Option<Record> {
    Some(Records::new(settings, kind)?.begin())
}

/// Makes records for several sessions, in one database that is opened once.
pub(crate) struct Records {
    database: Arc<Database>,
    new: New,
    warns: bool,
}

impl Records {
    /// Without a state folder there is none.
    pub(crate) fn new(settings: &Settings, kind: Kind) -> Option<Self> {
        Some(Self {
            database: Arc::new(Database {
                state: settings.folders.state.clone()?,
                secrets: settings.secrets.clone(),
                opened: OnceLock::new(),
            }),
            new: New {
                id: None,
                kind,
                work_dir: settings.work_dir.clone(),
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

    /// A record for one more session.
    pub(crate) fn begin(&self) -> Record {
        let id = sessions::new_id();
        let new = New {
            id: Some(id.clone()),
            ..self.new.clone()
        };
        Record {
            session: id.clone(),
            journal: Arc::new(Recorder {
                id,
                begin: Begin {
                    database: Arc::clone(&self.database),
                    new,
                },
                warns: self.warns,
                session: OnceCell::new(),
                made: AtomicU64::new(0),
                open: Mutex::default(),
            }),
        }
    }
}

/// The database, once somebody needed it.
struct Database {
    state: PathBuf,
    secrets: Vec<String>,
    /// Or why there is none.
    opened: OnceLock<Result<Sessions, String>>,
}

/// Opens the sessions of a state folder, with secrets kept out of them.
pub(crate) fn open(state: &Path, secrets: &[String]) -> Result<Sessions, String> {
    let sessions = Sessions::open(state.join(FILE)).map_err(|error| error.to_string())?;
    sessions.redact(env::secrets().into_iter().chain(secrets.iter().cloned()));
    Ok(sessions)
}

/// Whether something is changed that a record should tell of.
fn has_effect(effect: Effect) -> bool {
    !matches!(effect, Effect::Read | Effect::Pure)
}

/// What it takes to begin.
#[derive(Clone)]
struct Begin {
    database: Arc<Database>,
    new: New,
}

impl Begin {
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
    begin: Begin,
    warns: bool,
    /// Or why there is none.
    session: OnceCell<Result<Session, String>>,
    /// How many calls there were.
    made: AtomicU64,
    /// Calls under way, by the ids that their callers gave them. Those may repeat.
    open: Mutex<HashMap<String, Vec<Open>>>,
}

/// A call under way.
struct Open {
    call: Call,
    title: Option<String>,
}

impl Open {
    /// The batch of its intent, with what the first call says the session is about.
    fn intended(&self) -> Batch {
        Batch {
            calls: vec![self.call.clone()],
            title: self.title.clone(),
            ..Batch::default()
        }
    }
}

impl Recorder {
    /// The session. It is opened on a thread that may wait for another process.
    async fn session(&self) -> Result<&Session, &str> {
        let begin = || async {
            let begin = self.begin.clone();
            let begun = haft::ops::blocking::on_a_thread(|| begin.begin()).await;
            let begun = begun.unwrap_or_else(Err);
            if let (Err(reason), true) = (&begun, self.warns) {
                output::note(&format!(
                    "warning: calls cannot be recorded: {reason}; those that change something are not made"
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

    /// Takes a call from those under way.
    fn ended(&self, call_id: &str) -> Option<Open> {
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
    async fn intent(&self, intent: Intent) -> Result<(), Error> {
        let has_effect = has_effect(intent.effect);
        let session = match self.session().await {
            Ok(session) => session,
            // Nothing can be recorded, so nothing may change.
            Err(reason) if has_effect => return Err(Error::failed(reason)),
            Err(_) => return Ok(()),
        };
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let arguments = intent.arguments.to_string();
        let open = Open {
            title: (number == 1).then(|| title(&intent.tool, &arguments)),
            call: Call {
                // Distinct everywhere: callers number their calls anew each time.
                call_id: format!("{}-{number}", self.id),
                tool: intent.tool,
                arguments,
                has_effect,
            },
        };
        if has_effect {
            session.commit(open.intended()).await.map_err(told)?;
        }
        let mut calls = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(intent.call_id).or_default().push(open);
        Ok(())
    }

    async fn outcome(&self, outcome: Outcome) -> Result<(), Error> {
        let (Some(open), Ok(session)) = (self.ended(&outcome.call_id), self.session().await) else {
            return Ok(());
        };
        let is_error = outcome
            .reply
            .get("is_error")
            .and_then(serde_json::Value::as_bool);
        let output = outcome
            .output
            .map(|path| path.to_string_lossy().into_owned());
        let outcomes = vec![sessions::Outcome {
            call_id: open.call.call_id.clone(),
            reply: outcome.reply.to_string(),
            is_error: is_error.unwrap_or(false),
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            output,
        }];
        if open.call.has_effect {
            let batch = Batch {
                outcomes,
                ..Batch::default()
            };
            return session.commit(batch).await.map(drop).map_err(told);
        }
        // What only looked left nothing that a kill could make uncertain.
        let batch = Batch {
            outcomes,
            ..open.intended()
        };
        session.commit_soon(batch).await.map_err(told)
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
        session.commit(batch).await.map(drop).map_err(told)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn told(error: sessions::Error) -> Error {
    Error::failed(error.to_string())
}

/// A call in a few words.
fn title(tool: &str, arguments: &str) -> String {
    let words: String = arguments.chars().take(120).collect();
    format!("{tool} {words}")
}
