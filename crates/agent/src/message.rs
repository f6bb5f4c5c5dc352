//! What was said: the form that is kept, exported and played back. No provider's
//! words are in it but those it needs to hear again verbatim.

use crate::Usage;
use haft::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From the person, or from haft on their behalf.
    User {
        /// What.
        content: Vec<Content>,
        /// Why it is there.
        #[serde(default)]
        origin: Origin,
    },
    /// From the model.
    Assistant(Answer),
    /// What came of the calls of the message before, in their order.
    Tool {
        /// One for each call.
        results: Vec<ToolResult>,
    },
}

/// Why a message of the user's is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// They asked for something.
    #[default]
    Prompt,
    /// They said it while the model was at work.
    Steering,
    /// haft says something the model should know, such as that it repeats itself.
    Note,
    /// What was said before, in short.
    Summary,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Its parts in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: Stop,
    /// What it took.
    #[serde(default)]
    pub usage: Usage,
    /// Who gave it.
    #[serde(default)]
    pub model: String,
    /// What its provider wants to see again verbatim, in a form that only the module
    /// of that provider reads. Another provider goes by the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Value>,
    /// The pictures that the model was not sent, because its provider refused the
    /// conversation with them. They stay out from here on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A picture of a recorded conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The number of the message in the record.
    pub message: i64,
    /// The number of the result in it, if it is one of a tool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<usize>,
    /// The number of the block in that.
    pub block: usize,
}

impl Answer {
    /// The calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Its text, without reasoning.
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
    /// Words for the person.
    Text {
        /// The words.
        text: String,
    },
    /// How it came to them, as far as the provider shows it.
    Reasoning {
        /// The words.
        text: String,
    },
    /// A tool is to be called.
    Call(ToolCall),
}

/// A call that the model wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Its id, distinct within the session.
    pub id: String,
    /// The tool.
    pub name: String,
    /// An object; or a text, where what came is none.
    pub arguments: Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What the model gets.
    pub content: Vec<Content>,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It was done.
    #[default]
    End,
    /// It waits for calls.
    Calls,
    /// It became too long.
    Length,
    /// The provider or the model declined.
    Refusal,
    /// Somebody stopped it; this much had come.
    Interrupted,
}

/// A message in a conversation. Whoever sends it again and again knows it by this
/// place in memory, so a conversation is kept and grown, not rebuilt.
#[derive(Debug)]
pub struct Said {
    /// The message.
    pub message: Message,
}

impl Said {
    /// A message that nobody has sent yet.
    #[must_use]
    pub fn new(message: Message) -> Arc<Self> {
        Arc::new(Self { message })
    }
}

impl Message {
    /// A text of the person's.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self::user(text, Origin::Prompt)
    }

    /// A text that haft says.
    pub fn user(text: impl Into<String>, origin: Origin) -> Self {
        let content = vec![Content::Text { text: text.into() }];
        Self::User { content, origin }
    }
}
