//! What went wrong, in words for a person and kinds for the loop.
//!
//! What a provider says is data: it is cut, its control characters are shown, and
//! the key is taken out of it, whoever put it there.

use super::{Provider, Secret};
use crate::{ModelError, Trouble};
use ::http::{HeaderMap, StatusCode};
use haft::ops::text::decode::visible;
use serde_json::Value;
use std::error::Error;
use std::time::{Duration, SystemTime};

/// How much of a provider's own words is told.
const MAX_WORDS: usize = 300;
/// Nobody is waited for longer than this, whatever they say.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// Whom it is about.
#[derive(Debug, Clone)]
pub(super) struct Blamed {
    /// The provider.
    pub(super) provider: Provider,
    /// Its host and port.
    pub(super) reach: String,
    /// The key it was sent.
    pub(super) key: Option<Secret>,
}

impl Blamed {
    /// An error of a kind: `what` follows the name of the provider.
    pub(super) fn error(&self, trouble: Trouble, what: &str) -> ModelError {
        let Self {
            provider, reach, ..
        } = self;
        ModelError::new(trouble, self.clean(&format!("{provider} ({reach}) {what}")))
    }

    /// Text that may be shown.
    fn clean(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.redacted(text),
            None => text.to_owned(),
        };
        visible(&text)
    }

    /// No answer: nobody there, or a connection that broke.
    pub(super) fn network(&self, error: &reqwest::Error) -> ModelError {
        // The library's own words hold the address; the deepest cause is a system's
        // or a protocol's, and does not.
        let mut cause: Option<&dyn Error> = error.source();
        while let Some(deeper) = cause.and_then(Error::source) {
            cause = Some(deeper);
        }
        let cause = cause.map_or_else(|| "no answer".to_owned(), ToString::to_string);
        let what = if error.is_connect() && error.is_timeout() {
            "cannot be reached: connecting took too long".to_owned()
        } else if error.is_connect() && self.provider == Provider::Ollama {
            format!("cannot be reached: {cause}; is it running? `ollama serve` starts it")
        } else if error.is_connect() {
            format!("cannot be reached: {cause}")
        } else {
            format!("did not answer to the end: the connection broke ({cause})")
        };
        self.error(Trouble::Network, &cut(&what))
    }

    /// An answer that says no.
    pub(super) fn status(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let words = parsed.as_ref().and_then(words);
        let words = words.unwrap_or_else(|| body.trim().to_owned());
        let mut error = self.refused(status.as_u16(), &words);
        error.retry_after = retry_after(headers, parsed.as_ref());
        error
    }

    /// An error that came inside of an answer.
    pub(super) fn event(&self, body: &str) -> ModelError {
        let parsed: Option<Value> = serde_json::from_str(body).ok();
        let Some(parsed) = parsed else {
            let what = format!("broke off with an error: {}", cut(body));
            return self.error(Trouble::Malformed, &what);
        };
        let words = words(&parsed).unwrap_or_else(|| body.to_owned());
        let mut error = self.refused(code(&parsed), &words);
        error.retry_after = retry_after(&HeaderMap::new(), Some(&parsed));
        error
    }

    fn refused(&self, status: u16, words: &str) -> ModelError {
        let reason = StatusCode::from_u16(status)
            .ok()
            .and_then(|status| status.canonical_reason())
            .map_or_else(String::new, |reason| format!(" {reason}"));
        let said = if words.is_empty() {
            String::new()
        } else {
            format!(": {}", cut(words))
        };
        let trouble = match status {
            400 | 413 | 422 | 500 if is_too_long(words) => Some(Trouble::TooLong),
            413 => Some(Trouble::TooLarge),
            _ => None,
        };
        if let Some(trouble) = trouble {
            let what = format!("says that the conversation is too long{said}");
            return self.error(trouble, &what);
        }
        let advice = match status {
            401 | 403 => self.about_the_key(),
            404 => "; is the name of the model right, and `base_url`?".to_owned(),
            300..=399 => "; a redirect is not followed: set `base_url` to where it leads".into(),
            _ => String::new(),
        };
        let what = format!("answered {status}{reason}{said}{advice}");
        self.error(Trouble::Status(status), &what)
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

/// The provider's own words in an error, wherever it has them.
fn words(body: &Value) -> Option<String> {
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

/// The status that an error inside of an answer would have had.
fn code(body: &Value) -> u16 {
    let error = ["/error", "/response/error"]
        .iter()
        .find_map(|at| body.pointer(at).filter(|error| error.is_object()))
        .unwrap_or(body);
    let number = |key: &str| error.get(key)?.as_u64();
    let numbers = [number("code"), number("status")];
    if let Some(code) = numbers
        .into_iter()
        .flatten()
        .find(|code| (400..600).contains(code))
    {
        return u16::try_from(code).unwrap_or(500);
    }
    let names = ["code", "type", "status"];
    let known = names
        .iter()
        .find_map(|key| named(error.get(*key)?.as_str()?));
    known.unwrap_or(500)
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
fn is_too_long(words: &str) -> bool {
    let words = words.to_lowercase();
    let says = |phrase: &&str| words.contains(phrase);
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

/// When the provider wants to be asked again: by header, or in Google's own words.
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

/// As much of a text as is told, on one line.
pub(super) fn cut(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > MAX_WORDS {
        line = line.chars().take(MAX_WORDS).collect();
        line.push('…');
    }
    line
}

/// A name that came from somewhere, between quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", visible(&cut(name)))
}

#[cfg(test)]
mod tests;
