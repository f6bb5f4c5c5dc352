//! Addresses of providers, and the header that carries the key.

use super::{Provider, Secret, Settings, SettingsError};
use ::http::HeaderValue;
use url::Url;

/// An address to send to, with the key for it.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    /// The whole address. It never contains a key.
    pub(super) url: Url,
    /// Name and value of the header that carries the key.
    pub(super) credential: Option<(&'static str, HeaderValue)>,
    /// The key, to remove it from errors.
    pub(super) key: Option<Secret>,
    /// Whether this is the provider itself, not a compatible server.
    pub(super) is_own: bool,
}

impl Endpoint {
    pub(super) fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let provider = settings.provider;
        if settings.model.trim().is_empty() {
            return Err(SettingsError::Model { provider });
        }
        let key = settings
            .api_key
            .clone()
            .filter(|key| !key.expose().is_empty());
        if let (None, None, Some(variable)) = (&key, &settings.base_url, provider.key_variable()) {
            return Err(SettingsError::Key { provider, variable });
        }
        let url = address(settings)?;
        let credential = match &key {
            None => None,
            Some(key) => Some(credential(provider, key)?),
        };
        let is_own = url.host_str() == own(provider).split('/').nth(2);
        Ok(Self {
            url,
            credential,
            key,
            is_own,
        })
    }

    /// Returns the host and the port. Errors show no other part of the address.
    pub(super) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

/// Builds the header that carries a key.
fn credential(
    provider: Provider,
    key: &Secret,
) -> Result<(&'static str, HeaderValue), SettingsError> {
    let (name, value) = match provider {
        Provider::Anthropic => ("x-api-key", key.expose().to_owned()),
        Provider::Google => ("x-goog-api-key", key.expose().to_owned()),
        Provider::OpenaiResponses | Provider::OpenaiCompletions | Provider::Ollama => {
            ("authorization", format!("Bearer {}", key.expose()))
        }
    };
    let mut value =
        HeaderValue::from_str(&value).map_err(|_| SettingsError::KeyCharacters { provider })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Default address of a provider.
fn own(provider: Provider) -> &'static str {
    match provider {
        Provider::Anthropic => "https://api.anthropic.com",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "https://api.openai.com/v1",
        Provider::Google => "https://generativelanguage.googleapis.com",
        Provider::Ollama => "http://localhost:11434",
    }
}

/// Builds the address from `base_url`, which may end with the version that the path starts
/// with.
fn address(settings: &Settings) -> Result<Url, SettingsError> {
    let provider = settings.provider;
    let wrong = |reason| SettingsError::Address { provider, reason };
    let base = settings.base_url.as_deref().unwrap_or(own(provider)).trim();
    let no_address = || wrong("is not an address: it must start with http:// or https://");
    let mut url = Url::parse(base).map_err(|_| no_address())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(no_address());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "holds a user name or a password: set `api_key` instead",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(
            "has a ? or a # in it: it ends where the protocol's path begins",
        ));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let path = match provider {
        Provider::Anthropic => {
            let root = path.strip_suffix("/v1").unwrap_or(&path);
            format!("{root}/v1/messages")
        }
        Provider::OpenaiResponses => path.clone() + "/responses",
        Provider::OpenaiCompletions => path.clone() + "/chat/completions",
        Provider::Google => {
            let root = ["/v1beta", "/v1"]
                .iter()
                .find_map(|end| path.strip_suffix(end))
                .unwrap_or(&path);
            let model = settings.model.trim();
            let model = model.strip_prefix("models/").unwrap_or(model);
            let model: String = url::form_urlencoded::byte_serialize(model.as_bytes()).collect();
            format!("{root}/v1beta/models/{model}:streamGenerateContent")
        }
        Provider::Ollama => {
            let ends = ["/v1", "/api"];
            let root = ends.iter().find_map(|end| path.strip_suffix(end));
            format!("{}/api/chat", root.unwrap_or(&path))
        }
    };
    url.set_path(&path);
    if provider == Provider::Google {
        url.set_query(Some("alt=sse"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests;
