//! A work folder, a home beside it, a scripted model, and an editor's client.

use haft_testing::acp::Client;
use haft_testing::model::{ModelReply, Script, Scripted, Turn};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// Key that the model wants.
pub(crate) const KEY: &str = "sk-canary-9c2e71";

pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
    pub(crate) server: Scripted,
}

impl Bed {
    pub(crate) fn new(script: impl Script + 'static) -> Self {
        Self::with(script, "")
    }

    /// With more settings of the user.
    pub(crate) fn with(script: impl Script + 'static, more: &str) -> Self {
        let base =
            haft_testing::bed::Bed::new(env!("CARGO_BIN_EXE_haft"), env!("CARGO_TARGET_TMPDIR"));
        let server = Scripted::start(script);
        base.user(&format!(
            "provider: openai-completions\nmodel: scripted\nbase_url: \"{}\"\napi_key: {KEY}\n{more}",
            server.url()
        ));
        Self { base, server }
    }

    /// The command of an editor.
    pub(crate) fn agent(&self) -> Command {
        self.command(&["acp"])
    }

    /// An editor that is connected.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&mut self.agent())
    }

    /// An editor with an open session.
    pub(crate) fn seated(&self) -> (Client, String) {
        let mut client = self.client();
        let session = client.session(&self.folder());
        (client, session)
    }

    /// The work folder.
    pub(crate) fn folder(&self) -> PathBuf {
        self.work("").components().collect()
    }

    pub(crate) fn place(&self, session: &str) -> Value {
        json!({ "sessionId": session, "cwd": self.folder(), "mcpServers": [] })
    }

    /// The last request to the model.
    pub(crate) fn last_request(&self) -> Value {
        self.server.received().last().unwrap().json()
    }
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

/// A turn that says something.
pub(crate) fn says(text: &str) -> Turn {
    Turn::Reply(ModelReply::text(text))
}

/// A turn that calls a tool.
pub(crate) fn calls(id: &str, tool: &str, arguments: &Value) -> Turn {
    Turn::Reply(ModelReply::calling(id, tool, arguments))
}

/// A turn that runs a command.
pub(crate) fn runs(id: &str, command: &str) -> Turn {
    calls(id, "bash", &json!({ "command": command }))
}
