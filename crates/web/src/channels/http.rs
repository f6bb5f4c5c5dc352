//! Services that are spoken to over HTTP: one request a part, one answer.

use super::carrier::{Again, Carrier, Failure, Part, Time};
use super::deliver::limited;
use super::scrub::Scrub;
use crate::client::{
    Client, Header, HttpError, Method, Origin, Redirects, Request, Url, retry_after, words,
};
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// How much of an answer is read.
const MOST_BYTES: usize = 64 * 1024;

/// How long the body of an answer is waited for that says nothing new.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a service is sent.
pub(super) struct Post {
    /// Where to.
    pub(super) url: Url,
    /// What says who sends it.
    pub(super) credential: Option<Header>,
    /// The body.
    pub(super) body: Value,
}

/// What a service answered.
pub(super) struct Answer {
    /// The status.
    pub(super) status: u16,
    /// The body, if it is JSON.
    pub(super) json: Option<Value>,
    /// The body, if it says that it is plain text.
    pub(super) text: Option<String>,
}

/// What an answer means.
pub(super) enum Verdict {
    /// The message was accepted.
    Accepted,
    /// It was not, by the status; with what the service says about it.
    Status(Option<String>),
    /// It was not, by a word of the service's own.
    Word(String),
    /// It was not, for now.
    Limited(Option<Duration>),
    /// No answer of this service at all, but one that means success to HTTP.
    Unreadable,
}

/// Where an answer says what became of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// In its status.
    ByStatus,
    /// In its body, whatever the status.
    ByBody,
}

/// One kind of service.
pub(super) trait Service: Send + Sync {
    /// Its name, for words.
    fn name(&self) -> &'static str;
    /// Where it is.
    fn base(&self) -> &Url;
    /// How long a text may be, in UTF-16 units.
    fn most(&self) -> Option<usize>;
    /// Whether this can be a recipient.
    fn check(&self, chat: &str) -> Result<(), String>;
    /// The request for a part.
    fn post(&self, part: Part<'_>) -> Result<Post, &'static str>;
    /// What an answer means.
    fn judge(&self, answer: &Answer) -> Verdict;
    /// Where an answer says what became of the message.
    fn verdict(&self) -> Told;
    /// What must not be repeated.
    fn secrets(&self) -> Vec<String>;
}

/// A service, and the client that reaches it.
pub(super) struct Online<S> {
    client: Client,
    scrub: Scrub,
    service: S,
}

impl<S: Service> Online<S> {
    pub(super) fn new(client: &Client, service: S) -> Self {
        Self {
            client: client.clone(),
            scrub: Scrub::new(service.secrets()),
            service,
        }
    }

    fn failed(&self, error: &HttpError, time: Time) -> Failure {
        // The time of the last try is not the time that was over.
        let reason = match error {
            HttpError::TimedOut { .. } => format!("timed out after {}", words(time.whole)),
            other => self.scrub.text(&other.to_string()),
        };
        if error.may_have_arrived() {
            Failure::uncertain(reason)
        } else if error.is_connect() {
            Failure::passing(reason)
        } else {
            Failure::lasting(reason)
        }
    }

    fn refused(&self, answer: &Answer, line: &str, asked: Option<Duration>) -> Result<(), Failure> {
        let name = self.service.name();
        let (said, wait) = match self.service.judge(answer) {
            Verdict::Accepted => return Ok(()),
            Verdict::Unreadable => {
                return Err(Failure::uncertain(format!(
                    "{name} answered {line} with something that is not its own"
                )));
            }
            Verdict::Word(word) => {
                return Err(Failure::lasting(format!(
                    "{name} answered {}",
                    self.scrub.text(&word)
                )));
            }
            Verdict::Limited(wait) => (None, Some(wait)),
            Verdict::Status(said) => (said, None),
        };
        if answer.status == 429 || wait.is_some() {
            let wait = wait.flatten().or(asked);
            return Err(wait.map_or_else(
                || Failure::passing(format!("{name} answered {line}")),
                limited,
            ));
        }
        let said = match answer.status {
            401 => Some("the token was refused".to_owned()),
            300..=399 => Some("redirects are not followed".to_owned()),
            _ => said.map(|said| without_repeat(&self.scrub.text(&said), line)),
        };
        let reason = match said.filter(|said| !said.is_empty()) {
            Some(said) => format!("{name} answered {line}: {said}"),
            None => format!("{name} answered {line}"),
        };
        Err(match (answer.status, asked) {
            // It says itself that it took nothing, and when to come back.
            (503, Some(asked)) => Failure {
                again: Again::After(asked),
                ..Failure::lasting(reason)
            },
            // What failed on the way may have failed after the message was out.
            (500.., _) => Failure::uncertain(reason),
            _ => Failure::lasting(reason),
        })
    }
}

#[async_trait]
impl<S: Service> Carrier for Online<S> {
    fn host(&self) -> Option<String> {
        self.service.base().host_str().map(str::to_owned)
    }

    fn most(&self) -> Option<usize> {
        self.service.most()
    }

    fn check(&self, chat: &str) -> Result<(), String> {
        self.service.check(chat)
    }

    async fn attempt(&self, part: Part<'_>, time: Time) -> Result<(), Failure> {
        let post = self.service.post(part).map_err(Failure::lasting)?;
        let mut headers = vec![Header::Plain(
            "content-type",
            "application/json; charset=utf-8".to_owned(),
        )];
        headers.extend(post.credential);
        let request = Request {
            method: Method::Post,
            url: post.url,
            // Channels come from the person's configuration, addresses too.
            origin: Origin::Configuration,
            headers,
            body: Some(post.body.to_string().into_bytes()),
            timeout: time.left,
            limit: MOST_BYTES,
            // A token is for one host; nobody sends it on.
            redirects: Redirects::Refuse,
        };
        let failed = |error| self.failed(&error, time);
        let response = self.client.send(request).await.map_err(failed)?;
        let status = response.status;
        let line = response.status_line();
        let asked = response.header("retry-after").and_then(retry_after);
        let is_plain = response
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("text/plain"));
        // Where the status says it all, the rest is read so that the connection
        // can be used again, and nobody waits for it.
        let patience = match self.service.verdict() {
            Told::ByStatus => PATIENCE.min(time.left),
            Told::ByBody => time.left,
        };
        let body = match timeout(patience, response.body()).await {
            Ok(Ok(body)) => body.bytes,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let answer = Answer {
            status,
            json: serde_json::from_slice(&body).ok(),
            text: is_plain.then(|| String::from_utf8_lossy(&body).into_owned()),
        };
        self.refused(&answer, &line, asked)
    }
}

/// `Bad Request: chat not found` after `400 Bad Request` is `chat not found`.
fn without_repeat(said: &str, line: &str) -> String {
    let words = line.split_once(' ').map_or("", |(_, words)| words);
    let rest = said.strip_prefix(words).unwrap_or(said);
    rest.trim_start_matches([':', ' ']).to_owned()
}

impl Answer {
    /// Whether HTTP calls it a success.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// A text of the JSON, by its key.
    pub(super) fn word(&self, key: &str) -> Option<String> {
        self.json.as_ref()?.get(key)?.as_str().map(str::to_owned)
    }

    /// A number of seconds in the JSON.
    pub(super) fn seconds(&self, pointer: &str) -> Option<Duration> {
        let seconds = self.json.as_ref()?.pointer(pointer)?.as_f64()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// Whether a chat can be a part of a path: anything, encoded, but what means
/// another folder even then.
pub(super) fn check_segment(chat: &str) -> Result<(), String> {
    if matches!(chat, "." | "..") {
        return Err("that is no chat id".to_owned());
    }
    Ok(())
}

/// An address below another one. Each part is encoded, so that none can lead
/// out of its place.
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
    fn a_part_cannot_leave_its_place() {
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
