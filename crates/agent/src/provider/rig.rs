//! The five protocols, as the library rig knows them. It is used nowhere else.
//!
//! rig writes whole requests. Here it writes one message at a time (`words.rs`), and
//! the head of a request, which is the same from turn to turn; what is sent is
//! chained from those (`super::lane`). It reads answers as they come (`transport.rs`)
//! and whole (`reply.rs`). It never has a key.
#![expect(
    clippy::result_large_err,
    reason = "the library's error is as large as it is, and rare"
)]

mod reply;
mod transport;
mod watch;
mod words;

use super::address::Endpoint;
use super::failure::Blamed;
use super::http::{Chain, Patience};
use super::lane::{Grammar, Lanes};
use super::{Provider, Secret, Settings};
use crate::{Answer, Model, ModelError, ModelId, Piece, Price, Request, Trouble};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use haft::Definition;
use rig_core::ProviderError;
use rig_core::catalog::{Catalog, ModelSpec};
use rig_core::completion::{CompletionRequest, ReplayTarget};
use rig_core::message::Origin;
use rig_core::operation::Completion;
use rig_core::providers::{anthropic, gemini, ollama, openai};
use rig_core::streaming::{CompletionStream, Item, PartKind, StreamEvent};
use rig_core::wire::{Body, Encoded, Mode, Operation, Wire, WireFrame};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use transport::Outgoing;
use watch::Written;

/// What an answer of an unknown model of Anthropic's may have.
const DEFAULT_OUTPUT: u64 = 8192;
/// So many heads are kept: agents with other tools or another system prompt share a
/// model.
const HEADS: usize = 16;

/// A protocol that rig knows.
trait Protocol: Send + Sync {
    /// The body of a whole request.
    fn body(&self, request: CompletionRequest) -> Result<Vec<u8>, ProviderError>;
    /// Who answers in it.
    fn origin(&self) -> Origin;
    /// Sends what `outgoing` carries and reads the answer.
    fn stream(
        &self,
        request: CompletionRequest,
        outgoing: Outgoing,
    ) -> Result<CompletionStream, ProviderError>;
}

impl<W> Protocol for W
where
    W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame> + ReplayTarget + Send + Sync,
{
    fn body(&self, request: CompletionRequest) -> Result<Vec<u8>, ProviderError> {
        let request = Completion::prepare(request, &self.describe())?;
        match self.encode(request, Mode::Streaming)?.request.into_body() {
            Body::Bytes(bytes) => Ok(bytes),
            Body::Multipart(_) => Err(ProviderError::request("a form is no conversation")),
        }
    }

    fn origin(&self) -> Origin {
        Origin::new(self.api(), self.provider(), self.model())
    }

    fn stream(
        &self,
        request: CompletionRequest,
        outgoing: Outgoing,
    ) -> Result<CompletionStream, ProviderError> {
        rig_core::Model::new(self.clone(), outgoing).stream(request)
    }
}

/// How a protocol differs from the others where rig does not say.
#[derive(Debug, Clone, Copy)]
struct Shape {
    /// The key of the array that the conversation is in.
    array: &'static str,
    grammar: Grammar,
    /// Whether the session names a cache.
    names_cache: bool,
}

/// What stands before the conversation.
#[derive(Clone)]
struct Head {
    /// The object, without its end.
    object: Bytes,
    /// The beginning of the array, and what is in it before the conversation.
    array: Bytes,
}

struct MadeHead {
    system: String,
    tools: Vec<Definition>,
    max_output: Option<u64>,
    head: Head,
}

/// A model of a provider.
struct Speaker {
    id: ModelId,
    settings: Settings,
    endpoint: Endpoint,
    blamed: Blamed,
    /// Made when it is first needed: making it may wait for what is known of models.
    protocol: OnceLock<Box<dyn Protocol>>,
    shape: Shape,
    heads: Mutex<Vec<MadeHead>>,
    lanes: Lanes,
}

pub(super) fn model(settings: Settings, endpoint: Endpoint) -> Arc<dyn Model> {
    // What is known of models takes some milliseconds to read: meanwhile others can
    // get ready. If no thread is to be had it is read when it is needed.
    let _ = std::thread::Builder::new().spawn(Catalog::builtin);
    Arc::new(speak(settings, endpoint))
}

fn speak(settings: Settings, endpoint: Endpoint) -> Speaker {
    let provider = settings.provider;
    Speaker {
        id: ModelId {
            provider: provider.name().to_owned(),
            model: settings.model.trim().to_owned(),
        },
        blamed: Blamed {
            provider,
            reach: endpoint.reach(),
            key: endpoint.key.clone(),
        },
        protocol: OnceLock::new(),
        shape: shape(provider, endpoint.is_own),
        settings,
        endpoint,
        heads: Mutex::default(),
        lanes: Lanes::default(),
    }
}

pub(super) fn price(provider: Provider, model: &str) -> Option<Price> {
    let pricing = spec(provider, model)?.pricing?;
    Some(Price {
        input: pricing.input,
        output: pricing.output,
        cache_read: pricing.cache_read.unwrap_or(pricing.input),
        cache_write: pricing.cache_write.unwrap_or(pricing.input),
    })
}

/// What is known of a model. Of local ones it depends on the machine.
fn spec(provider: Provider, model: &str) -> Option<&'static ModelSpec> {
    let vendor = match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "openai",
        Provider::Google => gemini::PROVIDER_NAME,
        Provider::Ollama => return None,
    };
    let catalog = Catalog::builtin();
    let exact = catalog.resolve(&format!("{vendor}/{model}"));
    exact.or_else(|| {
        // A dated snapshot, `claude-sonnet-4-5-20250929`, is known by its name.
        let (name, _) = model.split_once("-20")?;
        catalog.resolve(&format!("{vendor}/{name}"))
    })
}

fn shape(provider: Provider, is_own: bool) -> Shape {
    let (array, grammar) = match provider {
        Provider::Anthropic => ("messages", Grammar::Turns),
        Provider::OpenaiResponses => ("input", Grammar::Elements),
        Provider::OpenaiCompletions | Provider::Ollama => ("messages", Grammar::Elements),
        Provider::Google => ("contents", Grammar::Elements),
    };
    // Others that speak Chat Completions may refuse a field they do not know.
    let names_cache = match provider {
        Provider::OpenaiResponses => true,
        Provider::OpenaiCompletions => is_own,
        _ => false,
    };
    Shape {
        array,
        grammar,
        names_cache,
    }
}

fn protocol(settings: &Settings) -> Box<dyn Protocol> {
    let model = settings.model.trim().to_owned();
    match settings.provider {
        Provider::Anthropic => {
            let provider = anthropic::AnthropicConfig::new("");
            let known = provider.dialect.default_max_tokens(&model);
            let default = settings.max_output.or(known).unwrap_or(DEFAULT_OUTPUT);
            Box::new(anthropic::wire::Messages {
                provider,
                model,
                default_max_tokens: Some(default),
                // The marks are set where the bytes are chained.
                prompt_caching: false,
                static_prefix_cache_ttl: None,
                strict_tools: false,
                // Arguments are needed whole, and not every gateway knows the field.
                tool_input_streaming: anthropic::wire::ToolInputStreaming::Off,
            })
        }
        Provider::OpenaiResponses => {
            let provider = openai::OpenAIConfig::new("");
            Box::new(openai::responses_api::wire::Responses::new(provider, model))
        }
        Provider::OpenaiCompletions => {
            let mut dialect = openai::wire::OPENAI;
            // Some say only that they are done, which is enough.
            dialect.quirks.done_without_finish_reason = true;
            Box::new(openai::OpenAIConfig::with_key(&dialect, "").chat(model))
        }
        Provider::Google => {
            let model = model.strip_prefix("models/").unwrap_or(&model).to_owned();
            let provider = gemini::GeminiConfig::new("");
            Box::new(gemini::completion::GenerateContent::new(provider, model))
        }
        Provider::Ollama => Box::new(ollama::Chat::new(ollama::OllamaConfig::new(), model)),
    }
}

#[async_trait]
impl Model for Speaker {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn context_window(&self) -> Option<u64> {
        let known = || spec(self.settings.provider, &self.id.model)?.context_window;
        let given = self.settings.context_window;
        given.or_else(|| known().map(u64::from))
    }

    fn secret(&self) -> Option<&Secret> {
        self.blamed.key.as_ref()
    }

    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<Answer, ModelError> {
        let body = Chain::new(self.compose(&request)?);
        let outgoing = Outgoing::new(
            self.endpoint.clone(),
            body,
            Patience {
                first_byte: self.settings.first_byte,
                idle: self.settings.idle,
            },
            self.blamed.clone(),
        );
        let stream = self.protocol().stream(words::nothing(), outgoing.clone());
        let mut stream = stream.map_err(|error| self.impossible(&error))?;
        let mut next = async || poll_fn(|cx| outgoing.read(|| stream.poll_next_unpin(cx))).await;
        let mut written = Written::default();
        while let Some(item) = next().await {
            match item {
                Ok(Item::Event(event)) => {
                    let heard = written.hear(&event);
                    heard.map_err(|what| self.blamed.error(Trouble::Malformed, &what))?;
                    if let Some(piece) = piece(event) {
                        show(piece);
                    }
                }
                Ok(Item::Unknown(_)) => {}
                Err(error) => return Err(self.failed(&error, &outgoing)),
            }
        }
        let mut response = pin!(stream.finish());
        let response = poll_fn(|cx| outgoing.read_all(|| response.as_mut().poll(cx))).await;
        let response = response.map_err(|error| self.failed(&error, &outgoing))?;
        outgoing.drain().await;
        self.read(response, &written, &outgoing.watch())
    }
}

/// What of an event is shown.
fn piece(event: StreamEvent) -> Option<Piece> {
    match event {
        StreamEvent::Text { text, .. } => Some(Piece::Text(text)),
        StreamEvent::Reasoning { text, .. } => Some(Piece::Reasoning(text)),
        StreamEvent::Start {
            kind: PartKind::ToolCall,
            name: Some(name),
            ..
        } => Some(Piece::Call(name.as_str().to_owned())),
        _ => None,
    }
}

impl Speaker {
    fn protocol(&self) -> &dyn Protocol {
        let protocol = self.protocol.get_or_init(|| protocol(&self.settings));
        protocol.as_ref()
    }

    /// The body of a request: the head, the conversation, the end.
    fn compose(&self, request: &Request<'_>) -> Result<Vec<Bytes>, ModelError> {
        let head = self.head(request)?;
        let grammar = self.shape.grammar;
        let mut chain = vec![head.object];
        if self.shape.names_cache {
            let name = serde_json::Value::from(request.session);
            chain.push(format!(",\"prompt_cache_key\":{name}").into());
        }
        chain.push(head.array);
        self.lanes.with(request.session, |lane| {
            lane.follow(request.history, grammar, |at, message| {
                let before = at.checked_sub(1).and_then(|at| request.history.get(at));
                self.write(message, before.map(|said| &said.message))
            })?;
            lane.chain(grammar, &mut chain);
            Ok(())
        })?;
        chain.push(Bytes::from_static(b"}"));
        Ok(chain)
    }

    /// The head for a system prompt and tools, made where it is not there.
    fn head(&self, request: &Request<'_>) -> Result<Head, ModelError> {
        let max_output = request.max_output.or(self.settings.max_output);
        let fits = |made: &&MadeHead| {
            made.max_output == max_output
                && made.system == request.system
                && made.tools == request.tools
        };
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = heads.iter().find(fits) {
            return Ok(made.head.clone());
        }
        let head = self.write_head(request.system, request.tools, max_output)?;
        if heads.len() >= HEADS {
            heads.remove(0);
        }
        heads.push(MadeHead {
            system: request.system.to_owned(),
            tools: request.tools.to_vec(),
            max_output,
            head: head.clone(),
        });
        Ok(head)
    }

    /// Something that no try will change.
    fn impossible(&self, error: &ProviderError) -> ModelError {
        let what = format!("cannot be asked this: {error}");
        self.blamed.error(Trouble::Hopeless, &what)
    }

    /// What went wrong with an answer: what the transport says, or else rig.
    fn failed(&self, error: &ProviderError, outgoing: &Outgoing) -> ModelError {
        if let Some(error) = outgoing.failure() {
            return error;
        }
        if let Some(body) = error.provider_response_body() {
            return self.blamed.event(body);
        }
        match error {
            ProviderError::Truncated => {
                let what = "stopped in the middle of an answer";
                self.blamed.error(Trouble::Cut, what)
            }
            ProviderError::Request(_) | ProviderError::UnsupportedOption(_) => {
                self.impossible(error)
            }
            other => {
                let what = format!("sent something that makes no sense: {other}");
                self.blamed
                    .error(Trouble::Malformed, &super::failure::cut(&what))
            }
        }
    }
}

#[cfg(test)]
mod tests;
