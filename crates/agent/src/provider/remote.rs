//! A model of a provider: builds the request, sends it, and reads the answer.

use super::address::Endpoint;
use super::catalog::{self, ModelFacts};
use super::draft::{ARGUMENTS, AnswerItem, Draft, Fault, ItemKind, StopReason};
use super::failure::{Peer, cut};
use super::http::{self, Timeouts};
use super::wire::{self, Wire, WireRequest};
use super::{Secret, Settings};
use crate::{Chunk, Model, ModelAnswer, ModelError, ModelErrorKind, ModelId, Part, Request, Stop};
use async_trait::async_trait;
use haft::json;
use haft::ops::text::decode::visible;

/// Marks the end of some streams.
const DONE: &str = "[DONE]";

/// A model of a provider.
pub(super) struct Remote {
    id: ModelId,
    settings: Settings,
    endpoint: Endpoint,
    peer: Peer,
    known: Option<ModelFacts>,
    wire: &'static dyn Wire,
}

impl Remote {
    pub(super) fn new(settings: Settings, endpoint: Endpoint) -> Self {
        let provider = settings.provider;
        let model = settings.model.trim().to_owned();
        Self {
            known: catalog::known(provider, model.strip_prefix("models/").unwrap_or(&model)),
            id: ModelId {
                provider: provider.name().to_owned(),
                model,
            },
            peer: Peer {
                provider,
                host: endpoint.host(),
                key: endpoint.key.clone(),
            },
            wire: wire::of(provider),
            settings,
            endpoint,
        }
    }

    /// Reads one message of a streamed answer.
    fn read(&self, frame: &str, draft: &mut Draft<'_>) -> Result<(), ModelError> {
        let malformed = |what: String| self.peer.error(ModelErrorKind::Malformed, &cut(&what));
        if let Some(why) = json::excess(frame.as_bytes()) {
            return Err(malformed(format!("sent a message with {why}")));
        }
        let frame = match frame.trim() {
            DONE => Ok(DONE.into()),
            frame => json::parse_strict_but(frame.as_bytes(), &ARGUMENTS),
        };
        let frame = frame.map_err(|error| malformed(format!("sent invalid JSON: {error}")))?;
        let is_error = matches!(frame["type"].as_str(), Some("error" | "response.failed"));
        if is_error || !frame["error"].is_null() {
            return Err(self.peer.failed(&frame));
        }
        let (is_over, called) = (draft.stop.is_some(), draft.calls_size());
        let read = self.wire.read(frame, draft);
        read.map_err(|fault| self.fault(&fault))?;
        // A call after the end is not part of the answer.
        if is_over && draft.calls_size() != called {
            let what = "sent a call after the end of its answer";
            return Err(malformed(what.to_owned()));
        }
        Ok(())
    }

    fn fault(&self, Fault(kind, what): &Fault) -> ModelError {
        self.peer.error(*kind, &cut(what))
    }

    /// Turns a draft into an answer, or rejects it.
    fn complete(&self, mut draft: Draft<'_>) -> Result<ModelAnswer, Fault> {
        let items = draft.finish()?;
        let calls = items.iter().filter(|item| item.kind == ItemKind::Call);
        let calls: Vec<String> = calls.map(|call| call.id.clone()).collect();
        let mut parts: Vec<Part> = items.iter().filter_map(AnswerItem::part).collect();
        let cut_off = |what: String| Err(Fault(ModelErrorKind::Truncated, what));
        let stop = match draft.stop.take() {
            None => return cut_off("stopped in the middle of an answer".to_owned()),
            Some(StopReason::Other(reason)) if !calls.is_empty() => {
                return cut_off(format!("broke off with calls in its answer: {reason}"));
            }
            Some(StopReason::Refused(why)) => {
                let text = match &*why {
                    "" => "The provider refused to answer.".to_owned(),
                    why => visible(&cut(why)),
                };
                if parts.is_empty() {
                    parts.push(Part::Text { text });
                }
                Stop::Refusal
            }
            Some(StopReason::Length) => Stop::Length,
            Some(_) if calls.is_empty() => Stop::End,
            Some(_) => Stop::Calls,
        };
        if parts.is_empty() && stop != Stop::Length {
            let what = "sent an answer with nothing in it".to_owned();
            return Err(Fault(ModelErrorKind::Empty, what));
        }
        let mut usage = draft.usage;
        let price = self.known.and_then(|known| known.price);
        let price = price.filter(|_| usage.cost.is_none() && usage.total() > 0);
        usage.cost = price.map(|price| price.of(&usage)).or(usage.cost);
        // A refusal is never sent back verbatim.
        let wire = match stop {
            Stop::Refusal => Vec::new(),
            _ => self.wire.answer(&self.id.model, items),
        };
        let native = serde_json::json!({ "provider": self.id.provider, "model": self.id.model,
            "calls": calls, "wire": wire });
        Ok(ModelAnswer {
            parts,
            stop,
            usage,
            model: self.id.model.clone(),
            native: (!wire.is_empty()).then_some(native),
            left_out: Vec::new(),
        })
    }
}

#[async_trait]
impl Model for Remote {
    fn id(&self) -> ModelId {
        self.id.clone()
    }

    fn context_window(&self) -> Option<u64> {
        let known = || self.known?.context;
        self.settings.context_window.or_else(known)
    }

    fn secret(&self) -> Option<&Secret> {
        self.peer.key.as_ref()
    }

    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError> {
        let max_output = request.max_output.or(self.settings.max_output);
        let request = WireRequest {
            provider: self.settings.provider,
            model: &self.id.model,
            known: self.known,
            request: Request {
                max_output,
                ..request
            },
            context_window: self.settings.context_window,
            effort: self.settings.effort,
            is_own: self.endpoint.is_own,
        };
        // Serializing JSON to memory cannot fail.
        let body = serde_json::to_vec(&request).unwrap_or_default();
        // Answers are not logged: a provider may repeat the key in pieces.
        if tracing::enabled!(tracing::Level::TRACE) {
            tracing::trace!(
                "request: {}",
                self.peer.clean(&String::from_utf8_lossy(&body))
            );
        }
        let timeouts = Timeouts {
            first_byte: self.settings.first_byte,
            idle: self.settings.idle,
        };
        let headers = self.wire.headers(&request);
        let sent = http::send(&self.endpoint, headers, body, timeouts, &self.peer);
        let mut incoming = sent.await?;
        let mut draft = Draft::new(show);
        while !draft.is_complete
            && let Some(frame) = incoming.frame().await?
        {
            self.read(&frame, &mut draft)?;
        }
        incoming.drain().await;
        self.complete(draft).map_err(|fault| self.fault(&fault))
    }
}
