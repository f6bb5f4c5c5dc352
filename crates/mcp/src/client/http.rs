//! Streamable HTTP through haft's own client: only the configured host is contacted,
//! redirects are followed only there, and credentials are sent nowhere else.

use super::events::Events;
use super::sign_in::SignIn;
use futures::StreamExt;
use futures::stream::BoxStream;
use haft::sse::MAX_EVENT;
use haft_web::client::{Header, Method, Origin, Redirects, Url};
use haft_web::{Client, HttpError, Request, Response, Secret};
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum duration of one exchange: a stream of events may stay open for a day.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of bytes read from an error response.
const MAX_ERROR: usize = 64 << 10;

/// Maximum number of events per second in one response.
const MAX_EVENTS: u32 = 1_000;

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 3;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// HTTP client for one server.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    url: Url,
    headers: Arc<Vec<(String, Secret)>>,
    sign_in: Option<Arc<SignIn>>,
}

/// Reason for a missing response.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("it answered {0}")]
    Status(String),
    #[error(
        "it redirects to another host, which haft does not follow: configure that address instead"
    )]
    Redirect,
    #[error("its stream names an address on another host for messages, which haft does not use")]
    OtherHost,
    #[error("the sign-in is no longer valid: {0}")]
    SignIn(String),
}

type TransportError = StreamableHttpError<HttpFailure>;

impl Http {
    pub(super) fn new(
        client: Client,
        url: Url,
        headers: Vec<(String, Secret)>,
        sign_in: Option<Arc<SignIn>>,
    ) -> Self {
        Self {
            client,
            url,
            headers: Arc::new(headers),
            sign_in,
        }
    }

    /// Returns the configured address.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request to an address of the server, which must have the same origin.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        mut headers: Vec<Header>,
        body: Option<Vec<u8>>,
    ) -> Result<Response, HttpFailure> {
        let has_header = |expected: &str| {
            let names = self.headers.iter();
            names
                .into_iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(expected))
        };
        if let Some(sign_in) = &self.sign_in
            && !has_header("authorization")
            && let Some(token) = sign_in
                .token()
                .await
                .map_err(|error| HttpFailure::SignIn(error.to_string()))?
        {
            let bearer = Secret::new(format!("Bearer {}", token.expose()));
            headers.push(Header::Credential("authorization", bearer));
        }
        let own = self.headers.iter();
        headers.extend(own.map(|(name, value)| Header::Named(name.clone(), value.clone())));
        let mut url = url;
        for _ in 0..=MAX_REDIRECTS {
            let request = Request {
                method,
                url: url.clone(),
                origin: Origin::Configuration,
                headers: headers.clone(),
                body: body.clone(),
                timeout: EXCHANGE_TIMEOUT,
                limit: usize::MAX,
                redirects: Redirects::Refuse,
            };
            let response = self.client.send(request).await?;
            if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
                return Ok(response);
            }
            // Many servers redirect `/mcp` to `/mcp/`.
            let target = response.header("location").and_then(|to| url.join(to).ok());
            match target {
                Some(to) if to.origin() == url.origin() && response.status != 303 => url = to,
                _ => return Err(HttpFailure::Redirect),
            }
        }
        Err(HttpFailure::Redirect)
    }

    async fn exchange(
        &self,
        method: Method,
        accept: &str,
        body: Option<Vec<u8>>,
        session: Option<&str>,
        extra_headers: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response, TransportError> {
        let mut headers = vec![Header::Plain("accept", accept.to_owned())];
        if body.is_some() {
            headers.push(Header::Plain("content-type", JSON.to_owned()));
        }
        if let Some(session) = session {
            headers.push(Header::Plain("mcp-session-id", session.to_owned()));
        }
        for (name, value) in extra_headers {
            if let Ok(value) = value.to_str() {
                let value = Secret::new(value);
                headers.push(Header::Named(name.as_str().to_owned(), value));
            }
        }
        let response = self
            .send(method, self.url.clone(), headers, body)
            .await
            .map_err(StreamableHttpError::Client)?;
        let challenge = response.header("www-authenticate").map(str::to_owned);
        match (response.status, challenge) {
            (401, challenge) => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
                challenge.unwrap_or_default(),
            ))),
            (403, Some(challenge)) => Err(StreamableHttpError::InsufficientScope(
                InsufficientScopeError::new(challenge, None),
            )),
            (429 | 500..=599, _) if !has_content_type(&response, JSON) => {
                let retry = response.header("retry-after").map(str::to_owned);
                Err(HttpStatusError::new(response.status, retry).into())
            }
            _ => Ok(response),
        }
    }
}

/// Returns the server's sign-in challenge, if that is the cause of an error.
pub(super) fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(expected) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(expected.www_authenticate_header.clone());
        }
        next = error.source();
    }
    None
}

fn has_content_type(response: &Response, expected: &str) -> bool {
    response
        .header("content-type")
        .is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with(expected))
}

async fn body(response: Response, limit: usize) -> Result<Vec<u8>, TransportError> {
    let mut response = response;
    let mut bytes = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| StreamableHttpError::Client(error.into()))?
    {
        bytes.extend_from_slice(&piece);
        if bytes.len() > limit {
            return Err(StreamableHttpError::UnexpectedServerResponse(
                format!("a response larger than {limit} bytes").into(),
            ));
        }
    }
    Ok(bytes)
}

/// Checks the response to a message. Older servers may answer any request with an empty
/// result; if that is the response to `discover`, the server does not know it, and we fall
/// back to `initialize`.
fn check_discovery(
    message: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> ServerJsonRpcMessage {
    match (message, &answer) {
        (JsonRpcMessage::Request(request), JsonRpcMessage::Response(response))
            if matches!(request.request, ClientRequest::DiscoverRequest(_))
                && !matches!(response.result, ServerResult::DiscoverResult(_)) =>
        {
            let error = ErrorData::invalid_request("it did not answer with its description", None);
            ServerJsonRpcMessage::error(error, Some(request.id.clone()))
        }
        _ => answer,
    }
}

/// Handles a response with an error status.
async fn handle_error(
    message: &ClientJsonRpcMessage,
    response: Response,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, TransportError> {
    let (status, is_bad_request) = (response.status_line(), response.status == 400);
    let text = body(response, MAX_ERROR).await.unwrap_or_default();
    // Some servers use this instead of 404 to report that they have restarted and lost the
    // session.
    let text_lowercase = String::from_utf8_lossy(&text).to_lowercase();
    if has_session && is_bad_request && text_lowercase.contains("session") {
        return Err(StreamableHttpError::SessionExpired);
    }
    let server_error = serde_json::from_slice::<ServerJsonRpcMessage>(&text).ok();
    let server_error = match server_error {
        Some(JsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    // A server that does not know `discover` gets `initialize` instead.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
    {
        let unknown = || ErrorData::invalid_request(format!("it answered {status}"), None);
        let error = server_error.unwrap_or_else(unknown);
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match (server_error, message) {
        (Some(error), JsonRpcMessage::Request(request)) => {
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        _ => Err(StreamableHttpError::Client(HttpFailure::Status(status))),
    }
}

impl StreamableHttpClient for Http {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let bytes = serde_json::to_vec(&message)?;
        let accept = format!("{JSON}, {EVENTS}");
        let response = self
            .exchange(
                Method::Post,
                &accept,
                Some(bytes),
                session_id.as_deref(),
                &custom_headers,
            )
            .await?;
        if matches!(response.status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if response.status == 404 && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !(200..300).contains(&response.status) {
            return handle_error(&message, response, session_id.is_some()).await;
        }
        let session = response.header("mcp-session-id").map(str::to_owned);
        if has_content_type(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(stream(response), session));
        }
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if !has_content_type(&response, JSON) && is_request {
            let kind = response.header("content-type").map(str::to_owned);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let text = body(response, MAX_EVENT).await?;
        match super::stdio::messages(&text).next() {
            Some(answer) => {
                let answer = check_discovery(&message, answer);
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            None if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            None => Err(StreamableHttpError::UnexpectedServerResponse(
                "a response that is not a valid message".into(),
            )),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), TransportError> {
        // If this fails, the server ends the session by timeout.
        self.exchange(
            Method::Delete,
            JSON,
            None,
            Some(&session_id),
            &custom_headers,
        )
        .await
        .map(|_| ())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        mut custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        if let Some(last) = last_event_id.and_then(|last| HeaderValue::from_str(&last).ok()) {
            custom_headers.insert(HeaderName::from_static("last-event-id"), last);
        }
        let response = self
            .exchange(
                Method::Get,
                EVENTS,
                None,
                session_id.as_deref(),
                &custom_headers,
            )
            .await?;
        if !(200..300).contains(&response.status) || !has_content_type(&response, EVENTS) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        Ok(stream(response))
    }
}

fn stream(response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let events = Events::new(response).stream();
    let mut second = (Instant::now(), 0_u32);
    events
        .map(move |event| {
            let (since, count) = &mut second;
            if since.elapsed() > Duration::from_secs(1) {
                (*since, *count) = (Instant::now(), 0);
            }
            *count += 1;
            if *count > MAX_EVENTS {
                tracing::warn!("an MCP server floods its event stream: closing it");
                let flood = std::io::Error::other("it sends too many events");
                return Err(SseError::Body(Box::new(flood)));
            }
            event.map_err(|error| SseError::Body(Box::new(error)))
        })
        .boxed()
}
