//! Decides who may send requests at all, from the head of a request, before any of its body
//! is read.

use super::Token;
use super::reply::{Payload, plain_text};
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use subtle::ConstantTimeEq;

/// The only path that is served.
pub(super) const PATH: &str = "/mcp";

/// Access rules.
pub(super) struct Guard {
    pub(super) token: Option<Token>,
    /// Names that clients may use for the server, in addition to its addresses.
    pub(super) hosts: Vec<String>,
    /// Whether the server can only be reached from this machine.
    pub(super) is_local: bool,
}

impl Guard {
    /// Returns the response to a request that is not allowed.
    pub(super) fn check(&self, parts: &Parts) -> Option<Response<Payload>> {
        if !self.names_this_server(&parts.uri, &parts.headers) {
            tracing::debug!("refused a request for another host");
            return Some(plain_text(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not accept that Host; \
                 use localhost or its address",
            ));
        }
        if !is_local_origin(&parts.headers) {
            tracing::debug!("refused a request from another origin");
            return Some(plain_text(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not accept pages of that Origin; \
                 open the page from http://localhost, or send no Origin if the client is not a browser",
            ));
        }
        if let Some(token) = &self.token
            && !has_token(&parts.headers, token)
        {
            tracing::debug!("refused a request without the token");
            let mut response = plain_text(
                StatusCode::UNAUTHORIZED,
                "unauthorized: send the header `Authorization: Bearer TOKEN`",
            );
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            return Some(response);
        }
        if parts.uri.path() != PATH {
            return Some(plain_text(
                StatusCode::NOT_FOUND,
                "not found: the only path is /mcp",
            ));
        }
        None
    }

    /// Whether a request names this server: in its single `Host` header, and in its request
    /// line if that contains a host too.
    fn names_this_server(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(Ok(host)) = only(headers, &HOST).map(HeaderValue::to_str) else {
            return false;
        };
        let line = uri.authority().map(http::uri::Authority::as_str);
        [Some(host), line]
            .into_iter()
            .flatten()
            .all(|named| Host::parse(named).is_some_and(|host| self.accepts_host(&host)))
    }

    /// Any owner of a domain can make a name resolve to this machine, but not an address.
    /// The port does not matter: a tunnel or a proxy may use a different one.
    fn accepts_host(&self, host: &Host<'_>) -> bool {
        match host {
            Host::Address(address) => !self.is_local || address.is_loopback(),
            Host::Name(name) => {
                let is = |known: &str| known.eq_ignore_ascii_case(name);
                is("localhost") || self.hosts.iter().any(|known| is(known))
            }
        }
    }
}

/// Returns the value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// Whether a request comes from a page of this machine, on any port, or not from a page at
/// all. Pages of other hosts, and those that hide their origin, are refused.
fn is_local_origin(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ORIGIN) {
        return true;
    }
    let Some(Ok(origin)) = only(headers, &ORIGIN).map(HeaderValue::to_str) else {
        return false;
    };
    let host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    match host.and_then(Host::parse) {
        Some(Host::Address(address)) => address.is_loopback(),
        Some(Host::Name(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// A host with an optional port and nothing else: `NAME`, `127.0.0.1:80` or `[::1]:80`. URL
/// parsers accept more than that and skip parts they do not understand.
enum Host<'a> {
    Address(IpAddr),
    /// Letters, digits, `-` and `_`, separated by dots. A trailing dot would be another
    /// spelling of the same name, which no client needs, so it is refused.
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

/// Returns a valid host name. A name whose last part starts with a digit is an unusual
/// spelling of an address (`127.1`, `0x7f.1`), and is refused.
fn name(text: &str) -> Option<&str> {
    let is_part = |part: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !part.is_empty() && part.bytes().all(is_plain)
    };
    let last = text.rsplit('.').next()?;
    let is_number = last.starts_with(|first: char| first.is_ascii_digit());
    (text.split('.').all(is_part) && !is_number).then_some(text)
}

/// Whether a request contains the token. Compares in constant time.
fn has_token(headers: &HeaderMap, token: &Token) -> bool {
    let value = only(headers, &AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, given)) = value.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let is_same: bool = given.trim().as_bytes().ct_eq(token.0.as_bytes()).into();
    scheme.eq_ignore_ascii_case("bearer") && is_same
}

#[cfg(test)]
mod tests;
