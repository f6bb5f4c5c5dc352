//! A work folder, a home beside it, the command, and a recorded session.

use haft_store::sessions::{
    Approval, Batch, Call, NewMessage, NewSession, Outcome, Session, SessionKind, Sessions,
};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self {
            base: haft_testing::bed::Bed::new(
                env!("CARGO_BIN_EXE_haft"),
                env!("CARGO_TARGET_TMPDIR"),
            ),
        }
    }

    /// The whole list, newest first.
    pub(crate) fn listed(&self) -> Vec<Value> {
        lines(&self.says(&["sessions", "list", "--all", "--json"]))
    }

    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::open(self.state("sessions.db")).unwrap()
    }

    /// Records a session: a prompt, an answer with two calls, their results, an end. A
    /// sub-agent made the first call.
    pub(crate) fn agent(&self, id: &str) -> Session {
        let sessions = self.sessions();
        let new = |id: &str, parent: Option<(&str, &str)>| NewSession {
            id: Some(id.to_owned()),
            kind: SessionKind::Agent,
            work_dir: std::fs::canonicalize(self.work("")).unwrap(),
            toolset: "standard".to_owned(),
            provider: "replay".to_owned(),
            model: "scripted".to_owned(),
            title: None,
            parent: parent.map(|(id, call)| (id.to_owned(), call.to_owned())),
            system: Some("Be brief.".to_owned()),
        };
        let session = sessions.begin(new(id, None)).unwrap();
        let result = |id: &str, tool: &str, text: &str| json!({ "call_id": id, "tool": tool, "content": [{ "type": "text", "text": text }] });
        session
            .commit_blocking(Batch {
                messages: vec![
                    message("user", &json!({ "role": "user", "content": [{ "type": "text", "text": "fix <b>it</b> & \u{1b}[31mmore" }] })),
                    NewMessage {
                        usage: Some((900, 100, Some(0.125))),
                        ..message("assistant", &json!({ "role": "assistant", "parts": [
                            { "type": "reasoning", "text": "hm" },
                            { "type": "text", "text": "I look." },
                            { "type": "call", "id": "t1", "name": "task", "arguments": { "what": "look" } },
                            { "type": "call", "id": "w1", "name": "write", "arguments": { "path": "a.txt" } },
                        ] }))
                    },
                ],
                calls: vec![call("t1", "task"), call("w1", "write")],
                events: vec![(1, json!({ "type": "turn_start", "turn": 1 }).to_string())],
                ..Batch::default()
            })
            .unwrap();
        let child = sessions
            .begin(new(&format!("child-{id}"), Some((id, "t1"))))
            .unwrap();
        let prompt = json!({ "role": "user", "content": [{ "type": "text", "text": "look" }] });
        let messages = vec![message("user", &prompt)];
        child
            .commit_blocking(Batch {
                messages,
                ..Batch::default()
            })
            .unwrap();
        session
            .commit_blocking(Batch {
                messages: vec![
                    message("tool", &json!({ "role": "tool", "results": [
                        result("t1", "task", "looked"),
                        result("w1", "write", "```\nSuccessfully </pre><script>alert(1)</script>"),
                    ] })),
                    message("assistant", &json!({ "role": "assistant", "parts": [{ "type": "text", "text": "Done." }] })),
                ],
                outcomes: vec![outcome("t1", "looked"), outcome("w1", "Successfully")],
                ..Batch::default()
            })
            .unwrap();
        session
    }

    /// Records another call, with a file for its output.
    pub(crate) fn says_its_output_is(&self, session: &Session, call_id: &str, file: &Path) {
        session
            .commit_blocking(Batch {
                calls: vec![call(call_id, "bash")],
                outcomes: vec![Outcome {
                    output: Some(file.to_str().unwrap().to_owned()),
                    ..outcome(call_id, "a part")
                }],
                ..Batch::default()
            })
            .unwrap();
    }

    /// Records another call that waits for an answer.
    pub(crate) fn asks(&self, session: &Session) {
        session
            .commit_blocking(Batch {
                calls: vec![call("b1", "bash")],
                approvals: vec![Approval {
                    call_id: "b1".to_owned(),
                    question: "{}".to_owned(),
                }],
                ..Batch::default()
            })
            .unwrap();
    }
}

fn message(role: &str, body: &Value) -> NewMessage {
    NewMessage {
        role: role.to_owned(),
        body: body.to_string(),
        usage: None,
    }
}

fn call(call_id: &str, tool: &str) -> Call {
    Call {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        arguments: "{}".to_owned(),
        has_effect: true,
    }
}

fn outcome(call_id: &str, text: &str) -> Outcome {
    let reply = json!({ "content": [{ "type": "text", "text": text }], "is_error": false });
    Outcome {
        call_id: call_id.to_owned(),
        reply: reply.to_string(),
        is_error: false,
        duration_ms: 5,
        output: None,
    }
}

/// Parses JSON lines.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
