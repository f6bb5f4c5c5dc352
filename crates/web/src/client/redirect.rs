//! Decides where a redirect leads and what may be sent there.

use super::{Endpoint, HttpError, Method};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, LOCATION, PROXY_AUTHORIZATION};
use url::Url;

/// The request that follows a redirect.
pub(super) struct Next {
    pub(super) url: Url,
    /// Whether the target has another origin.
    pub(super) leaves_origin: bool,
    /// Whether to send a `GET` without a body, as browsers do.
    pub(super) drops_body: bool,
}

/// Returns the next request if the response is a redirect.
pub(super) fn next(
    response: &reqwest::Response,
    from: &Url,
    method: Method,
    headers: &HeaderMap,
    has_body: bool,
) -> Result<Option<Next>, HttpError> {
    let keeps_method = match response.status().as_u16() {
        301..=303 => false,
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let refused = |reason| HttpError::Redirect {
        endpoint: Endpoint::of(from),
        reason,
    };
    // Many servers send non-ASCII characters unencoded.
    let url = std::str::from_utf8(location.as_bytes())
        .ok()
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| refused("the target is not a valid URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("the target is not an http or https URL"));
    }
    let leaves_origin = url.origin() != from.origin();
    if from.scheme() == "https" && url.scheme() == "http" && has_credentials(headers) {
        return Err(refused("it would send credentials without encryption"));
    }
    if keeps_method && leaves_origin && has_body {
        // Like a credential, the body is only for the host of the request.
        return Err(refused("it would send the request body to another host"));
    }
    Ok(Some(Next {
        url,
        leaves_origin,
        drops_body: !keeps_method && method == Method::Post,
    }))
}

/// Removes the headers that only the original host may see.
pub(super) fn drop_credentials(headers: &mut HeaderMap) {
    let secret: Vec<_> = headers
        .iter()
        .filter(|(name, value)| is_credential(name, value))
        .map(|(name, _)| name.clone())
        .collect();
    for name in secret {
        headers.remove(name);
    }
}

fn has_credentials(headers: &HeaderMap) -> bool {
    headers
        .iter()
        .any(|(name, value)| is_credential(name, value))
}

fn is_credential(name: &reqwest::header::HeaderName, value: &reqwest::header::HeaderValue) -> bool {
    value.is_sensitive() || [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name)
}
