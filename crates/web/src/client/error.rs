//! Why there is no answer. No variant can hold an address: paths and queries
//! carry tokens, so an error knows a host and a port and nothing else of it.

use super::resolve::NotDialled;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::time::Duration;
use url::Url;

/// Where a request went: the host and the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The host, as the address has it.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Reach {
    /// What of an address may be told.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        Self {
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// No request that is ever sent.
    #[error("{reason}")]
    Invalid {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// No request can be sent from here.
    #[error("{reason}")]
    Setup {
        /// Why not.
        reason: String,
    },
    /// A place that may not be spoken to.
    #[error("not allowed to connect to {}: it is {kind}", .reach.host)]
    Forbidden {
        /// Which.
        reach: Reach,
        /// What it is, `a loopback address`.
        kind: &'static str,
    },
    /// A name that has no address.
    #[error("cannot find the host {}", .reach.host)]
    UnknownHost {
        /// Which.
        reach: Reach,
    },
    /// Nobody listens there.
    #[error("connection refused by {reach}")]
    Refused {
        /// Where.
        reach: Reach,
    },
    /// No connection for another reason.
    #[error("cannot connect to {reach}: {reason}")]
    NotConnected {
        /// Where.
        reach: Reach,
        /// Why.
        reason: String,
    },
    /// No secure connection: not the host it should be, or none we trust.
    #[error("no secure connection to {reach}: {reason}")]
    NotSecure {
        /// Where.
        reach: Reach,
        /// Why.
        reason: String,
    },
    /// What answers there speaks no TLS.
    #[error("no secure connection to {reach}: what answers there does not speak TLS")]
    NotTls {
        /// Where.
        reach: Reach,
    },
    /// Out of time.
    #[error("timed out after {}", words(*after))]
    TimedOut {
        /// Where.
        reach: Reach,
        /// The limit.
        after: Duration,
        /// Whether the request may have arrived by then.
        begun: bool,
    },
    /// A connection that broke, or an answer that is none.
    #[error("the connection to {reach} broke: {reason}")]
    Broken {
        /// Where.
        reach: Reach,
        /// How.
        reason: String,
        /// Whether the request may have arrived by then.
        begun: bool,
    },
    /// A redirect that is not followed.
    #[error("a redirect of {} is not followed: {reason}", .reach.host)]
    Redirect {
        /// Who redirected.
        reach: Reach,
        /// Why not.
        reason: &'static str,
    },
    /// An answer that cannot be unpacked.
    #[error("the answer of {} cannot be unpacked: {reason}", .reach.host)]
    Packed {
        /// Whose.
        reach: Reach,
        /// Why.
        reason: String,
    },
    /// More than was asked for.
    #[error("the answer of {} is too large", .reach.host)]
    TooLarge {
        /// Whose.
        reach: Reach,
    },
}

/// `30 s`, `0.2 s`: how a limit is told here.
pub(crate) fn words(duration: Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} s"),
        (whole, tenth) => format!("{whole}.{tenth} s"),
    }
}

impl HttpError {
    /// Whether the request may have arrived although there is no answer.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::TimedOut { begun, .. } | Self::Broken { begun, .. } => *begun,
            Self::TooLarge { .. } | Self::Redirect { .. } | Self::Packed { .. } => true,
            _ => false,
        }
    }

    /// Whether no connection came about, which the next try may change.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NotConnected { .. } | Self::UnknownHost { .. } => true,
            Self::Broken { begun, .. } => !begun,
            _ => false,
        }
    }

    fn from_tls(error: &rustls::Error, reach: Reach) -> Self {
        use rustls::{CertificateError, Error, InvalidMessage};
        let reason = match error {
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                return Self::NotTls { reach };
            }
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                let name = format!("{:?}", other.0);
                match name.as_str() {
                    "CaUsedAsEndEntity" => {
                        "its certificate is that of an authority, not of a server; it may have signed it itself".to_owned()
                    }
                    _ => format!("its certificate is not valid ({})", short(&name)),
                }
            }
            error => short(&error.to_string()),
        };
        Self::NotSecure { reach, reason }
    }

    pub(super) fn from_library(error: &reqwest::Error, reach: Reach, begun: bool) -> Self {
        // A connection that did not come about carried nothing.
        let begun = begun && !error.is_connect();
        let mut source = error.source();
        let mut last = None;
        while let Some(cause) = source {
            if let Some(NotDialled { kind }) = cause.downcast_ref() {
                return match kind {
                    Some(kind) => Self::Forbidden { reach, kind },
                    None => Self::UnknownHost { reach },
                };
            }
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                if let Some(tls) = tls_error(error) {
                    return Self::from_tls(tls, reach);
                }
                if !begun && error.kind() == io::ErrorKind::ConnectionRefused {
                    return Self::Refused { reach };
                }
            }
            last = Some(cause);
            source = cause.source();
        }
        // The deepest cause is a system's or a protocol's error: it knows
        // nothing of addresses. The library's own is not shown, for it does.
        let reason = if error.is_timeout() && error.is_connect() {
            format!("timed out after {}", words(super::CONNECT_TIMEOUT))
        } else {
            last.map_or_else(|| "no answer".to_owned(), |cause| short(&cause.to_string()))
        };
        if error.is_connect() {
            Self::NotConnected { reach, reason }
        } else {
            Self::Broken {
                reach,
                reason,
                begun,
            }
        }
    }
}

/// The error of TLS that an error of the system wraps, however often. It is
/// not among the sources: an error that holds another shows as that one.
pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner
        .downcast_ref()
        .or_else(|| tls_error(inner.downcast_ref::<io::Error>()?))
}

/// One clause: no `(os error 104)`, and no end of it where there is none.
fn short(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_lowercase);
    first.chain(chars).take(200).collect()
}
