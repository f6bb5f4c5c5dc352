//! The routes by which a page can call a tool.

use super::SectionFolders;
use async_trait::async_trait;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Longer than any call in a page takes, so that only a hanging call reaches it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A way to call the tools.
#[async_trait]
pub trait Route: Send + Sync {
    /// Whether the state of a session lasts until the next call.
    fn keeps_session(&self) -> bool;

    /// Starts a session.
    ///
    /// # Errors
    ///
    /// Returns why the session could not be started.
    async fn open(&self, folders: &SectionFolders) -> Result<Box<dyn Session>, String>;
}

/// A session, which makes one call at a time.
#[async_trait]
pub trait Session: Send {
    /// Makes a call.
    ///
    /// # Errors
    ///
    /// Fails if the reply is missing or violates the protocol of the route.
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolReply, String>;

    /// Ends the session.
    ///
    /// # Errors
    ///
    /// Fails if it did not end cleanly.
    async fn close(self: Box<Self>) -> Result<(), String>;
}

/// The reply to a call.
#[derive(Debug, PartialEq, Eq)]
pub struct ToolReply {
    /// The text blocks, joined with line breaks.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolReply {
    /// Reads content blocks, which are the same on both routes.
    pub(super) fn of(content: &Value, is_error: bool) -> Result<Self, String> {
        let blocks = content
            .as_array()
            .ok_or_else(|| format!("content is not an array: {content}"))?;
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

/// The built command, with one toolset.
#[derive(Debug, Clone)]
pub struct Haft {
    /// Path of the binary.
    pub program: PathBuf,
    /// Toolset whose tools are called.
    pub toolset: String,
}

impl Haft {
    /// Prepares the command for a section.
    pub(super) fn launch(&self, folders: &SectionFolders) -> Launch {
        let mut arguments = vec![
            "--dir".into(),
            folders.work().into(),
            "--toolset".into(),
            self.toolset.clone().into(),
        ];
        if let Some(config) = folders.config() {
            arguments.extend(["--config".into(), config.into()]);
        }
        Launch {
            program: self.program.clone(),
            arguments,
            folder: folders.beside("home"),
            variables: folders.variables(),
        }
    }
}

/// How to start the command for a section.
pub(super) struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    variables: [(&'static str, PathBuf); 3],
}

impl Launch {
    /// Builds the command without the environment of the tests.
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
