//! What the chat needs of an agent.

use crate::chat::{Driver, Events, Seen};
use crate::config::model::Model as Chosen;
use async_trait::async_trait;
use futures::StreamExt;
use haft::ops::{Access, FilePath};
use haft::{Call, Content, Effect};
use haft_agent::{Agent, AgentEvent, EventKind, Resumed, Usage};
use haft_store::sessions::{Filter, Kind, Sessions};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// An agent that a person talks to.
pub(crate) struct Live {
    pub(crate) agent: Agent,
    pub(crate) chosen: Chosen,
    pub(crate) sessions: Option<Sessions>,
    pub(crate) work_dir: PathBuf,
    /// Something was left over that the next words take up.
    pub(crate) is_left: AtomicBool,
    pub(crate) commands: AtomicU64,
    pub(crate) outputs: Arc<Outputs>,
}

/// What the last calls answered.
#[derive(Default)]
pub(crate) struct Outputs {
    calls: Mutex<VecDeque<(String, Arc<Vec<Content>>)>>,
}

/// How many of them are kept.
const KEPT: usize = 20;

impl Outputs {
    fn look(&self, kind: &EventKind) {
        if let EventKind::Tool(haft::EventKind::ToolEnd {
            call_id, content, ..
        }) = kind
        {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push_back((call_id.clone(), Arc::clone(content)));
            if calls.len() > KEPT {
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

#[async_trait]
impl Driver for Live {
    async fn prompt(&self, text: String) -> Result<Events, String> {
        let begun = if self.is_left.swap(false, Ordering::Relaxed) {
            let prompt = Some(text).filter(|text| !text.trim().is_empty());
            let resumed = Resumed {
                answers: Vec::new(),
                prompt,
            };
            self.agent.resume(resumed).await
        } else {
            self.agent.prompt(text).await
        };
        let events = begun.map_err(|busy| busy.to_string())?;
        let (handle, outputs) = (self.agent.handle(), Arc::clone(&self.outputs));
        let seen = events.map(move |event| {
            outputs.look(&event.kind);
            if event.parent.is_none()
                && matches!(event.kind, EventKind::Agent(AgentEvent::AgentEnd { .. }))
            {
                // What it did not hear any more the chat says again, or gives back.
                let _ = handle.unsay();
            }
            Seen::from(event)
        });
        Ok(seen.boxed())
    }

    fn background(&self) -> Events {
        let outputs = Arc::clone(&self.outputs);
        let seen = self.agent.watch_background().map(move |event| {
            outputs.look(&event.kind);
            Seen {
                is_background: true,
                ..Seen::from(event)
            }
        });
        seen.boxed()
    }

    async fn command(&self, line: String) -> Result<Events, String> {
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
                outputs.look(&EventKind::Tool(kind.clone()));
                let _ = sender.send(Seen {
                    kind: EventKind::Tool(kind),
                    child: None,
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

    fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
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
        let mut said = Err("there is nothing to make shorter".to_owned());
        while let Some(event) = events.next().await {
            match event.kind {
                EventKind::Agent(AgentEvent::Compaction { before, after }) => {
                    said = Ok(format!("about {before} tokens, now {after}"));
                }
                EventKind::Agent(AgentEvent::Error { message }) => said = Err(message),
                _ => {}
            }
        }
        said
    }

    async fn set_model(&self, name: &str) -> Result<(), String> {
        match super::model_of(&self.chosen, Some(name)) {
            Ok(Some(model)) => {
                self.agent.set_model(model);
                Ok(())
            }
            Ok(None) => Err("no provider is set up for it".to_owned()),
            Err(failure) => Err(failure.message),
        }
    }

    fn model(&self) -> String {
        self.agent.model().id().model
    }

    fn usage(&self) -> Usage {
        self.agent.usage()
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

    async fn sessions(&self) -> Result<Vec<String>, String> {
        let Some(sessions) = &self.sessions else {
            return Ok(Vec::new());
        };
        let filter = Filter {
            work_dir: Some(self.work_dir.clone()),
            kinds: vec![Kind::Agent],
            most: Some(20),
            ..Filter::default()
        };
        let found = sessions.list(&filter).map_err(|error| error.to_string())?;
        let line = |one: &haft_store::sessions::Summary| {
            let title = one.title.clone().unwrap_or_default();
            let waits = if one.waiting > 0 {
                " (waits for approval)"
            } else {
                ""
            };
            let turns = if one.turns == 1 { "turn" } else { "turns" };
            format!("{}  {} {turns}  {title}{waits}", one.id, one.turns)
        };
        Ok(found.iter().map(line).collect())
    }

    fn session(&self) -> Option<String> {
        let is_begun = !self.agent.history().is_empty() && self.sessions.is_some();
        is_begun.then(|| self.agent.session().to_owned())
    }

    fn output(&self, call_id: &str) -> Option<String> {
        self.outputs.get(call_id)
    }

    fn folder(&self) -> Option<FilePath> {
        let runtime = self.agent.runtime();
        let scope = Some(runtime.scope()).filter(|scope| scope.is_on_disk())?;
        let folder = scope.resolve(".", Access::Read).ok()?;
        Some(runtime.shown_from(folder))
    }
}
