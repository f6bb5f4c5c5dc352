//! The ways to a tool.

use super::Place;
use async_trait::async_trait;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Longer than any call of a page takes, so that one that hangs is named.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A way to the tools.
#[async_trait]
pub trait Route: Send + Sync {
    /// Whether what a tool remembers is still there at the next call.
    fn keeps_session(&self) -> bool;

    /// Begins a session.
    ///
    /// # Errors
    ///
    /// What a person should know about a session that did not begin.
    async fn open(&self, place: &Place) -> Result<Box<dyn Session>, String>;
}

/// Calls, one after the other.
#[async_trait]
pub trait Session: Send {
    /// Makes a call.
    ///
    /// # Errors
    ///
    /// There is no reply, or it breaks a promise of the route.
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, String>;

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// It did not end as it should.
    async fn close(self: Box<Self>) -> Result<(), String>;
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text blocks, joined.
    pub text: String,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl Answer {
    /// From the blocks that both routes write alike.
    pub(super) fn of(content: &Value, is_error: bool) -> Result<Self, String> {
        let blocks = content
            .as_array()
            .ok_or_else(|| format!("content is no array: {content}"))?;
        let texts: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        Ok(Self {
            text: texts.join("\n"),
            is_error,
        })
    }
}

/// The built command, for one toolset.
#[derive(Debug, Clone)]
pub struct Haft {
    /// The binary.
    pub program: PathBuf,
    /// Whose tools are called.
    pub toolset: String,
}

impl Haft {
    /// The command in its place.
    pub(super) fn at(&self, place: &Place) -> Launch {
        let mut arguments = vec![
            "--dir".into(),
            place.work().into(),
            "--toolset".into(),
            self.toolset.clone().into(),
        ];
        if let Some(config) = place.config() {
            arguments.extend(["--config".into(), config.into()]);
        }
        Launch {
            program: self.program.clone(),
            arguments,
            folder: place.beside("home"),
            variables: place.variables(),
        }
    }
}

/// How the command is started in a place.
pub(super) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    variables: [(&'static str, PathBuf); 3],
}

impl Launch {
    /// The command, with nothing of the environment of the tests.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}
