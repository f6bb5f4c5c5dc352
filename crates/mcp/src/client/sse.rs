//! The transport of 2024: a stream of events that begins with the address for
//! messages, and answers that come as events.

use super::desk::Over;
use super::events::Events;
use super::http::{Failure, Http};
use super::stdio::Sieve;
use haft_web::client::{Header, Method, Url};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleClient;
use std::io;
use std::sync::{Arc, OnceLock};

/// How many events may come before the address does.
const PREAMBLE: usize = 100;

pub(super) struct Sse {
    http: Http,
    /// Where messages go.
    messages: Url,
    events: Events,
    sieve: Sieve,
    over: Arc<OnceLock<Over>>,
}

impl Sse {
    /// Opens the stream and waits for the address.
    pub(super) async fn open(http: Http, over: Arc<OnceLock<Over>>) -> Result<Self, Failure> {
        let accept = vec![Header::Plain("accept", "text/event-stream".to_owned())];
        let response = http
            .send(Method::Get, http.url().clone(), accept, None)
            .await?;
        let is_stream = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        if response.status != 200 || !is_stream {
            return Err(Failure::Status(response.status_line()));
        }
        let mut events = Events::new(response);
        for _ in 0..PREAMBLE {
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
                sieve: Sieve::new(),
                over,
            });
        }
        Err(Failure::Status(
            "with a stream that names no address for messages".to_owned(),
        ))
    }

    async fn next(&mut self) -> io::Result<Option<ServerJsonRpcMessage>> {
        loop {
            if let Some(message) = self.sieve.next() {
                return Ok(Some(message));
            }
            let event = tokio::select! {
                event = self.events.next() => event?,
                answer = self.sieve.give_up() => return Ok(Some(answer)),
            };
            let Some(event) = event else { return Ok(None) };
            let is_message = matches!(event.event.as_deref(), None | Some("message" | ""));
            if let (true, Some(data)) = (is_message, event.data) {
                self.sieve.take(data.as_bytes());
                if self.sieve.is_flooded() {
                    return Err(io::Error::other("it asks and takes no answers"));
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

/// The address for messages, which must be the server's own: what goes there may hold
/// credentials.
fn address(base: &Url, given: &str) -> Result<Url, Failure> {
    match base.join(given.trim()) {
        Ok(url) if url.origin() == base.origin() => Ok(url),
        _ => Err(Failure::Elsewhere),
    }
}

fn broken(error: &io::Error) -> Failure {
    Failure::Status(format!("with a stream that broke: {error}"))
}

impl rmcp::transport::Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let owed = self.sieve.sent(&message);
        let (http, url) = (self.http.clone(), self.messages.clone());
        async move {
            let _owed = owed;
            let body = serde_json::to_vec(&message)?;
            let kind = vec![Header::Plain("content-type", "application/json".to_owned())];
            let answer = http.send(Method::Post, url, kind, Some(body)).await;
            match answer {
                Ok(answer) if (200..300).contains(&answer.status) => Ok(()),
                Ok(answer) => Err(io::Error::other(Failure::Status(answer.status_line()))),
                Err(error) => Err(io::Error::other(error)),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let next = self.next().await;
        if let Ok(Some(message)) = next {
            return Some(message);
        }
        let _ = self.over.set(Over::Ended);
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
    fn messages_go_to_the_server_itself_and_nowhere_else() {
        let base = Url::parse("http://127.0.0.1:8080/sse").unwrap();
        let goes = |given| address(&base, given).map(String::from).ok();
        assert_eq!(
            goes("/messages?id=7").as_deref(),
            Some("http://127.0.0.1:8080/messages?id=7")
        );
        assert_eq!(
            goes("http://127.0.0.1:8080/m").as_deref(),
            Some("http://127.0.0.1:8080/m")
        );
        for bad in [
            "http://127.0.0.1:9090/m",
            "//evil.example/m",
            "https://127.0.0.1:8080/m",
        ] {
            assert_eq!(goes(bad), None, "{bad}");
        }
    }
}
