//! A server as it was configured.

use super::listed::Pins;
use super::sign_in::{Identity, Tokens};
use haft::{Check, Memory, Standing};
use haft_web::Secret;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// How long a call may go without a sign of life.
const TIME: Duration = Duration::from_secs(120);

/// An MCP server whose tools a session has.
#[derive(Clone)]
pub struct Remote {
    /// What it is called; the names of its tools begin with it.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// How long a call may go without an answer or progress.
    pub timeout: Duration,
    /// The only tools that are taken of it, by its own names; all if there is no list.
    pub only: Option<Vec<String>>,
    /// What its tools are called.
    pub naming: Naming,
    /// Whether it may be used now: it must be what it was when it was trusted.
    pub check: Option<Check>,
    /// Who vouches for it.
    pub standing: Standing,
    /// What is remembered of it: then it is only started when it is called.
    pub memory: Option<Arc<dyn Memory>>,
    /// The folder for what its program fetches, if it is one that does (`npx`, `uvx`).
    pub cache: Option<PathBuf>,
    /// Which definitions of its tools were seen before.
    pub pins: Option<Arc<dyn Pins>>,
    /// Where what it was signed in to is kept.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// As what it is signed in to.
    pub identity: Identity,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Reach {
    /// A program that is started and spoken to over its streams.
    Program {
        /// The program: a path, or a name to look up in its `PATH`.
        program: PathBuf,
        /// The program as messages show it, if that is not as it is: what a variable in
        /// its path holds may be secret.
        shown: Option<String>,
        /// Its arguments.
        arguments: Vec<OsString>,
        /// All of its environment.
        environment: Vec<(OsString, OsString)>,
        /// The folder it runs in; the work folder if there is none.
        dir: Option<PathBuf>,
        /// Where what it says to its log is kept.
        log: Option<PathBuf>,
    },
    /// An address.
    Address {
        /// It.
        url: Url,
        /// Headers of every request, for this server alone.
        headers: Vec<(String, Secret)>,
        /// How it is spoken to.
        wire: Wire,
    },
}

/// How a server at an address is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Streamable HTTP.
    Streamable,
    /// A stream of events and an address for messages, as servers of 2024 have it.
    Events,
    /// Streamable HTTP, or else events.
    Either,
}

/// What the tools of a server are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// `SERVER_TOOL`.
    Prefixed,
    /// As the server calls them.
    Bare,
}

/// A server that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(super) String);

impl Remote {
    /// A server that is a program, with nothing but its arguments.
    pub fn program<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(
            name.into(),
            Reach::Program {
                program: program.into(),
                shown: None,
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment: Vec::new(),
                dir: None,
                log: None,
            },
        )
    }

    /// A server at an address.
    ///
    /// # Errors
    /// When it is no address of `http` or `https`.
    pub fn at(name: impl Into<String>, url: &str) -> Result<Self, SetupError> {
        let reach = Reach::Address {
            url: address(url)?,
            headers: Vec::new(),
            wire: Wire::Streamable,
        };
        Ok(Self::new(name.into(), reach))
    }

    /// A server of this name, reached so.
    #[must_use]
    pub fn new(name: String, reach: Reach) -> Self {
        Self {
            name,
            reach,
            timeout: TIME,
            only: None,
            naming: Naming::Prefixed,
            check: None,
            standing: Standing::Vouched,
            memory: None,
            cache: None,
            pins: None,
            tokens: None,
            identity: Identity::default(),
        }
    }
}

/// An address that a server can have.
///
/// # Errors
/// When it is none of `http` or `https`, or has a password in it.
pub(super) fn address(text: &str) -> Result<Url, SetupError> {
    let url = Url::parse(text).map_err(|error| SetupError(format!("no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SetupError(
            "an address begins with http:// or https://".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SetupError(
            "a user name or password does not belong in an address: use headers".to_owned(),
        ));
    }
    Ok(url)
}

impl Reach {
    /// An address, spoken to so.
    ///
    /// # Errors
    /// When it is none of `http` or `https`, or has a password in it.
    pub fn address(
        url: &str,
        headers: Vec<(String, Secret)>,
        wire: Wire,
    ) -> Result<Self, SetupError> {
        for (name, _) in &headers {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(SetupError(format!(
                    "\"{}\" is no name of a header",
                    name.escape_debug()
                )));
            }
        }
        Ok(Self::Address {
            url: address(url)?,
            headers,
            wire,
        })
    }
}
