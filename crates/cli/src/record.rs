//! The record of calls that a person or another program makes: what is about to be done
//! before it is done, what came of it after.

use crate::config::Settings;
use crate::{env, output};
use async_trait::async_trait;
use haft::{Effect, Error, Intent, Journal, Outcome};
use haft_store::sessions::{self, Batch, Call, Kind, New, Session, Sessions};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The database of sessions in a state folder.
pub(crate) const FILE: &str = "sessions.db";

/// Where calls are recorded.
pub(crate) struct Record {
    pub(crate) journal: Arc<dyn Journal>,
    /// The id of the session, if there is one.
    pub(crate) session: Option<String>,
}

/// Makes a record for calls. Without a state folder there is none.
pub(crate) fn calls(settings: &Settings, kind: Kind) -> Option<Record> {
    let state = settings.folders.state.as_deref()?;
    let begun = open(settings, state).and_then(|sessions| {
        let new = New {
            id: None,
            kind,
            work_dir: settings.work_dir.clone(),
            toolset: settings.toolset.clone(),
            provider: String::new(),
            model: String::new(),
            title: None,
            parent: None,
            system: None,
        };
        sessions.begin(new).map_err(|error| error.to_string())
    });
    Some(match begun {
        Ok(session) => Record {
            session: Some(session.id().to_owned()),
            journal: Arc::new(Recorder {
                session,
                made: AtomicU64::new(0),
                open: Mutex::default(),
            }),
        },
        Err(reason) => {
            if !settings.quiet {
                output::note(&format!(
                    "warning: calls cannot be recorded: {reason}; those that change something are not made"
                ));
            }
            Record {
                journal: Arc::new(Closed { reason }),
                session: None,
            }
        }
    })
}

/// Opens the sessions of a state folder, with secrets kept out of them.
pub(crate) fn open(settings: &Settings, state: &Path) -> Result<Sessions, String> {
    let sessions = Sessions::open(state.join(FILE)).map_err(|error| error.to_string())?;
    sessions.redact(env::secrets().into_iter().chain(settings.secrets.clone()));
    Ok(sessions)
}

/// Whether something is changed that a record should tell of.
fn has_effect(effect: Effect) -> bool {
    !matches!(effect, Effect::Read | Effect::Pure)
}

/// Nothing can be recorded, so nothing may change.
struct Closed {
    reason: String,
}

#[async_trait]
impl Journal for Closed {
    async fn intent(&self, intent: Intent) -> Result<(), Error> {
        if has_effect(intent.effect) {
            return Err(Error::failed(self.reason.clone()));
        }
        Ok(())
    }

    async fn outcome(&self, _: Outcome) -> Result<(), Error> {
        Ok(())
    }
}

/// Records into one session.
struct Recorder {
    session: Session,
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

impl Recorder {
    /// The batch of an intent, with what the first call says the session is about.
    fn intended(open: &Open) -> Batch {
        Batch {
            calls: vec![open.call.clone()],
            title: open.title.clone(),
            ..Batch::default()
        }
    }
}

#[async_trait]
impl Journal for Recorder {
    async fn intent(&self, intent: Intent) -> Result<(), Error> {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        let arguments = intent.arguments.to_string();
        let open = Open {
            title: (number == 1).then(|| title(&intent.tool, &arguments)),
            call: Call {
                // Distinct everywhere: callers number their calls anew each time.
                call_id: format!("{}-{number}", self.session.id()),
                tool: intent.tool,
                arguments,
                has_effect: has_effect(intent.effect),
            },
        };
        if open.call.has_effect {
            let batch = Self::intended(&open);
            self.session.commit(batch).await.map_err(told)?;
        }
        let mut calls = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        calls.entry(intent.call_id).or_default().push(open);
        Ok(())
    }

    async fn outcome(&self, outcome: Outcome) -> Result<(), Error> {
        let open = {
            let mut calls = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let open = calls.get_mut(&outcome.call_id).and_then(Vec::pop);
            if calls.get(&outcome.call_id).is_some_and(Vec::is_empty) {
                calls.remove(&outcome.call_id);
            }
            open
        };
        let Some(open) = open else {
            return Ok(());
        };
        let is_error = outcome
            .reply
            .get("is_error")
            .and_then(serde_json::Value::as_bool);
        let came = sessions::Outcome {
            call_id: open.call.call_id.clone(),
            reply: outcome.reply.to_string(),
            is_error: is_error.unwrap_or(false),
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            output: outcome
                .output
                .map(|path| path.to_string_lossy().into_owned()),
        };
        let batch = Batch {
            outcomes: vec![came],
            ..match open.call.has_effect {
                true => Batch::default(),
                false => Self::intended(&open),
            }
        };
        // What only looked left nothing that a kill could make uncertain.
        if open.call.has_effect {
            self.session.commit(batch).await.map(drop).map_err(told)
        } else {
            self.session.commit_soon(batch).await.map_err(told)
        }
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
