//! The host that holds the files. Interpreted code cannot reach files itself; each access
//! is a request to the host.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::Context;
use haft::guest::{FileInfo, Guest, GuestRequest, GuestResponse, Refusal};

/// Answers the requests of one call.
#[async_trait]
pub(crate) trait Host: Send + Sync {
    /// Sends one request.
    async fn ask(&self, ask: GuestRequest) -> GuestResponse;
}

/// The runtime of this process, for use without a session.
pub(crate) struct LocalHost {
    pub(crate) cx: Context,
    pub(crate) guest: Guest,
}

#[async_trait]
impl Host for LocalHost {
    async fn ask(&self, ask: GuestRequest) -> GuestResponse {
        self.guest.answer(&self.cx, ask).await
    }
}

/// Reason why a request was refused.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) why: Refusal,
    pub(crate) message: String,
}

impl Refused {
    fn invalid_response() -> Self {
        Self {
            why: Refusal::Failed,
            message: "the response does not match the request".to_owned(),
        }
    }
}

/// Typed requests.
impl dyn Host + '_ {
    pub(crate) async fn stat(&self, path: String) -> Result<FileInfo, Refused> {
        match self.ask(GuestRequest::Stat { path }).await {
            GuestResponse::Stat(seen) => Ok(seen),
            other => Err(from_response(other)),
        }
    }

    pub(crate) async fn list(&self, path: String) -> Result<Vec<(String, FileInfo)>, Refused> {
        match self.ask(GuestRequest::List { path }).await {
            GuestResponse::List { entries } => Ok(entries
                .into_iter()
                .map(|named| (named.name, named.seen))
                .collect()),
            other => Err(from_response(other)),
        }
    }

    pub(crate) async fn read(&self, path: String) -> Result<(Vec<u8>, String), Refused> {
        self.data(GuestRequest::Read { path }).await
    }

    pub(crate) async fn fetch(&self, url: String) -> Result<Vec<u8>, Refused> {
        Ok(self.data(GuestRequest::Fetch { url }).await?.0)
    }

    async fn data(&self, ask: GuestRequest) -> Result<(Vec<u8>, String), Refused> {
        match self.ask(ask).await {
            GuestResponse::Data { data, version } => {
                let bytes = STANDARD
                    .decode(data)
                    .map_err(|_| Refused::invalid_response())?;
                Ok((bytes, version))
            }
            other => Err(from_response(other)),
        }
    }

    pub(crate) async fn write(
        &self,
        path: String,
        bytes: &[u8],
        was: Option<String>,
    ) -> Result<(), Refused> {
        let data = STANDARD.encode(bytes);
        self.done(GuestRequest::Write { path, data, was }).await
    }

    pub(crate) async fn remove(&self, path: String, was: Option<String>) -> Result<(), Refused> {
        self.done(GuestRequest::Remove { path, was }).await
    }

    async fn done(&self, ask: GuestRequest) -> Result<(), Refused> {
        match self.ask(ask).await {
            GuestResponse::Done => Ok(()),
            other => Err(from_response(other)),
        }
    }

    /// Stores a full output and returns its path.
    pub(crate) async fn keep(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let (name, data) = (name.to_owned(), STANDARD.encode(bytes));
        match self.ask(GuestRequest::Keep { name, data }).await {
            GuestResponse::Kept { path } => path,
            _ => None,
        }
    }
}

fn from_response(response: GuestResponse) -> Refused {
    match response {
        GuestResponse::Refused { why, message } => Refused { why, message },
        _ => Refused::invalid_response(),
    }
}
