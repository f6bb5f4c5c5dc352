//! Who holds the files: everything about them is asked, nothing is reached.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::Context;
use haft::guest::{Ask, Guest, Refusal, Seen, Told};

/// Who answers for one call.
#[async_trait]
pub(crate) trait Host: Send + Sync {
    /// Asks one thing.
    async fn ask(&self, ask: Ask) -> Told;
}

/// The runtime of this process, where nobody else is.
pub(crate) struct Itself {
    pub(crate) cx: Context,
    pub(crate) guest: Guest,
}

#[async_trait]
impl Host for Itself {
    async fn ask(&self, ask: Ask) -> Told {
        self.guest.answer(&self.cx, ask).await
    }
}

/// Why something was not to be had.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) why: Refusal,
    pub(crate) message: String,
}

impl Refused {
    fn garbled() -> Self {
        Self {
            why: Refusal::Failed,
            message: "the answer is none to what was asked".to_owned(),
        }
    }
}

/// The questions with their answers.
impl dyn Host + '_ {
    pub(crate) async fn stat(&self, path: String) -> Result<Seen, Refused> {
        match self.ask(Ask::Stat { path }).await {
            Told::Stat(seen) => Ok(seen),
            other => Err(refused(other)),
        }
    }

    pub(crate) async fn list(&self, path: String) -> Result<Vec<(String, Seen)>, Refused> {
        match self.ask(Ask::List { path }).await {
            Told::List { entries } => Ok(entries
                .into_iter()
                .map(|named| (named.name, named.seen))
                .collect()),
            other => Err(refused(other)),
        }
    }

    pub(crate) async fn read(&self, path: String) -> Result<(Vec<u8>, String), Refused> {
        self.data(Ask::Read { path }).await
    }

    pub(crate) async fn fetch(&self, url: String) -> Result<Vec<u8>, Refused> {
        Ok(self.data(Ask::Fetch { url }).await?.0)
    }

    async fn data(&self, ask: Ask) -> Result<(Vec<u8>, String), Refused> {
        match self.ask(ask).await {
            Told::Data { data, version } => {
                let bytes = STANDARD.decode(data).map_err(|_| Refused::garbled())?;
                Ok((bytes, version))
            }
            other => Err(refused(other)),
        }
    }

    pub(crate) async fn write(
        &self,
        path: String,
        bytes: &[u8],
        was: Option<String>,
    ) -> Result<(), Refused> {
        let data = STANDARD.encode(bytes);
        self.done(Ask::Write { path, data, was }).await
    }

    pub(crate) async fn remove(&self, path: String, was: Option<String>) -> Result<(), Refused> {
        self.done(Ask::Remove { path, was }).await
    }

    async fn done(&self, ask: Ask) -> Result<(), Refused> {
        match self.ask(ask).await {
            Told::Done => Ok(()),
            other => Err(refused(other)),
        }
    }

    /// Keeps something whole, and says where.
    pub(crate) async fn keep(&self, name: &str, bytes: &[u8]) -> Option<String> {
        let (name, data) = (name.to_owned(), STANDARD.encode(bytes));
        match self.ask(Ask::Keep { name, data }).await {
            Told::Kept { path } => path,
            _ => None,
        }
    }
}

fn refused(told: Told) -> Refused {
    match told {
        Told::Refused { why, message } => Refused { why, message },
        _ => Refused::garbled(),
    }
}
