//! Where a redirect leads, and what may go there.

use super::{HttpError, Method, Reach};
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderMap, LOCATION, PROXY_AUTHORIZATION};
use url::Url;

/// The next request of a chain.
pub(super) struct Next {
    /// Where it goes.
    pub(super) url: Url,
    /// Whether that is another origin.
    pub(super) leaves: bool,
    /// Whether it asks, whatever the request before it did.
    pub(super) forget_body: bool,
}

/// The next request, if an answer is a redirect.
pub(super) fn next(
    answer: &reqwest::Response,
    from: &Url,
    method: Method,
    headers: &HeaderMap,
    has_body: bool,
) -> Result<Option<Next>, HttpError> {
    let keeps_method = match answer.status().as_u16() {
        301..=303 => false,
        307 | 308 => true,
        _ => return Ok(None),
    };
    let Some(location) = answer.headers().get(LOCATION) else {
        return Ok(None);
    };
    let refused = |reason| HttpError::Redirect {
        reach: Reach::of(from),
        reason,
    };
    // Many servers write what is not ASCII as it is.
    let url = std::str::from_utf8(location.as_bytes())
        .ok()
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| refused("it leads to no address"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("it leads to something that is not http or https"));
    }
    let leaves = url.origin() != from.origin();
    if from.scheme() == "https" && url.scheme() == "http" && has_credentials(headers) {
        return Err(refused("it leads away from encryption"));
    }
    if keeps_method && leaves && has_body {
        // The body was meant for the host that was asked, like a credential.
        return Err(refused("it would hand what was sent to another host"));
    }
    Ok(Some(Next {
        url,
        leaves,
        forget_body: !keeps_method && method == Method::Post,
    }))
}

/// Forgets what only the first host may see.
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
