//! Services with an HTTP API: one request per part.

use super::redact::Redactor;
use super::retry::rate_limited;
use super::transport::{Failure, Part, Retry, TimeLimit, Transport};
use crate::client::{
    Client, Header, HttpError, Method, Origin, Redirects, Request, Url, format_seconds, retry_after,
};
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of bytes read from a response.
const MAX_BYTES: usize = 64 * 1024;

/// Time limit for the body of a response whose status already decides.
const BODY_WAIT: Duration = Duration::from_millis(500);

/// The request for one part.
pub(super) struct Post {
    pub(super) url: Url,
    /// Header that authenticates the sender.
    pub(super) credential: Option<Header>,
    /// Body, sent as JSON.
    pub(super) body: Value,
}

/// A service's response.
pub(super) struct ServiceResponse {
    /// HTTP status code.
    pub(super) status: u16,
    /// Body, if it is JSON.
    pub(super) json: Option<Value>,
    /// Body, if the service declares it as plain text.
    pub(super) text: Option<String>,
}

/// Meaning of a response.
pub(super) enum Verdict {
    /// The service accepted the message.
    Accepted,
    /// Rejected by the HTTP status, with the service's explanation.
    Status(Option<String>),
    /// Rejected by an error code in the body.
    ErrorCode(String),
    /// Rejected for now; with the time to wait, if the service gave one.
    Limited(Option<Duration>),
    /// Success by the HTTP status, but not a response that this service sends.
    Unreadable,
}

/// The part of a response that decides whether a message was accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DecidedBy {
    /// The HTTP status.
    Status,
    /// The body, whatever the status.
    Body,
}

/// An HTTP API that accepts messages.
pub(super) trait Service: Send + Sync {
    /// Name in error messages.
    fn name(&self) -> &'static str;
    /// Address of the service.
    fn base(&self) -> &Url;
    /// Maximum length of a text in UTF-16 units; `None` means unlimited.
    fn max_length(&self) -> Option<usize>;
    /// Checks whether `chat` can be a recipient.
    fn check(&self, chat: &str) -> Result<(), String>;
    /// Builds the request for a part.
    fn post(&self, part: Part<'_>) -> Result<Post, &'static str>;
    /// Interprets a response.
    fn judge(&self, response: &ServiceResponse) -> Verdict;
    /// Returns the part of a response that decides.
    fn decided_by(&self) -> DecidedBy;
    /// Values that must not appear in messages.
    fn secrets(&self) -> Vec<String>;
}

/// A service together with the client that reaches it.
pub(super) struct HttpTransport<S> {
    client: Client,
    redactor: Redactor,
    service: S,
}

impl<S: Service> HttpTransport<S> {
    pub(super) fn new(client: &Client, service: S) -> Self {
        Self {
            client: client.clone(),
            redactor: Redactor::new(service.secrets()),
            service,
        }
    }

    fn failed(&self, error: &HttpError, time: TimeLimit) -> Failure {
        // Report the time limit of all attempts, not the time left for this one.
        let reason = match error {
            HttpError::TimedOut { .. } => format!("timed out after {}", format_seconds(time.total)),
            other => self.redactor.text(&other.to_string()),
        };
        if error.may_have_arrived() {
            Failure::uncertain(reason)
        } else if error.is_connect() {
            Failure::transient(reason)
        } else {
            Failure::permanent(reason)
        }
    }

    fn check_response(
        &self,
        response: &ServiceResponse,
        line: &str,
        retry_after_header: Option<Duration>,
    ) -> Result<(), Failure> {
        let name = self.service.name();
        let (explanation, wait) = match self.service.judge(response) {
            Verdict::Accepted => return Ok(()),
            Verdict::Unreadable => {
                return Err(Failure::uncertain(format!(
                    "{name} answered {line} with a body that is not from its API"
                )));
            }
            Verdict::ErrorCode(error_code) => {
                return Err(Failure::permanent(format!(
                    "{name} answered {}",
                    self.redactor.text(&error_code)
                )));
            }
            Verdict::Limited(wait) => (None, Some(wait)),
            Verdict::Status(explanation) => (explanation, None),
        };
        if response.status == 429 || wait.is_some() {
            let wait = wait.flatten().or(retry_after_header);
            return Err(wait.map_or_else(
                || Failure::transient(format!("{name} answered {line}")),
                rate_limited,
            ));
        }
        let explanation = match response.status {
            401 => Some("the token was refused".to_owned()),
            300..=399 => Some("redirects are not followed".to_owned()),
            _ => explanation
                .map(|explanation| without_repeat(&self.redactor.text(&explanation), line)),
        };
        let reason = match explanation.filter(|explanation| !explanation.is_empty()) {
            Some(explanation) => format!("{name} answered {line}: {explanation}"),
            None => format!("{name} answered {line}"),
        };
        Err(match (response.status, retry_after_header) {
            // The service did not process the request, and says when to retry.
            (503, Some(retry_after_header)) => Failure {
                retry: Retry::After(retry_after_header),
                ..Failure::permanent(reason)
            },
            // Another server error may have happened after the message was delivered.
            (500.., _) => Failure::uncertain(reason),
            _ => Failure::permanent(reason),
        })
    }
}

#[async_trait]
impl<S: Service> Transport for HttpTransport<S> {
    fn host(&self) -> Option<String> {
        self.service.base().host_str().map(str::to_owned)
    }

    fn max_length(&self) -> Option<usize> {
        self.service.max_length()
    }

    fn check(&self, chat: &str) -> Result<(), String> {
        self.service.check(chat)
    }

    async fn attempt(&self, part: Part<'_>, time: TimeLimit) -> Result<(), Failure> {
        let post = self.service.post(part).map_err(Failure::permanent)?;
        let mut headers = vec![Header::Plain(
            "content-type",
            "application/json; charset=utf-8".to_owned(),
        )];
        headers.extend(post.credential);
        let request = Request {
            method: Method::Post,
            url: post.url,
            // The user configured the channel and its address.
            origin: Origin::Configuration,
            headers,
            body: Some(post.body.to_string().into_bytes()),
            timeout: time.left,
            limit: MAX_BYTES,
            // A token is only for the configured host.
            redirects: Redirects::Refuse,
        };
        let failed = |error| self.failed(&error, time);
        let response = self.client.send(request).await.map_err(failed)?;
        let status = response.status;
        let line = response.status_line();
        let retry_after_header = response.header("retry-after").and_then(retry_after);
        let is_plain = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/plain"));
        // If the status decides, read the body only to reuse the connection, and do not wait long
        // for it.
        let limit = match self.service.decided_by() {
            DecidedBy::Status => BODY_WAIT.min(time.left),
            DecidedBy::Body => time.left,
        };
        let body = match timeout(limit, response.body()).await {
            Ok(Ok(body)) => body.bytes,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let response = ServiceResponse {
            status,
            json: serde_json::from_slice(&body).ok(),
            text: is_plain.then(|| String::from_utf8_lossy(&body).into_owned()),
        };
        self.check_response(&response, &line, retry_after_header)
    }
}

/// Shortens `Bad Request: chat not found` after `400 Bad Request` to `chat not found`.
fn without_repeat(explanation: &str, line: &str) -> String {
    let phrase = line.split_once(' ').map_or("", |(_, phrase)| phrase);
    let rest = explanation.strip_prefix(phrase).unwrap_or(explanation);
    rest.trim_start_matches([':', ' ']).to_owned()
}

impl ServiceResponse {
    /// Whether the status is a success.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns a string field of the JSON body.
    pub(super) fn string(&self, key: &str) -> Option<String> {
        self.json.as_ref()?.get(key)?.as_str().map(str::to_owned)
    }

    /// Returns a number of seconds in the JSON body.
    pub(super) fn seconds(&self, pointer: &str) -> Option<Duration> {
        let seconds = self.json.as_ref()?.pointer(pointer)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Checks whether a chat id can be a path segment. Encoding makes any id safe except `.` and
/// `..`.
pub(super) fn check_segment(chat: &str) -> Result<(), String> {
    if matches!(chat, "." | "..") {
        return Err("not a valid chat id".to_owned());
    }
    Ok(())
}

/// Appends segments to a URL. Each is encoded, so none can escape its position.
pub(super) fn below(base: &Url, parts: &[&str]) -> Result<Url, &'static str> {
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| "the address of the service has no path")?
        .pop_if_empty()
        .extend(parts);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_segment_cannot_change_the_path() {
        let base = "http://x/api/".parse().expect("an address");
        for (chat, path) in [
            ("../../x", "/api/..%2F..%2Fx/messages"),
            ("%2e%2e", "/api/%252e%252e/messages"),
            ("a?b#c", "/api/a%3Fb%23c/messages"),
            ("a\\b", "/api/a%5Cb/messages"),
            ("ü", "/api/%C3%BC/messages"),
        ] {
            let url = below(&base, &[chat, "messages"]).expect("an address");
            assert_eq!(url.path(), path);
        }
    }
}
