//! Streamable HTTP through haft's own client: what is dialled is what the person
//! configured, redirects are not followed, and credentials go to that address alone.

use super::events::{Events, LARGEST};
use super::sign_in::SignIn;
use futures::StreamExt;
use futures::stream::BoxStream;
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

/// How long one exchange may last: a stream of events may be open for a day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How much is read of an answer that says what went wrong.
const COMPLAINT: usize = 64 << 10;

/// How many events a second may come in one answer.
const MOST_EVENTS: u32 = 1_000;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// Speaks to one server.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    url: Url,
    headers: Arc<Vec<(String, Secret)>>,
    sign_in: Option<Arc<SignIn>>,
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("it answered {0}")]
    Status(String),
    #[error("it redirects to another address, which is not followed: give that one")]
    Redirect,
    #[error("its stream names another place for messages, where none are sent")]
    Elsewhere,
    #[error("the sign-in is no good any more: {0}")]
    SignIn(String),
}

type Wrong = StreamableHttpError<Failure>;

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

    /// Where the server is.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request to an address of the server, which is one of the same origin.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        mut headers: Vec<Header>,
        body: Option<Vec<u8>>,
    ) -> Result<Response, Failure> {
        let is_given = |wanted: &str| {
            let named = self.headers.iter();
            named
                .into_iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        if let Some(sign_in) = &self.sign_in
            && !is_given("authorization")
            && let Some(token) = sign_in
                .token()
                .await
                .map_err(|error| Failure::SignIn(error.to_string()))?
        {
            let bearer = Secret::new(format!("Bearer {}", token.expose()));
            headers.push(Header::Credential("authorization", bearer));
        }
        let own = self.headers.iter();
        headers.extend(own.map(|(name, value)| Header::Named(name.clone(), value.clone())));
        let response = self
            .client
            .send(Request {
                method,
                url,
                origin: Origin::Configuration,
                headers,
                body,
                timeout: DAY,
                limit: usize::MAX,
                redirects: Redirects::Refuse,
            })
            .await?;
        if matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return Err(Failure::Redirect);
        }
        Ok(response)
    }

    async fn exchange(
        &self,
        method: Method,
        accept: &str,
        body: Option<Vec<u8>>,
        session: Option<&str>,
        more: &HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response, Wrong> {
        let mut headers = vec![Header::Plain("accept", accept.to_owned())];
        if body.is_some() {
            headers.push(Header::Plain("content-type", JSON.to_owned()));
        }
        if let Some(session) = session {
            headers.push(Header::Plain("mcp-session-id", session.to_owned()));
        }
        for (name, value) in more {
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
            (429 | 500..=599, _) if !is(&response, JSON) => {
                let retry = response.header("retry-after").map(str::to_owned);
                Err(HttpStatusError::new(response.status, retry).into())
            }
            _ => Ok(response),
        }
    }
}

/// What a server said about signing in, where that is what an error comes from.
pub(super) fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(wanted) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(wanted.www_authenticate_header.clone());
        }
        next = error.source();
    }
    None
}

fn is(response: &Response, wanted: &str) -> bool {
    response
        .header("content-type")
        .is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with(wanted))
}

async fn body(response: Response, limit: usize) -> Result<Vec<u8>, Wrong> {
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
                format!("an answer larger than {limit} bytes").into(),
            ));
        }
    }
    Ok(bytes)
}

/// The answer to a message. Older servers answer anything with nothing: who does so to
/// the question of what it is does not know it, and is asked in the older way.
fn understood(
    message: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> ServerJsonRpcMessage {
    match (message, &answer) {
        (JsonRpcMessage::Request(request), JsonRpcMessage::Response(response))
            if matches!(request.request, ClientRequest::DiscoverRequest(_))
                && !matches!(response.result, ServerResult::DiscoverResult(_)) =>
        {
            let error = ErrorData::invalid_request("it answered with something else", None);
            ServerJsonRpcMessage::error(error, Some(request.id.clone()))
        }
        _ => answer,
    }
}

/// What an answer that is no success comes to.
async fn complaint(
    message: &ClientJsonRpcMessage,
    response: Response,
    has_session: bool,
) -> Result<StreamableHttpPostResponse, Wrong> {
    let (status, is_bad_request) = (response.status_line(), response.status == 400);
    let text = body(response, COMPLAINT).await.unwrap_or_default();
    // Some say so where others answer 404: the server has begun anew meanwhile.
    let words = String::from_utf8_lossy(&text).to_lowercase();
    if has_session && is_bad_request && words.contains("session") {
        return Err(StreamableHttpError::SessionExpired);
    }
    let said = serde_json::from_slice::<ServerJsonRpcMessage>(&text).ok();
    let said = match said {
        Some(JsonRpcMessage::Error(error)) => Some(error.error),
        _ => None,
    };
    // Whoever does not know this question is asked in the older way.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
    {
        let unknown = || ErrorData::invalid_request(format!("it answered {status}"), None);
        let error = said.unwrap_or_else(unknown);
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match (said, message) {
        (Some(error), JsonRpcMessage::Request(request)) => {
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        _ => Err(StreamableHttpError::Client(Failure::Status(status))),
    }
}

impl StreamableHttpClient for Http {
    type Error = Failure;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Wrong> {
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
            return complaint(&message, response, session_id.is_some()).await;
        }
        let session = response.header("mcp-session-id").map(str::to_owned);
        if is(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(stream(response), session));
        }
        let is_request = matches!(message, JsonRpcMessage::Request(_));
        if !is(&response, JSON) && is_request {
            let kind = response.header("content-type").map(str::to_owned);
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let text = body(response, LARGEST).await?;
        match super::stdio::messages(&text).next() {
            Some(answer) => {
                let answer = understood(&message, answer);
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            None if !is_request => Ok(StreamableHttpPostResponse::Accepted),
            None => Err(StreamableHttpError::UnexpectedServerResponse(
                "an answer that is no message".into(),
            )),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Wrong> {
        // Who cannot be told will find out by itself.
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
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Wrong> {
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
        if !(200..300).contains(&response.status) || !is(&response, EVENTS) {
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
            let (since, many) = &mut second;
            if since.elapsed() > Duration::from_secs(1) {
                (*since, *many) = (Instant::now(), 0);
            }
            *many += 1;
            if *many > MOST_EVENTS {
                tracing::warn!("an MCP server sends events without end: its stream is closed");
                let flood = std::io::Error::other("it sends more events than can be heard");
                return Err(SseError::Body(Box::new(flood)));
            }
            event.map_err(|error| SseError::Body(Box::new(error)))
        })
        .boxed()
}
