//! The events of a server's answer.

use futures::Stream;
use haft::sse;
use haft_web::Response;
use sse_stream::Sse;

/// The events of a response.
pub(super) struct Events {
    response: Response,
    events: sse::Events,
}

impl Events {
    pub(super) fn new(response: Response) -> Self {
        Self {
            response,
            events: sse::Events::default(),
        }
    }

    /// Returns the next event, or `None` at the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Sse>> {
        loop {
            if let Some(event) = self.events.next().map_err(failed)? {
                return Ok(Some(Sse {
                    event: event.event,
                    data: event.data,
                    id: event.id,
                    retry: event.retry,
                }));
            }
            match self.response.chunk().await.map_err(failed)? {
                Some(piece) => self.events.push(&piece),
                None => return Ok(None),
            }
        }
    }

    /// Converts the events to a stream.
    pub(super) fn stream(self) -> impl Stream<Item = std::io::Result<Sse>> {
        futures::stream::try_unfold(self, |mut events| async move {
            Ok(events.next().await?.map(|event| (event, events)))
        })
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> std::io::Error {
    std::io::Error::other(error)
}
