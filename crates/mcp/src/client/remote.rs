//! Configuration of a server.

use super::sign_in::{Identity, Tokens};
use super::tool_list::Pins;
use haft::{Check, Installer, Memory};
use haft_web::Secret;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Default time that a call may go without a reply or progress.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Default time that a server has to start, and again to list its tools.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(60);

/// Shows the user a line about a server that takes long to start.
pub type Progress = Arc<dyn Fn(String) + Send + Sync>;

/// An MCP server whose tools a session uses.
#[derive(Clone)]
pub struct Remote {
    /// Name of the server, and prefix of its tools' names.
    pub name: String,
    /// How to reach it.
    pub endpoint: Endpoint,
    /// Maximum time that a call may go without a reply or progress.
    pub timeout: Duration,
    /// Time that the server has to start, and again to list its tools. A server that is
    /// downloaded first may take longer; its tools then appear later.
    pub start_timeout: Duration,
    /// Tells the user that a server is being downloaded.
    pub progress: Option<Progress>,
    /// The only tools to use, by the server's own names; `None` for all.
    pub only: Option<Vec<String>>,
    /// Naming of its tools.
    pub naming: Naming,
    /// Checks that the server is still what the user trusted.
    pub check: Option<Check>,
    /// Trust level of the server's program.
    pub installer: Installer,
    /// Cache for the tool list. With a cached list, the server is only started by a call.
    pub memory: Option<Arc<dyn Memory>>,
    /// Cache folder of package runners such as `npx` and `uvx`.
    pub cache: Option<PathBuf>,
    /// Storage for the definitions of tools that the user has seen.
    pub pins: Option<Arc<dyn Pins>>,
    /// Storage for the credentials of a sign-in.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Identity for signing in.
    pub identity: Identity,
}

/// How to reach a server.
#[derive(Clone)]
pub enum Endpoint {
    /// A program to start, which communicates over standard input and output.
    Program {
        /// Path, or a name to look up in its `PATH`.
        program: PathBuf,
        /// The program as messages show it, if its path must be hidden because a variable
        /// in it may be secret.
        shown: Option<String>,
        /// Command-line arguments.
        arguments: Vec<OsString>,
        /// The complete environment of the program.
        environment: Vec<(OsString, OsString)>,
        /// Folder to run it in; `None` for the work folder.
        dir: Option<PathBuf>,
        /// File for its standard error output.
        log: Option<PathBuf>,
    },
    /// A server that is running elsewhere.
    Address {
        /// `http` or `https`, without user name or password.
        url: Url,
        /// Headers of every request to this server.
        headers: Vec<(String, Secret)>,
        /// HTTP transport to use.
        transport: HttpTransport,
    },
}

/// Transports for a server at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpTransport {
    /// Streamable HTTP.
    Streamable,
    /// The transport of 2024: a stream of events, and a separate address for messages.
    Events,
    /// Streamable HTTP, with the transport of 2024 as a fallback.
    Either,
}

/// Naming of a server's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// `SERVER_TOOL`.
    Prefixed,
    /// The server's own names.
    Bare,
}

/// Reason why a server is not valid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(super) String);

impl Remote {
    /// Creates a server that is a program with these arguments and an empty environment.
    pub fn program<A: Into<OsString>>(
        name: impl Into<String>,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(
            name.into(),
            Endpoint::Program {
                program: program.into(),
                shown: None,
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment: Vec::new(),
                dir: None,
                log: None,
            },
        )
    }

    /// Creates a server at an address.
    ///
    /// # Errors
    /// When it is not a valid `http` or `https` address.
    pub fn at(name: impl Into<String>, url: &str) -> Result<Self, SetupError> {
        let endpoint = Endpoint::Address {
            url: address(url)?,
            headers: Vec::new(),
            transport: HttpTransport::Streamable,
        };
        Ok(Self::new(name.into(), endpoint))
    }

    /// Creates a server with defaults for everything else.
    #[must_use]
    pub fn new(name: String, endpoint: Endpoint) -> Self {
        Self {
            name,
            endpoint,
            timeout: DEFAULT_TIMEOUT,
            start_timeout: DEFAULT_START_TIMEOUT,
            progress: None,
            only: None,
            naming: Naming::Prefixed,
            check: None,
            installer: Installer::UserTrustingFolders,
            memory: None,
            cache: None,
            pins: None,
            tokens: None,
            identity: Identity::default(),
        }
    }
}

/// Parses the address of a server.
///
/// # Errors
/// When it is not a valid `http` or `https` address, or contains a password.
pub(super) fn address(text: &str) -> Result<Url, SetupError> {
    let url = Url::parse(text).map_err(|error| SetupError(format!("invalid address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SetupError(
            "the address must start with http:// or https://".to_owned(),
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SetupError(
            "the address must not contain a user name or password: use headers".to_owned(),
        ));
    }
    Ok(url)
}

impl Endpoint {
    /// Creates an endpoint from an address, headers and transport.
    ///
    /// # Errors
    /// When it is not a valid `http` or `https` address or contains a password, or when a
    /// header's name is not valid.
    pub fn address(
        url: &str,
        headers: Vec<(String, Secret)>,
        transport: HttpTransport,
    ) -> Result<Self, SetupError> {
        for (name, _) in &headers {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(SetupError(format!(
                    "invalid header name: \"{}\"",
                    name.escape_debug()
                )));
            }
        }
        Ok(Self::Address {
            url: address(url)?,
            headers,
            transport,
        })
    }
}
