//! What a plugin said of itself, in a form that can be kept.

use super::Protocol;
use super::message::{Described, Introduction};
use serde_json::{Value, json};

/// An introduction, and the protocol it was made in.
pub(super) struct Remembered {
    pub(super) protocol: Protocol,
    pub(super) introduction: Introduction,
}

/// What is kept is made anew when its form changes.
const FORM: u64 = 1;

impl Remembered {
    pub(super) fn written(&self) -> Value {
        let tools = self.introduction.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "guidance": tool.guidance,
            })
        });
        json!({
            "form": FORM,
            "init": self.protocol == Protocol::Init,
            "second": self.introduction.is_second,
            "tools": tools.collect::<Vec<_>>(),
        })
    }

    pub(super) fn read(kept: &Value) -> Option<Self> {
        if kept["form"].as_u64() != Some(FORM) {
            return None;
        }
        let is_init = kept["init"].as_bool()?;
        let tools = kept["tools"].as_array()?.iter().map(|tool| {
            Some(Described {
                name: tool["name"].as_str()?.to_owned(),
                description: tool["description"].as_str()?.to_owned(),
                parameters: tool["parameters"].clone(),
                guidance: tool["guidance"].as_str().map(str::to_owned),
            })
        });
        Some(Self {
            protocol: if is_init {
                Protocol::Init
            } else {
                Protocol::Describe
            },
            introduction: Introduction {
                tools: tools.collect::<Option<_>>()?,
                is_second: kept["second"].as_bool()?,
                is_init,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let introduction = Introduction {
            tools: vec![Described {
                name: "a".into(),
                description: "A".into(),
                parameters: json!({ "type": "object" }),
                guidance: Some("use it".into()),
            }],
            is_second: true,
            is_init: true,
        };
        let kept = Remembered {
            protocol: Protocol::Init,
            introduction: introduction.clone(),
        };
        let read = Remembered::read(&kept.written()).unwrap();
        assert_eq!(
            (read.protocol, read.introduction),
            (Protocol::Init, introduction)
        );
        assert!(Remembered::read(&json!({ "form": 0 })).is_none());
        assert!(Remembered::read(&json!({ "form": 1, "tools": 7 })).is_none());
    }
}
