//! Replays the answers of an exported session instead of asking a provider.

use super::failure::quoted;
use crate::{
    Chunk, Message, Model, ModelAnswer, ModelError, ModelErrorKind, ModelId, Part, Request,
};
use async_trait::async_trait;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of characters per chunk.
const CHUNK_CHARS: usize = 16;

/// Creates a model that replays a recording. It sends nothing over the network.
///
/// # Errors
/// When the text is not a valid recording.
pub fn replay(recording: &str) -> Result<Arc<dyn Model>, RecordingError> {
    Ok(Recording::parse(recording)?.model())
}

/// An exported session, with the sessions of its sub-agents.
#[derive(Debug, Clone)]
pub struct Recording {
    model: String,
    main: String,
    /// Answers by session id.
    sessions: HashMap<String, Vec<ModelAnswer>>,
    pace: Duration,
}

/// An invalid recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read the recording {path}: {reason}")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// A line is not valid.
    #[error("line {line} of the recording {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Problem, as the rest of the sentence.
        reason: String,
    },
    /// The recording does not have this session.
    #[error("the recording has no session {}", quoted(session))]
    Session {
        /// Id of the session.
        session: String,
    },
}

/// A line of a recording. Lines of other types are ignored.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RecordingLine {
    Session(Header),
    Message(RecordedMessage),
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
struct RecordedMessage {
    id: u64,
    parent: Option<u64>,
    session: Option<String>,
    message: Message,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// When a line is not valid, with its number.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let wrong = |line: usize, reason: String| RecordingError::Line { line, reason };
        let mut header: Option<Header> = None;
        let mut messages: HashMap<String, Vec<RecordedMessage>> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            if line.trim().is_empty() {
                continue;
            }
            let line: RecordingLine = serde_json::from_str(line)
                .map_err(|error| wrong(number, format!("is not valid: {error}")))?;
            match (line, &header) {
                (RecordingLine::Session(first), None) => {
                    if first.version != 1 {
                        let reason = format!(
                            "has version {}, but this haft supports version 1",
                            first.version
                        );
                        return Err(wrong(number, reason));
                    }
                    header = Some(first);
                }
                (_, None) => {
                    let reason = "should be {\"type\":\"session\",…}; was the session exported \
                                  with `--format jsonl`?";
                    return Err(wrong(number, reason.to_owned()));
                }
                (RecordingLine::Message(message), Some(header)) => {
                    let session = message.session.clone();
                    let session = session.unwrap_or_else(|| header.id.clone());
                    messages.entry(session).or_default().push(message);
                }
                (RecordingLine::Session(_) | RecordingLine::Other, Some(_)) => {}
            }
        }
        let Some(header) = header else {
            return Err(wrong(1, "is missing: the recording is empty".to_owned()));
        };
        let sessions = messages.into_iter();
        let sessions = sessions.map(|(session, messages)| (session, answers(messages)));
        Ok(Self {
            model: header.model,
            main: header.id,
            sessions: sessions.collect(),
            pace: Duration::ZERO,
        })
    }

    /// Reads a recording from a file that the configuration names.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is not valid.
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

    /// Sets a delay before each chunk, so that a viewer can follow.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Returns a model that replays the exported session.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.play(self.sessions.get(&self.main).cloned().unwrap_or_default())
    }

    /// Returns a model that replays the session of a sub-agent.
    ///
    /// # Errors
    /// When the recording does not have this session.
    pub fn session(&self, session: &str) -> Result<Arc<dyn Model>, RecordingError> {
        let answers = self.sessions.get(session).cloned();
        let answers = answers.ok_or_else(|| RecordingError::Session {
            session: session.to_owned(),
        })?;
        Ok(self.play(answers))
    }

    /// Returns the ids of all sessions, in no particular order.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.sessions.keys().map(String::as_str)
    }

    fn play(&self, answers: Vec<ModelAnswer>) -> Arc<dyn Model> {
        Arc::new(ReplayModel {
            model: self.model.clone(),
            answers,
            pace: self.pace,
            next: Mutex::new(0),
        })
    }
}

/// Returns the answers on the path to the last message. Other branches of a forked session
/// are left out.
fn answers(messages: Vec<RecordedMessage>) -> Vec<ModelAnswer> {
    let mut next = messages.last().map(|last| last.id);
    let mut answers = Vec::new();
    for message in messages.into_iter().rev() {
        if Some(message.id) != next {
            continue;
        }
        next = message.parent;
        if let Message::Assistant(answer) = message.message {
            answers.push(answer);
        }
    }
    answers.reverse();
    answers
}

struct ReplayModel {
    model: String,
    answers: Vec<ModelAnswer>,
    pace: Duration,
    next: Mutex<usize>,
}

#[async_trait]
impl Model for ReplayModel {
    fn id(&self) -> ModelId {
        ModelId {
            provider: "replay".to_owned(),
            model: self.model.clone(),
        }
    }

    async fn answer(
        &self,
        _: Request<'_>,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError> {
        let at = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = self.answers.get(at) else {
            let what = format!(
                "the recording has ended after {} answers; record a longer session, or set \
                 another provider",
                self.answers.len()
            );
            return Err(ModelError::new(ModelErrorKind::Permanent, what));
        };
        for part in &answer.parts {
            match part {
                Part::Text { text } => self.show(text, Chunk::Text, show).await,
                Part::Reasoning { text } => self.show(text, Chunk::Reasoning, show).await,
                Part::Call(call) => show(Chunk::Call(call.name.clone())),
            }
        }
        // An answer that was interrupted is replayed again.
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = at + 1;
        Ok(answer.clone())
    }
}

impl ReplayModel {
    async fn show(
        &self,
        text: &str,
        chunk: fn(String) -> Chunk,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) {
        let mut chars = text.chars().peekable();
        while chars.peek().is_some() {
            if self.pace.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(self.pace).await;
            }
            show(chunk(chars.by_ref().take(CHUNK_CHARS).collect()));
        }
    }
}

#[cfg(test)]
mod tests;
