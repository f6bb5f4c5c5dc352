//! Plain HTTP. Requests and responses are parsed and written anew, so that no second request can
//! hide in the first.

use super::dial::Destination;
use super::request::Content;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Headers about one connection, which are not passed on.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// Returns the destination of a request. Its one `Host` header must agree with its address.
pub(super) fn destination(request: &Request<Incoming>) -> Result<Destination, &'static str> {
    let uri = request.uri();
    if uri.scheme_str() != Some("http") {
        return Err("this is a proxy: requests need a complete http:// address, or CONNECT");
    }
    let authority = uri.authority().ok_or("the address has no host")?;
    if authority.as_str().contains('@') {
        return Err("the address must not contain a user name");
    }
    let to = parse(authority.host(), authority.port_u16()).ok_or("the address is not valid")?;
    agrees(request, &to).map(|()| to)
}

/// Checks that a request inside a tunnel is for the host that the tunnel leads to.
pub(super) fn belongs_to(
    request: &Request<Incoming>,
    to: &Destination,
) -> Result<(), &'static str> {
    let uri = request.uri();
    if uri.authority().is_some() || !uri.path().starts_with('/') {
        return Err("requests in a tunnel need a path as their address");
    }
    agrees(request, to)
}

/// Checks that the one `Host` header names this destination.
fn agrees(request: &Request<Incoming>, to: &Destination) -> Result<(), &'static str> {
    let mut named = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else {
        return Err("exactly one Host header is needed");
    };
    let host: Option<hyper::http::uri::Authority> =
        host.to_str().ok().and_then(|host| host.parse().ok());
    let host = host.filter(|host| !host.as_str().contains('@'));
    match host.and_then(|host| parse(host.host(), host.port_u16())) {
        Some(host) if host == *to => Ok(()),
        _ => Err("the Host header does not agree with the address"),
    }
}

fn parse(host: &str, port: Option<u16>) -> Option<Destination> {
    Destination::parse(host, port.unwrap_or(80))
}

/// Sends a request to the server and returns its response.
pub(super) async fn send(
    request: Request<Incoming>,
    server: TcpStream,
) -> Result<Response<Content>, String> {
    let failed = |error: hyper::Error| format!("the server did not answer properly: {error}");
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse::<Uri>().map_err(|error| error.to_string())?;
    parts.version = Version::HTTP_11;
    strip(&mut parts.headers);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(server))
        .await
        .map_err(failed)?;
    tokio::spawn(connection);
    let response = sender
        .send_request(Request::from_parts(parts, body))
        .await
        .map_err(failed)?;
    let (mut parts, body) = response.into_parts();
    strip(&mut parts.headers);
    Ok(Response::from_parts(parts, Either::Left(body)))
}

/// Removes headers about one connection, including those that `Connection` names.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // The length of the content stays known whatever a client asks for.
    let is_framing = |name: &HeaderName| *name == "content-length" || *name == "transfer-encoding";
    for name in named
        .iter()
        .filter(|name| !is_framing(name) && **name != HOST)
    {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}
