//! What carries rig's requests: our own bytes, to our own address, with our key.

use super::watch::Watch;
use crate::provider::address::Endpoint;
use crate::provider::failure::Blamed;
use crate::provider::frames::Framing;
use crate::provider::http::{self, Chain, Incoming, Patience};
use crate::{ModelError, Trouble};
use ::http::{HeaderMap, header};
use futures::stream;
use rig_core::ProviderError;
use rig_core::driver::{Exchange, Opened, Opening, Transport};
use rig_core::wire::{Encoded, Framing as RigFraming, Wire, WireFrame};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One request, and what becomes of it.
#[derive(Clone)]
pub(super) struct Outgoing(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    body: Mutex<Option<Chain>>,
    patience: Patience,
    blamed: Blamed,
    /// The answer, which outlives rig's interest in it by some bytes.
    incoming: tokio::sync::Mutex<Option<Incoming>>,
    failure: Mutex<Option<ModelError>>,
    /// Something came that has the key in it.
    has_key: AtomicBool,
    watch: Mutex<Watch>,
}

impl Outgoing {
    pub(super) fn new(endpoint: Endpoint, body: Chain, patience: Patience, blamed: Blamed) -> Self {
        Self(Arc::new(Inner {
            endpoint,
            body: Mutex::new(Some(body)),
            patience,
            watch: Mutex::new(Watch::new(blamed.provider)),
            blamed,
            incoming: tokio::sync::Mutex::default(),
            failure: Mutex::default(),
            has_key: AtomicBool::new(false),
        }))
    }

    /// Lets rig work on what came. It logs what it reads, and some providers repeat the
    /// key they got: nothing is logged then.
    pub(super) fn read<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.0.has_key.load(Ordering::Relaxed) {
            return work();
        }
        tracing::dispatcher::with_default(&tracing::Dispatch::none(), work)
    }

    /// The same with all that came: the key may be in several frames.
    pub(super) fn read_all<T>(&self, work: impl FnOnce() -> T) -> T {
        let has_key = self.0.blamed.key.is_some();
        self.0.has_key.fetch_or(has_key, Ordering::Relaxed);
        self.read(work)
    }

    /// What was noticed in the frames.
    pub(super) fn watch(&self) -> MutexGuard<'_, Watch> {
        self.0.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it failed, if it did on the way.
    pub(super) fn failure(&self) -> Option<ModelError> {
        self.0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Lets the connection be used again: the answer is complete.
    pub(super) async fn drain(&self) {
        let incoming = self.0.incoming.lock().await.take();
        if let Some(incoming) = incoming {
            incoming.drain().await;
        }
    }

    async fn open(&self, headers: HeaderMap, framing: Framing) -> Result<(), ProviderError> {
        let inner = &*self.0;
        let body = inner
            .body
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let body = body.unwrap_or_else(|| Chain::new(Vec::new()));
        let sent = http::send(
            &inner.endpoint,
            headers,
            body,
            framing,
            inner.patience,
            &inner.blamed,
        );
        let incoming = sent.await.map_err(|error| self.fail(error))?;
        *inner.incoming.lock().await = Some(incoming);
        Ok(())
    }

    async fn frame(&self) -> Result<Option<WireFrame>, ProviderError> {
        let mut incoming = self.0.incoming.lock().await;
        let Some(incoming) = incoming.as_mut() else {
            return Ok(None);
        };
        let frame = incoming.frame().await.map_err(|error| self.fail(error))?;
        let key = self.0.blamed.key.as_ref();
        let repeats = |frame: &String| key.is_some_and(|key| frame.contains(key.expose()));
        if frame.as_ref().is_some_and(repeats) && !self.0.has_key.swap(true, Ordering::Relaxed) {
            // What is polled now is logged still.
            tokio::task::yield_now().await;
        }
        let Some(frame) = frame else {
            return Ok(None);
        };
        let looked = self.watch().look(&frame);
        looked.map_err(|what| self.fail(self.0.blamed.error(Trouble::Malformed, &what)))?;
        Ok(Some(WireFrame::Text(self.watch().plain(frame))))
    }

    /// Keeps an error, and tells rig that there is one.
    fn fail(&self, error: ModelError) -> ProviderError {
        let mut failure = self
            .0
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *failure = Some(error);
        ProviderError::Truncated
    }
}

impl<W> Transport<W> for Outgoing
where
    W: Wire<Payload = Encoded, Frame = WireFrame>,
{
    fn send(&self, payload: Encoded, _: Exchange) -> Opening<WireFrame> {
        let framing = match payload.framing {
            RigFraming::Ndjson => Framing::Lines,
            RigFraming::Sse | RigFraming::Whole => Framing::Events,
        };
        let mut headers = payload.request.into_parts().0.headers;
        // rig has no key; what it writes in place of one is not sent.
        headers.remove(header::AUTHORIZATION);
        headers.remove("x-api-key");
        let outgoing = self.clone();
        Opening::new(async move {
            outgoing.open(headers, framing).await?;
            let frames = stream::try_unfold(outgoing, |outgoing| async move {
                let frame = outgoing.frame().await?;
                Ok(frame.map(|frame| (frame, outgoing)))
            });
            Ok(Opened::new(frames))
        })
    }
}
