//! The transport of 2024: a stream of events that starts with the address for messages, and
//! carries the responses.

use super::dispatcher::StreamEnd;
use super::events::Events;
use super::http::{Http, HttpFailure};
use super::stdio::MessageFilter;
use haft_web::client::{Header, Method, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use std::io;
use std::sync::{Arc, OnceLock};

/// Maximum number of events before the address.
const MAX_PREAMBLE: usize = 100;

pub(super) struct Sse {
    http: Http,
    /// Address for messages to the server.
    messages: Url,
    events: Events,
    filter: MessageFilter,
    stream_end: Arc<OnceLock<StreamEnd>>,
}

impl Sse {
    /// Opens the stream, and waits for the address.
    pub(super) async fn open(
        http: Http,
        stream_end: Arc<OnceLock<StreamEnd>>,
    ) -> Result<Self, HttpFailure> {
        let accept = vec![Header::Plain("accept", "text/event-stream".to_owned())];
        let response = http
            .send(Method::Get, http.url().clone(), accept, None)
            .await?;
        let is_stream = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        if response.status != 200 || !is_stream {
            return Err(HttpFailure::Status(response.status_line()));
        }
        let mut events = Events::new(response);
        for _ in 0..MAX_PREAMBLE {
            let event = events.next().await.map_err(|error| broken(&error))?;
            let Some(event) = event else { break };
            if event.event.as_deref() != Some("endpoint") {
                continue;
            }
            let messages = address(http.url(), event.data.as_deref().unwrap_or_default())?;
            return Ok(Self {
                http,
                messages,
                events,
                filter: MessageFilter::new(),
                stream_end,
            });
        }
        Err(HttpFailure::Status(
            "with a stream without an address for messages".to_owned(),
        ))
    }

    async fn next(&mut self) -> io::Result<Option<ServerJsonRpcMessage>> {
        loop {
            if let Some(message) = self.filter.next() {
                return Ok(Some(message));
            }
            let Some(event) = self.events.next().await? else {
                return Ok(None);
            };
            let is_message = matches!(event.event.as_deref(), None | Some("message" | ""));
            if let (true, Some(data)) = (is_message, event.data) {
                self.filter.take(data.as_bytes());
                if self.filter.is_flooded() {
                    return Err(io::Error::other(
                        "it sends requests without reading the responses",
                    ));
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Resolves the address for messages. It must have the server's origin, because requests to
/// it may contain credentials.
fn address(base: &Url, given: &str) -> Result<Url, HttpFailure> {
    match base.join(given.trim()) {
        Ok(url) if url.origin() == base.origin() => Ok(url),
        _ => Err(HttpFailure::OtherHost),
    }
}

fn broken(error: &io::Error) -> HttpFailure {
    HttpFailure::Status(format!("with a stream that failed: {error}"))
}

impl rmcp::transport::Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let reply_guard = self.filter.sent(&message);
        let (http, url) = (self.http.clone(), self.messages.clone());
        async move {
            let _reply_guard = reply_guard;
            let body = serde_json::to_vec(&message)?;
            let kind = vec![Header::Plain("content-type", "application/json".to_owned())];
            let answer = http.send(Method::Post, url, kind, Some(body)).await;
            match answer {
                Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
                Ok(answer) => Err(io::Error::other(HttpFailure::Status(answer.status_line()))),
                Err(error) => Err(io::Error::other(error)),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let next = self.next().await;
        if let Ok(Some(message)) = next {
            return Some(message);
        }
        let _ = self.stream_end.set(StreamEnd::Ended);
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_only_sent_to_the_origin_of_the_server() {
        let base = Url::parse("http://127.0.0.1:8080/sse").unwrap();
        let resolve = |given| address(&base, given).map(String::from).ok();
        assert_eq!(
            resolve("/messages?id=7").as_deref(),
            Some("http://127.0.0.1:8080/messages?id=7")
        );
        assert_eq!(
            resolve("http://127.0.0.1:8080/m").as_deref(),
            Some("http://127.0.0.1:8080/m")
        );
        for bad in [
            "http://127.0.0.1:9090/m",
            "//evil.example/m",
            "https://127.0.0.1:8080/m",
        ] {
            assert_eq!(resolve(bad), None, "{bad}");
        }
    }
}
