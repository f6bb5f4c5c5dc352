//! Posts messages as JSON to any URL.

use super::http::{DecidedBy, Post, Service, ServiceResponse, Verdict};
use super::transport::Part;
use crate::Secret;
use crate::client::{Header, Url};
use serde_json::json;

pub(super) struct Webhook {
    pub(super) url: Url,
    pub(super) token: Option<Secret>,
}

impl Service for Webhook {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn base(&self) -> &Url {
        &self.url
    }

    fn max_length(&self) -> Option<usize> {
        None
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, part: Part<'_>) -> Result<Post, &'static str> {
        let credential = self.token.as_ref().map(|token| {
            Header::Credential(
                "authorization",
                Secret::new(format!("Bearer {}", token.expose())),
            )
        });
        Ok(Post {
            url: self.url.clone(),
            credential,
            body: json!({ "channel": part.channel, "chat_id": part.chat, "content": part.text }),
        })
    }

    fn judge(&self, response: &ServiceResponse) -> Verdict {
        if response.is_success() {
            return Verdict::Accepted;
        }
        let explanation = ["error", "message", "description", "detail"]
            .iter()
            .find_map(|key| response.string(key))
            .or_else(|| response.text.clone());
        Verdict::Status(explanation)
    }

    fn decided_by(&self) -> DecidedBy {
        DecidedBy::Status
    }

    /// The URL of a webhook grants access by itself, so errors show nothing of it but the host.
    fn secrets(&self) -> Vec<String> {
        let path = self.url.path();
        let query = self.url.query().unwrap_or_default();
        let values = self.url.query_pairs().map(|(_, value)| value.into_owned());
        let parts = path.split('/').map(str::to_owned).chain(values);
        let mut secrets: Vec<String> = parts.filter(|part| part.len() >= 6).collect();
        secrets.push(self.url.as_str().to_owned());
        secrets.push(query.to_owned());
        secrets.extend(Some(path.to_owned()).filter(|path| path.len() >= 6));
        secrets.extend(self.token.as_ref().map(|token| token.expose().to_owned()));
        secrets
    }
}
