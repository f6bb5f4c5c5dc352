//! Errors of providers: a message for the user, and a kind for the loop.
//!
//! Text from a provider is data. It is truncated, control characters are made visible, and
//! the key is removed.

use super::{Provider, Secret};
use crate::{ModelError, ModelErrorKind};
use ::http::{HeaderMap, StatusCode};
use haft::ops::text::decode::visible;
use serde_json::Value;
use std::error::Error;
use std::time::{Duration, SystemTime};

/// Maximum number of characters shown from a provider's message.
const MAX_WORDS: usize = 300;
/// Maximum time to wait, whatever the provider asks for.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The provider that an error is about.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) provider: Provider,
    /// Its host and port.
    pub(super) host: String,
    /// The key it was sent, which no error may show.
    pub(super) key: Option<Secret>,
}

impl Peer {
    /// Creates an error. `what` follows the name of the provider.
    pub(super) fn error(&self, kind: ModelErrorKind, what: &str) -> ModelError {
        let Self { provider, host, .. } = self;
        ModelError::new(kind, self.clean(&format!("{provider} ({host}) {what}")))
    }

    /// Removes the key from a text, and makes control characters visible.
    pub(super) fn clean(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.redacted(text),
            None => text.to_owned(),
        };
        visible(&text)
    }

    /// Describes a failed connection.
    pub(super) fn network(&self, error: &reqwest::Error) -> ModelError {
        // The library's own message names the whole address; its deepest cause does not.
        let mut cause: Option<&dyn Error> = error.source();
        while let Some(deeper) = cause.and_then(Error::source) {
            cause = Some(deeper);
        }
        let cause = cause.map_or_else(|| "no answer".to_owned(), ToString::to_string);
        let kind = match error.is_connect() || error.is_timeout() {
            true => ModelErrorKind::Network,
            false => ModelErrorKind::Disconnected,
        };
        let what = if error.is_connect() && error.is_timeout() {
            "cannot be reached: connecting took too long".to_owned()
        } else if error.is_connect() && self.provider == Provider::Ollama {
            format!("cannot be reached: {cause}; start it with `ollama serve`")
        } else if error.is_connect() {
            format!("cannot be reached: {cause}")
        } else {
            format!("broke the connection before the end of the answer ({cause})")
        };
        self.error(kind, &cut(&what))
    }

    /// Describes an answer with a status other than OK.
    pub(super) fn status(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let detail = parsed.as_ref().and_then(message);
        let detail = detail.unwrap_or_else(|| body.trim().to_owned());
        let mut error = self.refused(status.as_u16(), &detail);
        error.retry_after = retry_after(headers, parsed.as_ref());
        error
    }

    /// Describes an error within an answer.
    pub(super) fn failed(&self, body: &Value) -> ModelError {
        let detail = message(body).unwrap_or_else(|| body.to_string());
        let mut error = self.refused(code(body), &detail);
        error.retry_after = retry_after(&HeaderMap::new(), Some(body));
        error
    }

    fn refused(&self, status: u16, detail: &str) -> ModelError {
        let reason = StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .map_or_else(String::new, |reason| format!(" {reason}"));
        let quoted = match detail {
            "" => String::new(),
            detail => format!(": {}", cut(detail)),
        };
        let kind = match status {
            400 | 413 | 422 | 500 if is_too_long(detail) => Some(ModelErrorKind::TooLong),
            413 => Some(ModelErrorKind::TooLarge),
            _ => None,
        };
        if let Some(kind) = kind {
            let what = format!("reports that the conversation is too long{quoted}");
            return self.error(kind, &what);
        }
        let advice = match status {
            401 | 403 => self.about_the_key(),
            404 => "; check the name of the model and `base_url`".to_owned(),
            300..=399 => "; a redirect is not followed: set `base_url` to where it leads".into(),
            _ => String::new(),
        };
        let what = format!("answered {status}{reason}{quoted}{advice}");
        self.error(ModelErrorKind::Status(status), &what)
    }

    fn about_the_key(&self) -> String {
        match (&self.key, self.provider.key_variable()) {
            (Some(_), Some(variable)) => {
                format!("; check the key in {variable}, or `api_key` in haft.yaml")
            }
            (None, Some(variable)) => {
                format!("; set {variable}, or `api_key` in haft.yaml")
            }
            (_, None) => "; check `api_key` in haft.yaml".to_owned(),
        }
    }
}

/// Finds the message of an error.
fn message(body: &Value) -> Option<String> {
    // Google sends its errors in an array when it should stream.
    let body = body.as_array().and_then(|all| all.first()).unwrap_or(body);
    let found = [
        "/error/message",
        "/response/error/message",
        "/message",
        "/error",
        "/detail",
    ]
    .iter()
    .find_map(|at| body.pointer(at)?.as_str())?;
    Some(found.trim().to_owned())
}

/// Returns the status that an error within an answer stands for.
fn code(body: &Value) -> u16 {
    let error = ["/error", "/response/error"]
        .iter()
        .find_map(|at| body.pointer(at).filter(|error| error.is_object()))
        .unwrap_or(body);
    let number = |key: &str| error.get(key)?.as_u64();
    let numbers = [number("code"), number("status")].into_iter().flatten();
    let mut numbers = numbers.filter(|code| (400..600).contains(code));
    let number = numbers.next().and_then(|code| u16::try_from(code).ok());
    let named = || {
        let mut names = ["code", "type", "status"].iter();
        names.find_map(|key| named(error.get(*key)?.as_str()?))
    };
    number.or_else(named).unwrap_or(500)
}

fn named(code: &str) -> Option<u16> {
    Some(match code {
        "overloaded_error" => 529,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "insufficient_quota"
        | "RESOURCE_EXHAUSTED" => 429,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "invalid_request_error"
        | "invalid_prompt"
        | "context_length_exceeded"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION" => 400,
        "api_error" | "server_error" | "INTERNAL" => 500,
        "UNAVAILABLE" => 503,
        _ => return None,
    })
}

/// Whether a refusal is about the length of the conversation.
fn is_too_long(detail: &str) -> bool {
    let detail = detail.to_lowercase();
    let says = |phrase: &&str| detail.contains(phrase);
    let phrases = [
        "prompt is too long",
        "context_length_exceeded",
        "context length",
        "context window",
        "maximum context",
        "input is too long",
        "too many tokens",
        "exceeds the maximum number of tokens",
        "exceed context limit",
        "exceed_context_size",
        "reduce the length of the messages",
    ];
    phrases.iter().any(says)
}

/// Reads when to retry: from a header, or from the body, as Google does it.
fn retry_after(headers: &HeaderMap, body: Option<&Value>) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    let header = milliseconds.map(|milliseconds| milliseconds / 1000.0);
    let header = header.or_else(|| text("retry-after")?.parse::<f64>().ok());
    let header = header.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let date = || {
        let date = httpdate::parse_http_date(text("retry-after")?).ok()?;
        Some(date.duration_since(SystemTime::now()).unwrap_or_default())
    };
    let after = header.or_else(date).or_else(|| retry_info(body?));
    after.map(|after| after.min(MAX_WAIT))
}

/// `{"@type": "…/google.rpc.RetryInfo", "retryDelay": "1.5s"}`
fn retry_info(body: &Value) -> Option<Duration> {
    let body = body.as_array().and_then(|all| all.first()).unwrap_or(body);
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| {
        let kind = detail.get("@type")?.as_str()?;
        kind.ends_with("google.rpc.RetryInfo").then_some(())?;
        detail.get("retryDelay")?.as_str()
    })?;
    let seconds = delay.strip_suffix('s')?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Truncates a text to one line.
pub(super) fn cut(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > MAX_WORDS {
        line = line.chars().take(MAX_WORDS).collect();
        line.push('…');
    }
    line
}

/// Quotes a name from an untrusted source.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", visible(&cut(name)))
}

#[cfg(test)]
mod tests;
