//! Errors of the HTTP client. Paths and queries may contain tokens, so an error knows the host
//! and port of a request but never the URL.

use super::resolve::NoAllowedAddress;
use std::error::Error as _;
use std::fmt;
use std::io;
use std::time::Duration;
use url::Url;

/// The host and port of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host as written in the URL.
    pub host: String,
    /// Explicit port, or the default of the scheme.
    pub port: u16,
}

impl Endpoint {
    /// Returns the host and port of a URL, which are safe to show.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        Self {
            host: url.host_str().unwrap_or_default().to_owned(),
            port: url.port_or_known_default().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// A request that got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// A request that is never sent.
    #[error("{reason}")]
    Invalid {
        /// One lower-case clause.
        reason: &'static str,
    },
    /// The client could not be set up.
    #[error("{reason}")]
    Setup {
        /// One lower-case clause.
        reason: String,
    },
    /// The host may not be contacted.
    #[error("not allowed to connect to {}: it is {kind}", .endpoint.host)]
    Forbidden {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// Kind of host, as the end of a sentence: `a loopback address`.
        kind: &'static str,
    },
    /// The name does not resolve.
    #[error("cannot find the host {}", .endpoint.host)]
    UnknownHost {
        /// Host and port of the request.
        endpoint: Endpoint,
    },
    /// Nothing listens on the port.
    #[error("connection refused by {endpoint}")]
    Refused {
        /// Host and port of the request.
        endpoint: Endpoint,
    },
    /// The connection failed for another reason.
    #[error("cannot connect to {endpoint}: {reason}")]
    NotConnected {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// One lower-case clause.
        reason: String,
    },
    /// TLS failed: the certificate is not trusted or belongs to another host.
    #[error("no secure connection to {endpoint}: {reason}")]
    NotSecure {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// One lower-case clause.
        reason: String,
    },
    /// The server does not use TLS on this port.
    #[error("no secure connection to {endpoint}: the server does not use TLS")]
    NotTls {
        /// Host and port of the request.
        endpoint: Endpoint,
    },
    /// The time limit expired.
    #[error("timed out after {}", format_seconds(*after))]
    TimedOut {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// Time limit that was exceeded.
        after: Duration,
        /// Whether the request may have arrived.
        was_sent: bool,
    },
    /// The connection broke, or the response is not valid HTTP.
    #[error("the connection to {endpoint} broke: {reason}")]
    Broken {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// One lower-case clause.
        reason: String,
        /// Whether the request may have arrived.
        was_sent: bool,
    },
    /// A redirect was not followed.
    #[error("redirect from {} not followed: {reason}", .endpoint.host)]
    Redirect {
        /// The host that sent the redirect.
        endpoint: Endpoint,
        /// One lower-case clause.
        reason: &'static str,
    },
    /// The response could not be decompressed.
    #[error("cannot decompress the response of {}: {reason}", .endpoint.host)]
    BadEncoding {
        /// Host and port of the request.
        endpoint: Endpoint,
        /// One lower-case clause.
        reason: String,
    },
    /// The response exceeds the size limit of the request.
    #[error("the response of {} is too large", .endpoint.host)]
    TooLarge {
        /// Host and port of the request.
        endpoint: Endpoint,
    },
}

/// Formats a time limit: `30 s`, `0.2 s`.
pub(crate) fn format_seconds(duration: Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} s"),
        (whole, tenth) => format!("{whole}.{tenth} s"),
    }
}

impl HttpError {
    /// Whether the request may have arrived although no response arrived.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::TimedOut { was_sent, .. } | Self::Broken { was_sent, .. } => *was_sent,
            Self::TooLarge { .. } | Self::Redirect { .. } | Self::BadEncoding { .. } => true,
            _ => false,
        }
    }

    /// Whether no connection was established, so that a retry may succeed.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::NotConnected { .. } | Self::UnknownHost { .. } => true,
            Self::Broken { was_sent, .. } => !was_sent,
            _ => false,
        }
    }

    fn from_tls(error: &rustls::Error, endpoint: Endpoint) -> Self {
        use rustls::{CertificateError, Error, InvalidMessage};
        let reason = match error {
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                return Self::NotTls { endpoint };
            }
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                let name = format!("{:?}", other.0);
                match name.as_str() {
                    "CaUsedAsEndEntity" => {
                        "its certificate is a CA certificate, not a server's; it may be self-signed"
                            .to_owned()
                    }
                    _ => format!("its certificate is not valid ({})", short(&name)),
                }
            }
            error => short(&error.to_string()),
        };
        Self::NotSecure { endpoint, reason }
    }

    pub(super) fn from_library(error: &reqwest::Error, endpoint: Endpoint, was_sent: bool) -> Self {
        // Nothing was sent if the connection failed.
        let was_sent = was_sent && !error.is_connect();
        let mut source = error.source();
        let mut last = None;
        while let Some(cause) = source {
            if let Some(NoAllowedAddress { kind }) = cause.downcast_ref() {
                return match kind {
                    Some(kind) => Self::Forbidden { endpoint, kind },
                    None => Self::UnknownHost { endpoint },
                };
            }
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                if let Some(tls) = tls_error(error) {
                    return Self::from_tls(tls, endpoint);
                }
                if !was_sent && error.kind() == io::ErrorKind::ConnectionRefused {
                    return Self::Refused { endpoint };
                }
            }
            last = Some(cause);
            source = cause.source();
        }
        // The innermost cause comes from the system or the protocol and contains no URL.
        // reqwest's own error does, so it is not shown.
        let reason = if error.is_timeout() && error.is_connect() {
            format!("timed out after {}", format_seconds(super::CONNECT_TIMEOUT))
        } else {
            last.map_or_else(
                || "no response".to_owned(),
                |cause| short(&cause.to_string()),
            )
        };
        if error.is_connect() {
            Self::NotConnected { endpoint, reason }
        } else {
            Self::Broken {
                endpoint,
                reason,
                was_sent,
            }
        }
    }
}

/// Returns the TLS error inside an I/O error, however deeply nested. Walking `source()` does not
/// find it: an I/O error returns the source of its inner error.
pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    inner
        .downcast_ref()
        .or_else(|| tls_error(inner.downcast_ref::<io::Error>()?))
}

/// Shortens an error to one lower-case clause without `(os error 104)`.
fn short(text: &str) -> String {
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_lowercase);
    first.chain(chars).take(200).collect()
}
