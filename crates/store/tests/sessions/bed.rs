//! Helpers shared by the tests.

use haft_store::sessions::{
    Approval, Batch, Call, Decision, NewMessage, NewSession, Outcome, Session, SessionKind,
    Sessions,
};
use std::path::Path;
use tempfile::TempDir;

/// Creates a temporary folder on the disk that holds the build.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub fn open(folder: &TempDir) -> Sessions {
    open_at(folder.path())
}

pub fn open_at(folder: &Path) -> Sessions {
    Sessions::open(folder.join("sessions.db")).unwrap()
}

pub fn new() -> NewSession {
    NewSession {
        id: None,
        kind: SessionKind::Agent,
        work_dir: "/work".into(),
        toolset: "standard".to_owned(),
        provider: "replay".to_owned(),
        model: "scripted".to_owned(),
        title: None,
        parent: None,
        system: None,
    }
}

pub fn begin(sessions: &Sessions) -> Session {
    sessions.begin(new()).unwrap()
}

pub fn text_message(role: &str, text: &str) -> NewMessage {
    let body = serde_json::json!({ "role": role, "content": [{ "type": "text", "text": text }] });
    NewMessage {
        role: role.to_owned(),
        body: body.to_string(),
        usage: None,
    }
}

pub fn messages(texts: &[&str]) -> Batch {
    Batch {
        messages: texts
            .iter()
            .map(|text| text_message("user", text))
            .collect(),
        ..Batch::default()
    }
}

pub fn call(call_id: &str) -> Call {
    Call {
        call_id: call_id.to_owned(),
        tool: "write".to_owned(),
        arguments: "{}".to_owned(),
        has_effect: true,
    }
}

pub fn outcome(call_id: &str) -> Outcome {
    Outcome {
        call_id: call_id.to_owned(),
        reply: r#"{"content":[],"is_error":false}"#.to_owned(),
        is_error: false,
        duration_ms: 7,
        output: None,
    }
}

pub fn approval(call_id: &str) -> Approval {
    Approval {
        call_id: call_id.to_owned(),
        question: r#"{"ask":1}"#.to_owned(),
    }
}

pub fn decision(call_id: &str, answer: &str) -> Decision {
    Decision {
        call_id: call_id.to_owned(),
        answer: answer.to_owned(),
    }
}

/// Returns the texts of a history.
pub fn texts(sessions: &Sessions, id: &str) -> Vec<String> {
    let loaded = sessions.load(id).unwrap();
    let text = |body: &str| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        body["content"][0]["text"].as_str().unwrap().to_owned()
    };
    loaded
        .messages
        .iter()
        .map(|message| text(&message.body))
        .collect()
}
