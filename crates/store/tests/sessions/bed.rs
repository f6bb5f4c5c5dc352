//! What the tests share.

use haft_store::sessions::{
    Approval, Batch, Call, Decision, Kind, New, NewMessage, Outcome, Session, Sessions,
};
use std::path::Path;
use tempfile::TempDir;

/// A folder of its own on the disk the code is built on.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

pub fn open(folder: &TempDir) -> Sessions {
    open_at(folder.path())
}

pub fn open_at(folder: &Path) -> Sessions {
    Sessions::open(folder.join("sessions.db")).unwrap()
}

pub fn new() -> New {
    New {
        id: None,
        kind: Kind::Agent,
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

pub fn said(role: &str, text: &str) -> NewMessage {
    let body = serde_json::json!({ "role": role, "content": [{ "type": "text", "text": text }] });
    NewMessage {
        role: role.to_owned(),
        body: body.to_string(),
        usage: None,
    }
}

pub fn messages(texts: &[&str]) -> Batch {
    Batch {
        messages: texts.iter().map(|text| said("user", text)).collect(),
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

/// The texts of a conversation.
pub fn texts(sessions: &Sessions, id: &str) -> Vec<String> {
    let loaded = sessions.look(id).unwrap();
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
