//! The stored form of a handshake.

use super::message::{Described, Introduction, Question};
use crate::external::time;
use serde_json::{Value, json};

/// A handshake, and the question that it answered.
pub(super) struct CachedHandshake {
    pub(super) question: Question,
    pub(super) introduction: Introduction,
}

/// Version of the stored form. Older entries are discarded.
const VERSION: u64 = 2;

impl CachedHandshake {
    pub(super) fn written(&self) -> Value {
        let tools = self.introduction.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "guidance": tool.guidance,
                "timeout": tool.timeout.map(|timeout| timeout.as_secs_f64()),
            })
        });
        json!({
            "form": VERSION,
            "question": match self.question {
                Question::Describe => "describe 2",
                Question::Plain => "describe",
                Question::Init => "init",
            },
            "init": self.introduction.is_init,
            "second": self.introduction.is_second,
            "tools": tools.collect::<Vec<_>>(),
        })
    }

    pub(super) fn read(kept: &Value) -> Option<Self> {
        if kept["form"].as_u64() != Some(VERSION) {
            return None;
        }
        let tools = kept["tools"].as_array()?.iter().map(|tool| {
            Some(Described {
                name: tool["name"].as_str()?.to_owned(),
                description: tool["description"].as_str()?.to_owned(),
                parameters: tool["parameters"].clone(),
                guidance: tool["guidance"].as_str().map(str::to_owned),
                timeout: tool["timeout"].as_f64().and_then(time::seconds),
            })
        });
        Some(Self {
            question: match kept["question"].as_str()? {
                "describe 2" => Question::Describe,
                "describe" => Question::Plain,
                "init" => Question::Init,
                _ => return None,
            },
            introduction: Introduction {
                tools: tools.collect::<Option<_>>()?,
                is_second: kept["second"].as_bool()?,
                is_init: kept["init"].as_bool()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_handshake_can_be_read_again() {
        let introduction = Introduction {
            tools: vec![Described {
                name: "a".into(),
                description: "A".into(),
                parameters: json!({ "type": "object" }),
                guidance: Some("use it".into()),
                timeout: Some(std::time::Duration::from_millis(1500)),
            }],
            is_second: true,
            is_init: true,
        };
        let kept = CachedHandshake {
            question: Question::Plain,
            introduction: introduction.clone(),
        };
        let read = CachedHandshake::read(&kept.written()).unwrap();
        assert_eq!(
            (read.question, read.introduction),
            (Question::Plain, introduction)
        );
        assert!(CachedHandshake::read(&json!({ "form": 0 })).is_none());
        assert!(CachedHandshake::read(&json!({ "form": VERSION, "tools": 7 })).is_none());
    }
}
