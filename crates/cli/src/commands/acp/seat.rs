//! The agent of a session in an editor.

use crate::agent;
use crate::agent::driver::Live;
use crate::agent::model_choice::ModelChoice;
use async_trait::async_trait;
use haft_acp::{Choices, Seat};
use haft_agent::Agent;
use haft_agent::provider::Effort;
use haft_chat::Driver;
use haft_config::model::Model;
use haft_store::sessions::Sessions;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The agent, with the commands that the chat has too.
pub(super) struct EditorSeat {
    live: Live,
}

impl EditorSeat {
    pub(super) fn new(
        agent: Agent,
        chosen: Model,
        sessions: Option<Sessions>,
        work_dir: PathBuf,
        has_unfinished_run: bool,
    ) -> Self {
        Self {
            live: Live {
                agent,
                model_choice: ModelChoice::new(chosen),
                sessions,
                work_dir,
                has_unfinished_run: AtomicBool::new(has_unfinished_run),
                commands: AtomicU64::new(0),
                outputs: Arc::default(),
                run_started: std::sync::Mutex::default(),
                plan: None,
                settings: None,
            },
        }
    }
}

#[async_trait]
impl Seat for EditorSeat {
    fn agent(&self) -> &Agent {
        &self.live.agent
    }

    fn take_unfinished_run(&self) -> bool {
        self.live.has_unfinished_run.swap(false, Ordering::Relaxed)
    }

    async fn set_model(&self, choices: &Choices) -> Result<(), String> {
        // What is not a level is the default: the provider decides.
        let effort = choices.effort.as_ref();
        let effort = effort.map(|effort| effort.parse::<Effort>().ok());
        let model = self
            .live
            .model_choice
            .set(choices.model.as_deref(), effort)?;
        self.live.agent.set_model(model);
        Ok(())
    }

    fn note_run(&self) {
        self.live.note_start();
    }

    async fn compact(&self) -> Result<String, String> {
        self.live.compact().await
    }

    async fn changes(&self, words: String) -> Result<String, String> {
        self.live.changes(words).await
    }

    async fn undo(&self, words: String) -> Result<String, String> {
        self.live.undo(words).await
    }

    async fn redo(&self) -> Result<String, String> {
        self.live.redo().await
    }

    async fn close(&self) {
        agent::close_now(&self.live.agent).await;
    }
}
