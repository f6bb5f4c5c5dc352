//! Fixtures for the provider tests.

use haft::{Content, Definition};
use haft_agent::provider::{Provider, Secret, Settings, connect};
use haft_agent::{Chunk, Message, Model, ModelAnswer, ModelError, Origin, Request, ToolResult};
use haft_testing::model::Scripted;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A key that must not leak.
pub(crate) const KEY: &str = "sk-CANARY-0123456789";
/// A PNG of one pixel.
pub(crate) const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";

/// Returns a model of each provider that supports pictures and reasoning.
pub(crate) fn model_name(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "claude-sonnet-4-5",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "gpt-5",
        Provider::Google => "gemini-3-flash-preview",
        Provider::Ollama => "qwen3",
    }
}

pub(crate) fn settings(provider: Provider, server: &Scripted) -> Settings {
    let mut settings = Settings::new(provider, model_name(provider));
    settings.base_url = Some(server.url());
    settings.api_key = Some(Secret::new(KEY));
    settings.first_byte = Duration::from_secs(20);
    settings.idle = Duration::from_secs(20);
    settings
}

pub(crate) fn model(provider: Provider, server: &Scripted) -> Arc<dyn Model> {
    connect(settings(provider, server)).unwrap()
}

pub(crate) fn tools() -> Vec<Definition> {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "A path." } },
        "required": ["path"],
    });
    ["read", "ls"]
        .map(|name| Definition {
            name: name.to_owned(),
            description: format!("Does {name}."),
            parameters: parameters.clone(),
            guidance: None,
        })
        .to_vec()
}

/// A conversation with a model.
pub(crate) struct Talk {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) tools: Vec<Definition>,
    pub(crate) pieces: Mutex<Vec<Chunk>>,
}

impl Talk {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            history: Vec::new(),
            tools: tools(),
            pieces: Mutex::default(),
        }
    }

    pub(crate) fn say(&mut self, message: Message) -> &mut Self {
        self.history.push(Arc::new(message));
        self
    }

    pub(crate) fn ask(&mut self, text: &str) -> &mut Self {
        self.say(Message::user(text, Origin::Prompt))
    }

    pub(crate) fn result(&mut self, call: &str, tool: &str, text: &str) -> &mut Self {
        let content = vec![Content::Text {
            text: text.to_owned(),
        }];
        let results = vec![ToolResult {
            call_id: call.to_owned(),
            tool: tool.to_owned(),
            content,
            is_error: false,
        }];
        self.say(Message::Tool { results })
    }

    /// Sends the conversation.
    pub(crate) async fn send(&self) -> Result<ModelAnswer, ModelError> {
        let request = Request {
            session: "session-1",
            system: "You are \"careful\".\nVery.",
            tools: &self.tools,
            history: &self.history,
            max_output: None,
        };
        let show = |piece| self.pieces.lock().unwrap().push(piece);
        self.model.answer(request, &show).await
    }

    /// Sends the conversation and appends the answer.
    pub(crate) async fn answered(&mut self) -> ModelAnswer {
        let answer = self.send().await.unwrap();
        self.say(Message::Assistant(answer.clone()));
        answer
    }
}
