//! The agent of a session in an editor.

use super::host::messages;
use crate::agent::driver::Live;
use crate::agent::model_choice::ModelChoice;
use crate::{agent, effects, saved_prompts};
use async_trait::async_trait;
use haft::ops::blocking::on_a_thread;
use haft_acp::{Choices, Seat, SlashCommand, SubAgent};
use haft_agent::provider::Effort;
use haft_agent::{Agent, AgentEvent, EventKind};
use haft_chat::{Driver, SavedPrompt};
use haft_config::model::Model;
use haft_store::sessions::{Loaded, Sessions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The agent, with the commands that the chat has too.
pub(super) struct EditorSeat {
    live: Live,
    /// Folder of the user's configuration.
    config: Option<PathBuf>,
}

impl EditorSeat {
    pub(super) fn new(
        agent: Agent,
        chosen: Model,
        sessions: Option<Sessions>,
        work_dir: PathBuf,
        config: Option<PathBuf>,
        has_unfinished_run: bool,
    ) -> Self {
        Self {
            config,
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

    async fn slash_commands(&self) -> Vec<SlashCommand> {
        let config = self.config.clone();
        let read = on_a_thread(move || saved_prompts::read(config.as_deref()));
        let command = |saved: SavedPrompt| SlashCommand {
            name: saved.name,
            description: saved.description,
            hint: saved.hint,
            prompt: saved.prompt,
        };
        let saved = read.await.unwrap_or_default();
        saved.into_iter().map(command).collect()
    }

    async fn sub_agents(&self) -> Vec<SubAgent> {
        let Some(sessions) = self.live.sessions.clone() else {
            return Vec::new();
        };
        let id = self.live.agent.session().to_owned();
        let read = on_a_thread(move || {
            let ids = effects::descendants(&sessions, &id);
            let loaded = ids.iter().filter_map(|id| sessions.load(id).ok());
            let sub_agent = |loaded: Loaded| {
                Some(SubAgent {
                    messages: messages(&loaded),
                    session: loaded.info.id,
                    started_by: loaded.info.parent?,
                })
            };
            loaded.filter_map(sub_agent).collect()
        });
        read.await.unwrap_or_default()
    }

    async fn compact(&self) -> Result<(u64, u64), String> {
        let begun = self.live.agent.compact().await;
        let mut events = begun.map_err(|busy| busy.to_string())?;
        let mut outcome = Err("the conversation is already short".to_owned());
        while let Some(event) = events.next().await {
            match event.kind {
                EventKind::Agent(AgentEvent::Compaction { before, after }) => {
                    outcome = Ok((before, after));
                }
                EventKind::Agent(AgentEvent::Error { message }) => outcome = Err(message),
                _ => {}
            }
        }
        outcome
    }

    async fn export(&self, file: String) -> Result<String, String> {
        self.live.export(file).await
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
