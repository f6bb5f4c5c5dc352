//! One request to the proxy: who makes it, where it leads, and whether it may.

use super::dial::{Destination, NotDialled, dial};
use super::tunnel::{self, Tunnel};
use super::{Inner, Tunnels, forward};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use haft_ops::exec::network::{HostJudge, HostVerdict, Refusal};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::{Arc, PoisonError};
use tokio::net::TcpStream;

/// Content of a response: the server's, or a sentence of the proxy.
pub(super) type Content = Either<Incoming, Full<Bytes>>;

/// Answers one request.
pub(super) async fn answer(
    proxy: &Arc<Inner>,
    tunnels: &Tunnels,
    request: Request<Incoming>,
) -> Response<Content> {
    let Some(judge) = judge_of(proxy, &request) else {
        let mut response = sentence(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            "the command's own name is missing: use the address in HTTPS_PROXY as it is",
        );
        let basic = HeaderValue::from_static("Basic realm=\"haft\"");
        response.headers_mut().insert(PROXY_AUTHENTICATE, basic);
        return response;
    };
    let is_tunnel = request.method() == Method::CONNECT;
    let to = match is_tunnel {
        true => tunnel::destination(&request),
        false => forward::destination(&request),
    };
    let to = match to {
        Ok(to) => to,
        Err(why) => return sentence(StatusCode::BAD_REQUEST, why),
    };
    let server = match reach(proxy, &judge, &to).await {
        Ok(server) => server,
        Err(response) => return response,
    };
    match is_tunnel {
        true => {
            let tunnel = Tunnel {
                proxy: Arc::clone(proxy),
                judge,
                to,
            };
            let mut tunnels = tunnels.lock().unwrap_or_else(PoisonError::into_inner);
            tunnels.spawn(tunnel.run(request, server));
            Response::new(Either::Right(Full::default()))
        }
        false => forwarded(request, server).await,
    }
}

/// Connects to a host if that is allowed, or returns the response that says why not.
pub(super) async fn reach(
    proxy: &Inner,
    judge: &Arc<dyn HostJudge>,
    to: &Destination,
) -> Result<TcpStream, Response<Content>> {
    let verdict = Arc::clone(judge).judge(&to.name(), to.port).await;
    if verdict == HostVerdict::Refused {
        let text = format!(
            "the sandbox refuses connections to {}:{}",
            to.name(),
            to.port
        );
        return Err(sentence(StatusCode::FORBIDDEN, text));
    }
    dial(proxy, to, verdict).await.map_err(|not| match not {
        NotDialled::OutOfReach(why) => {
            judge.refused(&to.name(), to.port, Refusal::Address(why.clone()));
            sentence(StatusCode::FORBIDDEN, why)
        }
        NotDialled::Failed(why) => sentence(StatusCode::BAD_GATEWAY, why),
    })
}

/// Sends a request to the server and returns its response, or why there is none.
pub(super) async fn forwarded(request: Request<Incoming>, server: TcpStream) -> Response<Content> {
    let sent = forward::send(request, server).await;
    sent.unwrap_or_else(|why| sentence(StatusCode::BAD_GATEWAY, why))
}

/// Returns the judge of the call that the command names.
fn judge_of(proxy: &Inner, request: &Request<Incoming>) -> Option<Arc<dyn HostJudge>> {
    let given = request.headers().get(PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = given.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, _) = decoded.split_once(':')?;
    let passes = proxy.passes.lock().unwrap_or_else(PoisonError::into_inner);
    passes.get(name).cloned()
}

/// Creates a response that is one sentence.
pub(super) fn sentence(status: StatusCode, text: impl Into<String>) -> Response<Content> {
    let text = format!("haft: {}\n", text.into());
    let mut response = Response::new(Either::Right(Full::from(text)));
    *response.status_mut() = status;
    response
}
