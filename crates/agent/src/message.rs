//! Messages of a conversation, in the form that is recorded, exported and replayed. It does
//! not depend on a provider, except for [`ModelAnswer::native`].

use crate::Usage;
use haft::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A message from the user, or from haft in the user's role.
    User {
        /// Text and pictures.
        content: Vec<Content>,
        /// The reason for the message.
        #[serde(default)]
        origin: Origin,
    },
    /// An answer of the model.
    Assistant(ModelAnswer),
    /// Results of the calls in the previous message.
    Tool {
        /// One result per call, in the order of the calls.
        results: Vec<ToolResult>,
    },
}

/// The reason for a message in the user's role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user asked for something.
    #[default]
    Prompt,
    /// The user said it while the agent was working.
    Steering,
    /// haft tells the model something, such as that it repeats itself.
    Note,
    /// Summary that replaces earlier messages.
    Summary,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// Text, reasoning and calls, in order.
    pub parts: Vec<Part>,
    /// Reason why the model stopped.
    pub stop: Stop,
    /// Tokens and cost.
    #[serde(default)]
    pub usage: Usage,
    /// Name of the model that answered.
    #[serde(default)]
    pub model: String,
    /// The answer as its provider wants it back in later requests, which only that
    /// provider's module reads. Other providers use `parts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Value>,
    /// Pictures that were omitted from the request. Later requests omit them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedPicture>,
}

/// Position of an omitted picture in a recorded conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedPicture {
    /// Id of the message in the record.
    pub message: i64,
    /// Index of the result in the message, if the picture belongs to a tool result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<usize>,
    /// Index of the content block.
    pub block: usize,
    /// The reason for omitting it.
    #[serde(default)]
    pub reason: OmissionReason,
}

/// The reason for omitting a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OmissionReason {
    /// The provider rejected the conversation with it.
    #[default]
    Rejected,
    /// Newer pictures fill the request.
    RequestFull,
}

impl ModelAnswer {
    /// Returns the calls.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns the text, without reasoning.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text for the user.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning, as far as the provider reveals it.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A tool call.
    Call(ToolCall),
}

/// A tool call that the model requested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id, unique within the session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// An object, or the raw text if the model did not send a JSON object.
    pub arguments: Value,
}

/// The result of a call, as the model receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Text and pictures for the model.
    pub content: Vec<Content>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// The reason why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model finished.
    #[default]
    End,
    /// The model waits for the results of its calls.
    Calls,
    /// The answer reached its maximum length.
    Length,
    /// The provider or the model declined to answer.
    Refusal,
    /// The run was stopped; the answer is partial.
    Interrupted,
}

/// A prompt from the user: text, and what comes with it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserInput {
    /// The text.
    pub text: String,
    /// Pictures that belong to the text.
    pub pictures: Vec<Content>,
    /// Facts that haft tells the model before the prompt, each as a message of its own.
    pub notes: Vec<String>,
}

impl UserInput {
    /// Returns the messages of the prompt: the notes, then what the user sent.
    pub(crate) fn into_messages(self) -> Vec<Message> {
        let notes = self.notes.into_iter();
        let mut messages: Vec<_> = notes
            .map(|note| Message::user(note, Origin::Note))
            .collect();
        let mut content = vec![Content::Text { text: self.text }];
        content.extend(self.pictures);
        messages.push(Message::User {
            content,
            origin: Origin::Prompt,
        });
        messages
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Message {
    /// Creates a prompt from the user.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self::user(text, Origin::Prompt)
    }

    /// Creates a message in the user's role.
    pub fn user(text: impl Into<String>, origin: Origin) -> Self {
        let content = vec![Content::Text { text: text.into() }];
        Self::User { content, origin }
    }
}
