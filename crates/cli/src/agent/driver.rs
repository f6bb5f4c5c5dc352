//! Connects the chat to an agent.

use super::earlier;
use super::instructions::add_instruction;
use super::last_run::LastRun;
use super::model_choice::ModelChoice;
use super::plan::PlanFile;
use crate::commands::doctor;
use crate::commands::mcp_servers::list::{as_table, statuses};
use crate::commands::sessions::export;
use crate::confinement;
use crate::effects::Changed;
use async_trait::async_trait;
use futures::StreamExt;
use haft::ops::blocking::on_a_thread;
use haft::ops::effects::UndoMode;
use haft::ops::{Access, FilePath};
use haft::{Call, Content, Effect};
use haft_agent::provider::{Effort, Provider, UnknownEffort, model_names};
use haft_agent::{Agent, AgentEvent, EventKind, Resumed, Usage, UserInput};
use haft_chat::{ChatEvent, Driver, EarlierPrompt, EventStream, SessionEntry, Topic};
use haft_config::Settings;
use haft_store::sessions::{Filter, SessionKind, Sessions};
use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The agent behind a chat.
pub(crate) struct Live {
    pub(crate) agent: Agent,
    pub(crate) model_choice: ModelChoice,
    pub(crate) sessions: Option<Sessions>,
    pub(crate) work_dir: PathBuf,
    /// Whether a resumed session has unfinished work, which the next prompt continues.
    pub(crate) has_unfinished_run: AtomicBool,
    pub(crate) commands: AtomicU64,
    pub(crate) outputs: Arc<Outputs>,
    /// Start of the last run.
    pub(crate) run_started: Mutex<Option<SystemTime>>,
    /// The file with the plan, in plan mode.
    pub(crate) plan: Option<PlanFile>,
    /// Settings that reports are about, if the session has any.
    pub(crate) settings: Option<Arc<Settings>>,
}

/// Replies of the latest calls, for the chat to show in full.
#[derive(Default)]
pub(crate) struct Outputs {
    calls: Mutex<VecDeque<(String, Arc<Vec<Content>>)>>,
}

/// Answer of a session without a record of changes.
const NOT_RECORDED: &str =
    "changes are not recorded in this session (`effects: { record: true }` in your haft.yaml)";

/// Number of replies that are kept.
const MAX_OUTPUTS: usize = 20;

impl Outputs {
    fn observe(&self, kind: &EventKind) {
        if let EventKind::Tool(haft::EventKind::ToolEnd {
            call_id, content, ..
        }) = kind
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push_back((call_id.clone(), Arc::clone(content)));
            if calls.len() > MAX_OUTPUTS {
                calls.pop_front();
            }
        }
    }

    fn get(&self, call_id: &str) -> Option<String> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, content) = calls.iter().rev().find(|(id, _)| id == call_id)?;
        let texts = content.iter().filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        Some(texts.collect::<Vec<_>>().join("\n"))
    }
}

impl Live {
    /// Returns access to what has changed since a prompt.
    fn run_since(&self, prompt: &str) -> Option<LastRun> {
        let time = earlier::time(self.sessions.as_ref()?, self.agent.session(), prompt)?;
        let run = self.last_run()?;
        Some(LastRun {
            started: Some(time),
            ..run
        })
    }

    pub(crate) fn note_start(&self) {
        let mut started = self
            .run_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *started = Some(SystemTime::now());
    }

    /// Returns access to what the last run changed; `None` if that is not recorded.
    fn last_run(&self) -> Option<LastRun> {
        let session = self.agent.runtime().effects()?;
        let started = self
            .run_started
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Some(LastRun {
            changed: Changed::new(
                session.store().clone(),
                &self.work_dir,
                self.sessions.as_ref(),
            ),
            session: session.id().to_owned(),
            started: *started,
        })
    }
}

fn with_notes(text: String, notes: Vec<String>) -> UserInput {
    UserInput {
        notes,
        ..UserInput::from(text)
    }
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    file.write_all(text.as_bytes())
}

/// The rules for calls, and what the sandbox does.
fn permissions(settings: &Settings) -> String {
    let mut lines = confinement::rules(settings);
    let rules = settings.policy.rules().map(|rule| format!("rule {rule}"));
    lines.extend(rules);
    if settings.policy.is_empty() {
        lines.push("no rules of your own: `policy` in haft.yaml has them".to_owned());
    }
    lines.join("\n")
}

#[async_trait]
impl Driver for Live {
    async fn prompt(&self, text: String) -> Result<EventStream, String> {
        self.note_start();
        let notes = self.plan.as_ref().map(PlanFile::notes);
        let notes = notes.unwrap_or_default();
        let begun = if self.has_unfinished_run.swap(false, Ordering::Relaxed) {
            let prompt = Some(text).filter(|text| !text.trim().is_empty());
            let prompt = prompt.map(|text| with_notes(text, notes));
            let resumed = Resumed {
                answers: Vec::new(),
                prompt,
            };
            self.agent.resume(resumed).await
        } else {
            self.agent.prompt(with_notes(text, notes)).await
        };
        let events = begun.map_err(|busy| busy.to_string())?;
        let (handle, outputs) = (self.agent.handle(), Arc::clone(&self.outputs));
        let plan = self.plan.clone();
        let seen = events.map(move |event| {
            outputs.observe(&event.kind);
            if let Some(plan) = plan.as_ref().filter(|_| event.parent.is_none()) {
                plan.observe(&event.kind);
            }
            if event.parent.is_none()
                && matches!(event.kind, EventKind::Agent(AgentEvent::AgentEnd { .. }))
            {
                // Take back steering messages that arrived too late: the chat sends them
                // again or returns them to the input.
                let _ = handle.take_steering();
            }
            ChatEvent::from(event)
        });
        Ok(seen.boxed())
    }

    fn background_events(&self) -> EventStream {
        let outputs = Arc::clone(&self.outputs);
        let seen = self.agent.watch_background().map(move |event| {
            outputs.observe(&event.kind);
            ChatEvent {
                is_background: true,
                ..ChatEvent::from(event)
            }
        });
        seen.boxed()
    }

    async fn run_command(&self, line: String) -> Result<EventStream, String> {
        self.note_start();
        let tools = self.agent.tools();
        let names = ["bash", "exec", "execute"];
        let tool = names.into_iter().find(|name| {
            tools
                .get(name)
                .is_some_and(|tool| tool.effect() == Effect::Execute)
        });
        let tool = tool.ok_or("this session has no tool that runs commands")?;
        let (sender, receiver) = mpsc::unbounded_channel();
        let outputs = Arc::clone(&self.outputs);
        let number = self.commands.fetch_add(1, Ordering::Relaxed) + 1;
        let stop = CancellationToken::new();
        let stopping = stop.clone().drop_guard();
        let call = Call::new(tool, serde_json::json!({ "command": line }))
            .id(format!("person-{number}"))
            .cancel(stop)
            .on_event(move |kind| {
                let kind = kind.clone();
                outputs.observe(&EventKind::Tool(kind.clone()));
                let _ = sender.send(ChatEvent {
                    kind: EventKind::Tool(kind),
                    sub_agent: None,
                    is_background: false,
                });
            });
        let runtime = self.agent.runtime().clone();
        let work = tokio::spawn(async move { runtime.run(call).await });
        let events = futures::stream::unfold(
            (receiver, stopping, work),
            |(mut receiver, stopping, work)| async move {
                let seen = receiver.recv().await?;
                Some((seen, (receiver, stopping, work)))
            },
        );
        Ok(events.boxed())
    }

    fn has_unfinished_run(&self) -> bool {
        self.has_unfinished_run.load(Ordering::Relaxed)
    }

    fn steer(&self, text: String) {
        self.agent.steer(text);
    }

    fn abort(&self) {
        self.agent.abort();
    }

    async fn compact(&self) -> Result<String, String> {
        let begun = self.agent.compact().await;
        let mut events = begun.map_err(|busy| busy.to_string())?;
        let mut outcome = Err("the conversation is already short".to_owned());
        while let Some(event) = events.next().await {
            match event.kind {
                EventKind::Agent(AgentEvent::Compaction { before, after }) => {
                    outcome = Ok(format!("about {before} tokens, now {after}"));
                }
                EventKind::Agent(AgentEvent::Error { message }) => outcome = Err(message),
                _ => {}
            }
        }
        outcome
    }

    async fn set_model(&self, name: &str) -> Result<(), String> {
        let model = self.model_choice.set(Some(name), None)?;
        self.agent.set_model(model);
        Ok(())
    }

    fn efforts(&self) -> Vec<String> {
        let provider = self.agent.model().id().provider;
        match provider.parse::<Provider>() {
            Ok(_) => Effort::ALL.map(|level| level.name().to_owned()).to_vec(),
            Err(_) => Vec::new(),
        }
    }

    fn effort(&self) -> Option<String> {
        self.model_choice
            .effort()
            .map(|level| level.name().to_owned())
    }

    async fn set_effort(&self, level: &str) -> Result<(), String> {
        if self.efforts().is_empty() {
            return Err("this model has no effort to set".to_owned());
        }
        let level: Effort = level
            .parse()
            .map_err(|error: UnknownEffort| error.to_string())?;
        let model = self.model_choice.set(None, Some(Some(level)))?;
        self.agent.set_model(model);
        Ok(())
    }

    fn model(&self) -> String {
        self.agent.model().id().model
    }

    fn provider(&self) -> String {
        self.agent.model().id().provider
    }

    fn models(&self) -> Vec<String> {
        let id = self.agent.model().id();
        let mut models = vec![id.model.clone()];
        if let Ok(provider) = id.provider.parse::<Provider>() {
            let known = model_names(provider).into_iter().map(str::to_owned);
            models.extend(known.filter(|name| *name != id.model));
        }
        models
    }

    fn context(&self) -> Option<(u64, u64)> {
        Some(self.agent.context_size())
    }

    fn branch(&self) -> Option<String> {
        super::branch::of(&self.work_dir)
    }

    fn usage(&self) -> Usage {
        self.agent.usage()
    }

    async fn export(&self, file: String) -> Result<String, String> {
        let sessions = self
            .sessions
            .clone()
            .filter(|_| self.session_id().is_some());
        let sessions = sessions.ok_or("there is nothing to export yet")?;
        let id = self.agent.session().to_owned();
        let store = self
            .agent
            .runtime()
            .effects()
            .map(|all| all.store().clone());
        let name = match file.as_str() {
            "" => format!("session-{id}.md"),
            file => file.to_owned(),
        };
        let path = self.work_dir.join(&name);
        on_a_thread(move || {
            let text = export::as_markdown(&sessions, store.as_ref(), &id);
            let text = text.map_err(|error| error.to_string())?;
            write_new(&path, &text).map_err(|error| format!("cannot write {name}: {error}"))?;
            Ok(format!("written to {name}"))
        })
        .await?
    }

    async fn report(&self, topic: Topic) -> Result<String, String> {
        let settings = self
            .settings
            .clone()
            .ok_or("this session has no settings")?;
        match topic {
            Topic::Permissions => Ok(permissions(&settings)),
            Topic::Mcp => match statuses(&settings) {
                servers if servers.is_empty() => {
                    Ok("no MCP servers; `haft mcp add` adds one".to_owned())
                }
                servers => Ok(as_table(&servers)),
            },
            Topic::Doctor => {
                let found = doctor::report(&settings, self.agent.runtime()).await;
                found.map_err(|failure| failure.message)
            }
        }
    }

    fn tools(&self) -> Vec<(String, String)> {
        let definitions = self.agent.runtime().definitions().into_iter();
        let sentence = |text: &str| {
            let text = text.lines().next().unwrap_or_default();
            let end = text.find(". ").map_or(text.len(), |end| end + 1);
            text.get(..end).unwrap_or(text).to_owned()
        };
        definitions
            .map(|tool| (tool.name, sentence(&tool.description)))
            .collect()
    }

    async fn earlier_prompts(&self) -> Result<Vec<EarlierPrompt>, String> {
        let Some(sessions) = self.sessions.clone() else {
            return Ok(Vec::new());
        };
        let id = self.agent.session().to_owned();
        on_a_thread(move || earlier::prompts(&sessions, &id)).await?
    }

    async fn fork(&self, before: Option<String>) -> Result<Option<String>, String> {
        let sessions = self
            .sessions
            .clone()
            .filter(|_| self.session_id().is_some());
        let sessions = sessions.ok_or("there is nothing to copy yet")?;
        let id = self.agent.session().to_owned();
        on_a_thread(move || earlier::fork(&sessions, &id, before.as_deref())).await?
    }

    async fn undo_since_preview(&self, prompt: String) -> Result<Option<String>, String> {
        let Some(run) = self.run_since(&prompt) else {
            return Ok(None);
        };
        on_a_thread(move || run.undo_all(UndoMode::DryRun)).await?
    }

    async fn undo_since(&self, prompt: String) -> Result<String, String> {
        let run = self.run_since(&prompt).ok_or(NOT_RECORDED)?;
        let undone = on_a_thread(move || run.undo_all(UndoMode::Careful)).await??;
        Ok(undone.unwrap_or_else(|| "nothing to undo".to_owned()))
    }

    async fn add_instruction(&self, line: String) -> Result<String, String> {
        add_instruction(self.agent.runtime(), &line).await
    }

    fn plan_file(&self) -> Option<PathBuf> {
        self.plan.as_ref().map(|plan| plan.path().to_owned())
    }

    async fn plan(&self) -> Result<String, String> {
        let plan = self.plan.as_ref();
        plan.ok_or("the session is not in plan mode")?.read()
    }

    async fn changed(&self) -> Option<String> {
        if let Some(plan) = &self.plan {
            return plan.line();
        }
        let run = self.last_run()?;
        let summed = on_a_thread(move || run.summary()).await;
        summed.ok()?
    }

    async fn changes(&self, words: String) -> Result<String, String> {
        let run = self.last_run().ok_or(NOT_RECORDED)?;
        on_a_thread(move || run.shown(&words)).await?
    }

    async fn undo_preview(&self, words: String) -> Result<String, String> {
        let run = self.last_run().ok_or(NOT_RECORDED)?;
        on_a_thread(move || run.undo(&words, UndoMode::DryRun)).await?
    }

    async fn undo(&self, words: String) -> Result<String, String> {
        let run = self.last_run().ok_or(NOT_RECORDED)?;
        on_a_thread(move || run.undo(&words, UndoMode::Careful)).await?
    }

    async fn redo_preview(&self) -> Result<String, String> {
        let run = self.last_run().ok_or(NOT_RECORDED)?;
        on_a_thread(move || run.redo(UndoMode::DryRun)).await?
    }

    async fn redo(&self) -> Result<String, String> {
        let run = self.last_run().ok_or(NOT_RECORDED)?;
        on_a_thread(move || run.redo(UndoMode::Careful)).await?
    }

    async fn list_sessions(&self) -> Result<Vec<SessionEntry>, String> {
        let Some(sessions) = &self.sessions else {
            return Ok(Vec::new());
        };
        let filter = Filter {
            work_dir: Some(self.work_dir.clone()),
            kinds: vec![SessionKind::Agent],
            limit: Some(20),
            ..Filter::default()
        };
        let found = sessions.list(&filter).map_err(|error| error.to_string())?;
        let now = SystemTime::now();
        let entry = |one: &haft_store::sessions::Summary| {
            let waits = if one.waiting > 0 {
                ", needs approval"
            } else {
                ""
            };
            let turns = if one.turns == 1 { "turn" } else { "turns" };
            let age = crate::commands::sessions::age(now, one.updated);
            SessionEntry {
                id: one.id.clone(),
                title: one.title.clone().unwrap_or_default(),
                about: format!("{age} ago, {} {turns}{waits}", one.turns),
            }
        };
        let others = found.iter().filter(|one| one.id != self.agent.session());
        Ok(others.map(entry).collect())
    }

    fn session_id(&self) -> Option<String> {
        let is_begun = !self.agent.history().is_empty() && self.sessions.is_some();
        is_begun.then(|| self.agent.session().to_owned())
    }

    fn reply_text(&self, call_id: &str) -> Option<String> {
        self.outputs.get(call_id)
    }

    fn work_folder(&self) -> Option<FilePath> {
        let runtime = self.agent.runtime();
        let scope = Some(runtime.scope()).filter(|scope| scope.is_on_disk())?;
        let folder = scope.resolve(".", Access::Read).ok()?;
        Some(runtime.shown_from(folder))
    }
}
