//! Fixtures: a folder, agents with sub-agents, and their events.

use crate::scripted::{Next, Scripted, calls, text};
use async_trait::async_trait;
use futures::future::BoxFuture;
use haft::Runtime;
use haft_agent::{
    Agent, Chunk, Events, Message, Model, ModelAnswer, ModelError, ModelId, Request, SubagentSpec,
    Subagents, ToolResult,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Bed {
    pub(crate) folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder.path().join(name).exists()
    }

    pub(crate) fn runtime(&self, set: impl FnOnce(haft::Builder) -> haft::Builder) -> Runtime {
        let builder = Runtime::builder().dir(self.folder.path()).every_tool();
        set(builder).build().unwrap()
    }

    /// Creates an agent with these sub-agents.
    pub(crate) async fn agent(&self, model: &Arc<Scripted>, subagents: Subagents) -> Agent {
        self.agent_in(self.runtime(|builder| builder), model, subagents)
            .await
    }

    pub(crate) async fn agent_in(
        &self,
        runtime: Runtime,
        model: &Arc<Scripted>,
        subagents: Subagents,
    ) -> Agent {
        let agent = Agent::new(model.clone(), runtime).backoff(Duration::from_millis(1));
        let (agent, warnings) = agent.subagents(subagents).await.unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        agent
    }
}

/// Describes a sub-agent that uses `model`.
pub(crate) fn worker(name: &str) -> SubagentSpec {
    SubagentSpec {
        name: name.to_owned(),
        description: format!("Does the work of a {name}."),
        model: Some(name.to_owned()),
        ..SubagentSpec::default()
    }
}

/// Creates sub-agents whose models are found by name.
pub(crate) fn team<const N: usize>(
    specs: impl IntoIterator<Item = SubagentSpec>,
    models: [(&str, Arc<dyn Model>); N],
) -> Subagents {
    let models: BTreeMap<String, Arc<dyn Model>> = models
        .into_iter()
        .map(|(name, model)| (name.to_owned(), model))
        .collect();
    Subagents {
        agents: specs.into_iter().map(Into::into).collect(),
        model_by_name: Some(Arc::new(move |name| {
            let model = models.get(name).cloned();
            model.ok_or_else(|| "no such model".to_owned())
        })),
        ..Subagents::default()
    }
}

/// Creates an answer that starts one task.
pub(crate) fn calls_tool(tool: &str, request: &str) -> Next {
    calls([("ask", tool, json!({ "request": request }))])
}

pub(crate) fn task(
    id: &'static str,
    kind: &str,
    task_id: Option<&str>,
) -> (&'static str, &'static str, Value) {
    let mut arguments = json!({ "description": "work", "prompt": "Go on.", "subagent_type": kind });
    if let Some(task_id) = task_id {
        arguments["task_id"] = task_id.into();
    }
    (id, "task", arguments)
}

/// Collects all events until the end, and checks them per session.
pub(crate) async fn all(mut events: Events) -> Vec<Value> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(serde_json::to_value(&event).unwrap());
    }
    check(&seen);
    seen
}

pub(crate) async fn run(agent: &Agent, prompt: &str) -> Vec<Value> {
    all(agent.prompt(prompt).await.unwrap()).await
}

/// Returns the events of a type, either of the agent or of its sub-agents.
pub(crate) fn of_type<'a>(
    events: &'a [Value],
    kind: &str,
    session: Option<&str>,
) -> Vec<&'a Value> {
    let is_it = |event: &&Value| {
        event["type"] == kind && session.is_none_or(|session| event["session"] == session)
    };
    events.iter().filter(is_it).collect()
}

/// Returns the sessions of the sub-agents, in order.
pub(crate) fn children(events: &[Value]) -> Vec<String> {
    let starts = of_type(events, "agent_start", None);
    let children = starts.iter().filter(|event| event["parent"].is_string());
    children
        .map(|event| event["session"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks the invariants of the events of each session.
fn check(events: &[Value]) {
    let mut last: BTreeMap<&str, u64> = BTreeMap::new();
    let mut open: Vec<(&str, &str)> = Vec::new();
    for event in events {
        let session = event["session"].as_str().unwrap();
        let seq = event["seq"].as_u64().unwrap();
        let last = last.entry(session).or_default();
        assert!(seq > *last, "seq does not rise: {event}");
        *last = seq;
        let call = (session, event["call_id"].as_str().unwrap_or_default());
        match event["type"].as_str().unwrap() {
            "tool_start" => open.push(call),
            "tool_end" => {
                let at = open.iter().position(|open| *open == call);
                open.remove(at.unwrap_or_else(|| panic!("an end without a start: {event}")));
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let end = events.last().unwrap();
    assert!(
        end["type"] == "agent_end" && end["parent"].is_null(),
        "{end}"
    );
}

pub(crate) fn end(events: &[Value]) -> &Value {
    events.last().unwrap()
}

/// Returns the results in the last message that has any.
pub(crate) fn results(history: &[Message]) -> Vec<ToolResult> {
    let found = history.iter().rev().find_map(|message| match message {
        Message::Tool { results } => Some(results.clone()),
        _ => None,
    });
    found.unwrap()
}

/// Returns the result of the first call.
pub(crate) fn first_result(model: &Scripted) -> (String, bool) {
    let result = results(&model.last()).remove(0);
    let text = match &result.content[0] {
        haft::Content::Text { text } => text.clone(),
        _ => panic!("no text"),
    };
    (text, result.is_error)
}

pub(crate) fn task_id(text: &str) -> String {
    let (_, rest) = text.rsplit_once("task_id: ").unwrap();
    rest.trim_end_matches(']').to_owned()
}

/// A recorded request.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) system: String,
    pub(crate) tools: Vec<String>,
    pub(crate) history: Vec<Message>,
}

type Decide = dyn Fn(ReceivedRequest) -> BoxFuture<'static, ModelAnswer> + Send + Sync;

/// A model that decides by the request.
pub(crate) struct DecidingModel(Box<Decide>);

impl DecidingModel {
    pub(crate) fn new<F>(think: impl Fn(ReceivedRequest) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = ModelAnswer> + Send + 'static,
    {
        Arc::new(Self(Box::new(move |received| Box::pin(think(received)))))
    }
}

#[async_trait]
impl Model for DecidingModel {
    fn id(&self) -> ModelId {
        ModelId {
            provider: "thinking".to_owned(),
            model: "t".to_owned(),
        }
    }

    async fn answer(
        &self,
        request: Request<'_>,
        _: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError> {
        let received = ReceivedRequest {
            system: request.system.to_owned(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            history: request
                .history
                .iter()
                .map(|message| Message::clone(message))
                .collect(),
        };
        Ok((self.0)(received).await)
    }
}

/// Returns the answer of a scripted step.
pub(crate) fn answer(next: Next) -> ModelAnswer {
    match next {
        Next::ModelReply(answer) => answer,
        _ => panic!("no answer"),
    }
}

pub(crate) fn text_answer(words: &str) -> ModelAnswer {
    answer(text(words))
}
