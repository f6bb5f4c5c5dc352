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
}

impl Guard {
    /// The refusal, if there is one.
    pub(super) fn refuses(&self, parts: &Parts) -> Option<Response<Payload>> {
        if !self.is_called_by_name(&parts.uri, &parts.headers) {
            tracing::debug!("a request for another host was refused");
            return Some(said(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not answer to that Host; \
                 call it localhost or by its address",
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
            .all(|named| Host::parse(named).is_some_and(|host| self.answers_to(&host)))
    }

    /// A name can be made to lead here by whoever owns it; an address cannot. The port does
    /// not matter: a tunnel or a proxy may have another in front of ours.
    fn answers_to(&self, host: &Host<'_>) -> bool {
        match host {
            Host::Address(address) => !self.is_local || address.is_loopback(),
            Host::Name(name) => {
                let is = |known: &str| known.eq_ignore_ascii_case(name);
                is("localhost") || self.hosts.iter().any(|known| is(known))
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
    match place.and_then(Host::parse) {
        Some(Host::Address(address)) => address.is_loopback(),
        Some(Host::Name(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// The host of a text that is a host, perhaps a port, and nothing else: `NAME`,
/// `127.0.0.1:80` or `[::1]:80`. Parsers of whole addresses accept more than that and skip
/// what they do not understand.
enum Host<'a> {
    Address(IpAddr),
    /// Letters, digits, `-`, `_` and dots within. A dot at the end is another spelling of the
    /// same name, which no client needs; it is refused like all others.
    Name(&'a str),
}

impl<'a> Host<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let is_port = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
            let address = address.parse::<Ipv6Addr>().ok()?;
            return is_port.then_some(Self::Address(address.into()));
        }
        let host = match text.split_once(':') {
            Some((host, port)) => is_port(port).then_some(host)?,
            None => text,
        };
        match host.parse::<Ipv4Addr>() {
            Ok(address) => Some(Self::Address(address.into())),
            Err(_) => name(host).map(Self::Name),
        }
    }
}

fn is_port(digits: &str) -> bool {
    let is_plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
    is_plain && digits.parse::<u16>().is_ok()
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
