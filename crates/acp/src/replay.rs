//! Replays a recorded conversation.

use crate::changes::Recorded;
use crate::port::SubAgent;
use crate::tool::CallView;
use crate::translate::{agent_of, call_id_in, ended};
use crate::update::{Block, CallUpdate, Kind, PlanEntry, Status, Update};
use haft::Content;
use haft::ops::effects::Session;
use haft_agent::{Message, ModelAnswer, Origin, Part, ToolResult};
use std::collections::HashMap;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Updates that may wait for the client. A call may show files of several megabytes.
const MAX_WAITING: usize = 8;

/// Maximum nesting of sub-agents, in case the record is broken.
const MAX_DEPTH: usize = 16;

/// Everything that a replay shows besides the messages.
pub(crate) struct Replay {
    /// Id of the session.
    pub(crate) session: String,
    pub(crate) work_dir: PathBuf,
    /// Whether the session can continue with calls that have no result. Otherwise they have
    /// failed.
    pub(crate) can_continue: bool,
    /// Recorded changes of calls, if there are any.
    pub(crate) recorded: Option<Session>,
    pub(crate) sub_agents: Vec<SubAgent>,
}

impl Replay {
    /// Starts a thread that reads what calls have changed, and returns the updates in order.
    pub(crate) fn start(self, messages: Vec<Message>) -> mpsc::Receiver<Update> {
        let (updates, receiver) = mpsc::channel(MAX_WAITING);
        tokio::task::spawn_blocking(move || {
            let recorded = self.recorded.as_ref().map(Recorded::read);
            let conversation = Conversation {
                replay: &self,
                session: &self.session,
                agent: None,
                recorded: recorded.as_ref(),
                updates: &updates,
                depth: 0,
                open: HashMap::new(),
            };
            conversation.send(&messages);
        });
        receiver
    }
}

/// A call without a result so far.
struct OpenCall {
    tool: String,
    kind: Kind,
    plan: Option<Vec<PlanEntry>>,
    /// Name of the sub-agent that it starts, if it starts one.
    agent: Option<String>,
}

/// The conversation of the session or of a sub-agent.
struct Conversation<'a> {
    replay: &'a Replay,
    session: &'a str,
    /// Name of the sub-agent.
    agent: Option<&'a str>,
    recorded: Option<&'a Recorded>,
    updates: &'a mpsc::Sender<Update>,
    /// Nesting of the sub-agent.
    depth: usize,
    /// Calls without a result so far, by id.
    open: HashMap<String, OpenCall>,
}

impl Conversation<'_> {
    fn send(mut self, messages: &[Message]) {
        for message in messages {
            match message {
                Message::User { content, origin } => match origin {
                    Origin::Prompt | Origin::Steering => self.said(content),
                    // Notes from haft to the model.
                    _ => {}
                },
                Message::Assistant(answer) => self.answered(answer),
                Message::Tool { results } => {
                    for result in results {
                        self.ended(result);
                    }
                }
            }
        }
        for (id, call) in std::mem::take(&mut self.open) {
            self.sub_agents_of(&id, call.agent.as_deref());
            if !self.replay.can_continue {
                let id = self.id(&id);
                self.update(Update::Call(Box::new(CallUpdate {
                    status: Some(Status::Failed),
                    ..CallUpdate::later(&id, &call.tool)
                })));
            }
        }
    }

    fn update(&self, update: Update) {
        // Fails when the session is closed meanwhile.
        let _ = self.updates.blocking_send(update);
    }

    fn id(&self, call_id: &str) -> String {
        call_id_in(&self.replay.session, self.session, call_id)
    }

    /// Of a sub-agent only the calls are shown, as when it works.
    fn is_own(&self) -> bool {
        self.session == self.replay.session
    }

    fn said(&self, content: &[Content]) {
        if self.is_own() {
            for update in said(content) {
                self.update(update);
            }
        }
    }

    fn answered(&mut self, answer: &ModelAnswer) {
        for part in &answer.parts {
            match part {
                Part::Text { text } if self.is_own() => self.update(Update::Answer(text.clone())),
                Part::Reasoning { text } if self.is_own() => {
                    self.update(Update::Thought(text.clone()));
                }
                Part::Text { .. } | Part::Reasoning { .. } => {}
                Part::Call(call) => {
                    let id = self.id(&call.id);
                    let view = CallView {
                        id: &id,
                        tool: &call.name,
                        arguments: &call.arguments,
                        agent: self.agent,
                        work_dir: &self.replay.work_dir,
                    };
                    let open = OpenCall {
                        tool: call.name.clone(),
                        kind: view.kind(),
                        plan: view.plan(),
                        agent: agent_of(&call.arguments).map(str::to_owned),
                    };
                    self.update(Update::Call(Box::new(view.announce(Status::Pending))));
                    self.open.insert(call.id.clone(), open);
                }
            }
        }
    }

    fn ended(&mut self, result: &ToolResult) {
        let call = self.open.remove(&result.call_id);
        let agent = call.as_ref().and_then(|call| call.agent.as_deref());
        self.sub_agents_of(&result.call_id, agent);
        let changes = self
            .recorded
            .map(|recorded| recorded.of_call(&result.call_id));
        let (id, kind) = (
            self.id(&result.call_id),
            call.as_ref().map_or(Kind::Other, |call| call.kind),
        );
        self.update(ended(
            (&id, &result.tool),
            kind,
            result.is_error,
            &result.content,
            changes.unwrap_or_default(),
        ));
        // A list of todos that was refused is not the plan.
        let plan = call.and_then(|call| call.plan).filter(|_| !result.is_error);
        if let Some(plan) = plan {
            self.update(Update::Plan(plan));
        }
    }

    /// Shows the calls of the sub-agents that a call has started.
    fn sub_agents_of(&self, call_id: &str, agent: Option<&str>) {
        let all = self.replay.sub_agents.iter();
        let started = all.filter(|one| {
            let (session, call) = &one.started_by;
            session == self.session && call == call_id && self.depth < MAX_DEPTH
        });
        for one in started {
            let recorded = self
                .recorded
                .and_then(|recorded| recorded.of_sub_agent(&one.session));
            let conversation = Conversation {
                replay: self.replay,
                session: &one.session,
                agent,
                recorded: recorded.as_ref(),
                updates: self.updates,
                depth: self.depth + 1,
                open: HashMap::new(),
            };
            conversation.send(&one.messages);
        }
    }
}

/// Returns the number of prompts in a conversation.
pub(crate) fn prompts(messages: &[Message]) -> u64 {
    let prompts = messages.iter().filter(|message| match message {
        Message::User { content, origin } => {
            matches!(origin, Origin::Prompt | Origin::Steering) && said(content).next().is_some()
        }
        _ => false,
    });
    u64::try_from(prompts.count()).unwrap_or(u64::MAX)
}

fn said(content: &[Content]) -> impl Iterator<Item = Update> {
    let blocks = content.iter().filter_map(block);
    blocks.enumerate().map(|(at, block)| Update::User {
        block,
        is_first: at == 0,
    })
}

fn block(content: &Content) -> Option<Block> {
    Some(match content {
        Content::Text { text } if text.is_empty() => return None,
        Content::Text { text } => Block::Text(text.clone()),
        Content::Image { data, media_type } => Block::Image {
            data: data.clone(),
            media_type: media_type.clone(),
        },
        other => Block::Text(other.in_words().into_owned()),
    })
}
