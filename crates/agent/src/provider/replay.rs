//! A recording instead of a provider: the answers of an exported session, in order.

use super::failure::quoted;
use crate::{Answer, Message, Model, ModelError, ModelId, Part, Piece, Request, Trouble};
use async_trait::async_trait;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many characters are shown at once.
const PIECE: usize = 16;

/// A model that says what was said before. Nothing leaves this machine.
///
/// # Errors
/// When the text is no recording.
pub fn replay(recording: &str) -> Result<Arc<dyn Model>, RecordingError> {
    Ok(Recording::parse(recording)?.model())
}

/// An exported session, and those of the agents it started.
#[derive(Debug, Clone)]
pub struct Recording {
    model: String,
    main: String,
    /// The answers of each session.
    sessions: HashMap<String, Vec<Answer>>,
    pace: Duration,
}

/// Text that is no recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file that cannot be read.
    #[error("cannot read the recording {path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// Why.
        reason: String,
    },
    /// A line that makes no sense.
    #[error("line {line} of the recording {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A session it does not have.
    #[error("the recording has no session {}", quoted(session))]
    Session {
        /// Which.
        session: String,
    },
}

/// A line of it. Other kinds are there for others.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Session(Header),
    Message(Kept),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Header {
    version: u64,
    id: String,
    #[serde(default)]
    model: String,
}

#[derive(Deserialize)]
struct Kept {
    id: u64,
    parent: Option<u64>,
    session: Option<String>,
    message: Message,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// When a line makes no sense, with its number.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let wrong = |line: usize, reason: String| RecordingError::Line { line, reason };
        let mut header: Option<Header> = None;
        let mut kept: HashMap<String, Vec<Kept>> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            if line.trim().is_empty() {
                continue;
            }
            let line: Line = serde_json::from_str(line)
                .map_err(|error| wrong(number, format!("is not understood: {error}")))?;
            match (line, &header) {
                (Line::Session(first), None) => {
                    if first.version != 1 {
                        let reason =
                            format!("has version {}: this haft knows version 1", first.version);
                        return Err(wrong(number, reason));
                    }
                    header = Some(first);
                }
                (_, None) => {
                    let reason = "should be {\"type\":\"session\",…}: is this an export with \
                                  `--format jsonl`?";
                    return Err(wrong(number, reason.to_owned()));
                }
                (Line::Message(message), Some(header)) => {
                    let session = message.session.clone();
                    let session = session.unwrap_or_else(|| header.id.clone());
                    kept.entry(session).or_default().push(message);
                }
                (Line::Session(_) | Line::Other, Some(_)) => {}
            }
        }
        let Some(header) = header else {
            return Err(wrong(1, "is missing: the recording is empty".to_owned()));
        };
        let sessions = kept.into_iter();
        let sessions = sessions.map(|(session, kept)| (session, answers(kept)));
        Ok(Self {
            model: header.model,
            main: header.id,
            sessions: sessions.collect(),
            pace: Duration::ZERO,
        })
    }

    /// Reads a recording from a file that the person names.
    ///
    /// # Errors
    /// When the file cannot be read, or a line of it makes no sense.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the configuration names the file; no tool can"
        )]
        let text = std::fs::read_to_string(path).map_err(|error| RecordingError::File {
            path: haft::ops::text::decode::visible(&path.display().to_string()),
            reason: error.to_string(),
        })?;
        Self::parse(&text)
    }

    /// Waits so long before each piece, so that somebody can watch.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// The answers of the session that was exported.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.play(self.sessions.get(&self.main).cloned().unwrap_or_default())
    }

    /// The answers of a session that it started.
    ///
    /// # Errors
    /// When it has no such session.
    pub fn session(&self, session: &str) -> Result<Arc<dyn Model>, RecordingError> {
        let answers = self.sessions.get(session).cloned();
        let answers = answers.ok_or_else(|| RecordingError::Session {
            session: session.to_owned(),
        })?;
        Ok(self.play(answers))
    }

    /// The sessions in it, in no order.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    fn play(&self, answers: Vec<Answer>) -> Arc<dyn Model> {
        Arc::new(Player {
            model: self.model.clone(),
            answers,
            pace: self.pace,
            next: Mutex::new(0),
        })
    }
}

/// The answers that lead to the last message: what else was said in a session that
/// forked is not part of it.
fn answers(kept: Vec<Kept>) -> Vec<Answer> {
    let mut wanted = kept.last().map(|last| last.id);
    let mut answers = Vec::new();
    for message in kept.into_iter().rev() {
        if Some(message.id) != wanted {
            continue;
        }
        wanted = message.parent;
        if let Message::Assistant(answer) = message.message {
            answers.push(answer);
        }
    }
    answers.reverse();
    answers
}

struct Player {
    model: String,
    answers: Vec<Answer>,
    pace: Duration,
    next: Mutex<usize>,
}

#[async_trait]
impl Model for Player {
    fn id(&self) -> ModelId {
        ModelId {
            provider: "replay".to_owned(),
            model: self.model.clone(),
        }
    }

    async fn answer(
        &self,
        _: Request<'_>,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<Answer, ModelError> {
        let at = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = self.answers.get(at) else {
            let what = format!(
                "the recording is over after {} answers: record a longer session, or set \
                 another provider",
                self.answers.len()
            );
            return Err(ModelError::new(Trouble::Hopeless, what));
        };
        for part in &answer.parts {
            match part {
                Part::Text { text } => self.show(text, Piece::Text, show).await,
                Part::Reasoning { text } => self.show(text, Piece::Reasoning, show).await,
                Part::Call(call) => show(Piece::Call(call.name.clone())),
            }
        }
        // One that was interrupted is played again.
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = at + 1;
        Ok(answer.clone())
    }
}

impl Player {
    async fn show(
        &self,
        text: &str,
        piece: fn(String) -> Piece,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) {
        let mut chars = text.chars().peekable();
        while chars.peek().is_some() {
            if self.pace.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(self.pace).await;
            }
            show(piece(chars.by_ref().take(PIECE).collect()));
        }
    }
}

#[cfg(test)]
mod tests;
