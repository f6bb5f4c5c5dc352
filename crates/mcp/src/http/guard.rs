//! Who may ask at all. It is decided by the head of a request, before a byte of its body
//! is read.

use super::Token;
use super::reply::{Payload, said};
use http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use std::net::IpAddr;
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
        let is_host = hosts(&parts.uri, &parts.headers)
            .is_some_and(|hosts| hosts.iter().all(|host| self.answers_to(host)));
        if !is_host {
            tracing::debug!("a request for another host was refused");
            return Some(said(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not answer to that Host; call it localhost or by its address",
            ));
        }
        if !parts.headers.get_all(ORIGIN).iter().all(is_local_origin) {
            tracing::debug!("a request from another origin was refused");
            return Some(said(
                StatusCode::FORBIDDEN,
                "forbidden: this server does not answer pages of that Origin",
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

    /// A name can be made to lead here by whoever owns it; an address cannot.
    fn answers_to(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        match address(host) {
            Some(address) => !self.is_local || address.is_loopback(),
            None => self
                .hosts
                .iter()
                .any(|known| known.eq_ignore_ascii_case(host)),
        }
    }
}

/// The hosts that a request names: in its first line, and in its header.
fn hosts(uri: &Uri, headers: &HeaderMap) -> Option<Vec<String>> {
    let mut named = headers.get_all(HOST).iter();
    let (Some(header), None) = (named.next(), named.next()) else {
        return None;
    };
    let header: Authority = header.to_str().ok()?.parse().ok()?;
    let hosts = [Some(&header), uri.authority()];
    let hosts = hosts.into_iter().flatten();
    Some(hosts.map(|authority| authority.host().to_owned()).collect())
}

fn address(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// Pages of this machine may ask; others, and those that hide where they are from, not.
fn is_local_origin(origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let Ok(origin) = origin.parse::<Uri>() else {
        return false;
    };
    let is_web = matches!(origin.scheme_str(), Some("http" | "https"));
    is_web
        && origin.host().is_some_and(|host| {
            host.eq_ignore_ascii_case("localhost")
                || address(host).is_some_and(|address| address.is_loopback())
        })
}

/// Whether a request brings the token. How long it takes says nothing about it.
fn bears(headers: &HeaderMap, token: &Token) -> bool {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Some((scheme, given)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let is_same: bool = given.trim().as_bytes().ct_eq(token.0.as_bytes()).into();
    scheme.eq_ignore_ascii_case("bearer") && is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(is_local: bool) -> Guard {
        Guard {
            token: Some(Token::new("secret-secret")),
            hosts: vec!["tools.example".to_owned()],
            is_local,
        }
    }

    fn status(guard: &Guard, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        guard
            .refuses(&parts)
            .map_or(200, |response| response.status().as_u16())
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer secret-secret");

    #[test]
    fn a_name_that_leads_here_is_no_way_in() {
        let host =
            |is_local: bool, host: &str| status(&guard(is_local), "/mcp", &[("host", host), TOKEN]);
        for good in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:1",
            "[::1]:9",
            "tools.example:1",
        ] {
            assert_eq!(host(true, good), 200, "{good}");
            assert_eq!(host(false, good), 200, "{good}");
        }
        for evil in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil",
            "",
            "a b",
        ] {
            assert_eq!(host(true, evil), 403, "{evil}");
            assert_eq!(host(false, evil), 403, "{evil}");
        }
        assert_eq!(host(true, "192.0.2.1"), 403);
        assert_eq!(host(false, "192.0.2.1"), 200);
        assert_eq!(status(&guard(true), "/mcp", &[TOKEN]), 403, "no Host");
        let two = [("host", "localhost"), ("host", "evil.example"), TOKEN];
        assert_eq!(status(&guard(true), "/mcp", &two), 403);
        let line = status(
            &guard(true),
            "http://evil.example/mcp",
            &[("host", "localhost"), TOKEN],
        );
        assert_eq!(line, 403);
    }

    #[test]
    fn pages_of_other_places_are_refused() {
        let origin = |origin: &str| {
            let headers = [("host", "localhost"), ("origin", origin), TOKEN];
            status(&guard(true), "/mcp", &headers)
        };
        for good in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:1",
        ] {
            assert_eq!(origin(good), 200, "{good}");
        }
        for evil in [
            "http://evil.example",
            "null",
            "http://localhost.evil",
            "file://localhost",
            "",
        ] {
            assert_eq!(origin(evil), 403, "{evil}");
        }
    }

    #[test]
    fn the_token_is_asked_for_everywhere_and_comes_in_one_header() {
        let with = |uri: &str, headers: &[(&str, &str)]| {
            let headers = [&[("host", "localhost")], headers].concat();
            status(&guard(true), uri, &headers)
        };
        assert_eq!(with("/mcp", &[TOKEN]), 200);
        assert_eq!(
            with("/mcp", &[("authorization", "bearer secret-secret")]),
            200
        );
        for (uri, headers) in [
            ("/mcp", &[] as &[(&str, &str)]),
            ("/other", &[]),
            ("/mcp?token=secret-secret", &[]),
            ("/mcp", &[("authorization", "Bearer secret-secret2")]),
            ("/mcp", &[("authorization", "Bearer secret-secre")]),
            ("/mcp", &[("authorization", "Bearer")]),
            ("/mcp", &[("authorization", "Basic secret-secret")]),
            ("/mcp", &[TOKEN, TOKEN]),
        ] {
            assert_eq!(with(uri, headers), 401, "{uri} {headers:?}");
        }
        assert_eq!(with("/", &[TOKEN]), 404);
        assert_eq!(with("/mcp/", &[TOKEN]), 404);
        assert_eq!(with("/mcp/../mcp", &[TOKEN]), 404);
    }
}
