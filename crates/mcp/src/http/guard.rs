//! Who may ask at all. It is decided by the head of a request, before a byte of its body
//! is read.

use super::Token;
use super::reply::{Payload, said};
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use subtle::ConstantTimeEq;

/// The one path there is.
pub(super) const PATH: &str = "/mcp";

/// What is checked.
pub(super) struct Guard {
    pub(super) token: Option<Token>,
    /// The names that clients may call the server by, beyond its addresses.
    pub(super) hosts: Vec<String>,
    /// Whether only this machine can reach it.
    pub(super) is_local: bool,
    /// The port it listens on.
    pub(super) port: u16,
}

impl Guard {
    /// The refusal, if there is one.
    pub(super) fn refuses(&self, parts: &Parts) -> Option<Response<Payload>> {
        if !self.is_called_by_name(&parts.uri, &parts.headers) {
            tracing::debug!("a request for another host was refused");
            let port = self.port;
            return Some(said(
                StatusCode::FORBIDDEN,
                &format!(
                    "forbidden: this server does not answer to that Host; \
                     call it localhost:{port} or by its address and port"
                ),
            ));
        }
        if !is_from_here(&parts.headers) {
            tracing::debug!("a request from another origin was refused");
            return Some(said(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not answer pages of that Origin; \
                 open the page from http://localhost, or send no Origin if the client is not a browser",
            ));
        }
        if let Some(token) = &self.token
            && !bears(&parts.headers, token)
        {
            tracing::debug!("a request without the token was refused");
            let mut response = said(
                StatusCode::UNAUTHORIZED,
                "unauthorized: send the header `Authorization: Bearer TOKEN`",
            );
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return Some(response);
        }
        if parts.uri.path() != PATH {
            return Some(said(StatusCode::NOT_FOUND, "not found: there is only /mcp"));
        }
        None
    }

    /// Whether a request names this server: in its one `Host` header, and in its first
    /// line where that has a host too.
    fn is_called_by_name(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(Ok(host)) = only(headers, &HOST).map(HeaderValue::to_str) else {
            return false;
        };
        let line = uri.authority().map(http::uri::Authority::as_str);
        [Some(host), line]
            .into_iter()
            .flatten()
            .all(|named| Place::parse(named).is_some_and(|place| self.answers_to(&place)))
    }

    /// A name can be made to lead here by whoever owns it; an address cannot. Behind an
    /// address that others reach there may be another port in front of ours.
    fn answers_to(&self, place: &Place<'_>) -> bool {
        let is_port = !self.is_local || place.port.unwrap_or(80) == self.port;
        match place.host {
            Host::Address(address) => is_port && (!self.is_local || address.is_loopback()),
            Host::Name(name) => {
                let is = |known: &str| known.eq_ignore_ascii_case(name);
                (is("localhost") && is_port) || self.hosts.iter().any(|known| is(known))
            }
        }
    }
}

/// The value of a header that comes once.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// Pages of this machine may ask, whatever port they are from; others, and those that hide
/// where they are from, may not. What is no page says nothing.
fn is_from_here(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ORIGIN) {
        return true;
    }
    let Some(Ok(origin)) = only(headers, &ORIGIN).map(HeaderValue::to_str) else {
        return false;
    };
    let place = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    match place.and_then(Place::parse).map(|place| place.host) {
        Some(Host::Address(address)) => address.is_loopback(),
        Some(Host::Name(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// A host and a port, and nothing else: `NAME`, `127.0.0.1:80` or `[::1]:80`. Parsers of
/// whole addresses take more than that, and leave out what they do not understand.
struct Place<'a> {
    host: Host<'a>,
    port: Option<u16>,
}

enum Host<'a> {
    Address(IpAddr),
    /// Letters, digits, `-`, `_` and dots within. A dot at the end is another spelling of the
    /// same name, which no client needs; it is refused like all others.
    Name(&'a str),
}

impl<'a> Place<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = match rest {
                "" => None,
                rest => Some(port(rest.strip_prefix(':')?)?),
            };
            let host = Host::Address(address.parse::<Ipv6Addr>().ok()?.into());
            return Some(Self { host, port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, digits)) => (host, Some(port(digits)?)),
            None => (text, None),
        };
        let host = match host.parse::<Ipv4Addr>() {
            Ok(address) => Host::Address(address.into()),
            Err(_) => Host::Name(name(host)?),
        };
        Some(Self { host, port })
    }
}

fn port(digits: &str) -> Option<u16> {
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_plain)
}

/// A name of a host. One whose last part begins with a digit is a way to write an address
/// (`127.1`, `0x7f.1`), and only the usual way is taken.
fn name(text: &str) -> Option<&str> {
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !part.is_empty() && part.bytes().all(is_plain)
    };
    let last = text.rsplit('.').next()?;
    let is_number = last.starts_with(|first: char| first.is_ascii_digit());
    (text.split('.').all(is_part) && !is_number).then_some(text)
}

/// Whether a request brings the token. How long it takes says nothing about it.
fn bears(headers: &HeaderMap, token: &Token) -> bool {
    let value = only(headers, &AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, given)) = value.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let is_same: bool = given.trim().as_bytes().ct_eq(token.0.as_bytes()).into();
    scheme.eq_ignore_ascii_case("bearer") && is_same
}

#[cfg(test)]
mod tests;
