//! The HTTP client. Every HTTP request of haft goes through this module, and nothing else uses
//! reqwest.
//!
//! The address that was checked is the address that is dialled: `resolve.rs` resolves names and
//! returns only addresses that may be dialled. reqwest does not ask a resolver about literal
//! addresses, so those are checked before each request. Redirects are followed here rather than
//! by reqwest, and each target is checked like a new request.

mod body;
mod decompress;
mod dns;
mod error;
mod redirect;
mod resolve;
mod retry_after;
mod tls;

pub(crate) use decompress::ACCEPT_ENCODING;
pub use dns::DnsLookup;
pub use error::{Endpoint, HttpError};
pub(crate) use error::{format_seconds, tls_error};
pub(crate) use retry_after::retry_after;
pub(crate) use tls::Authorities;
pub use url::Url;

use crate::guard::{self, HostPatterns};
use body::TrackedBody;
use bytes::Bytes;
use decompress::Decompressed;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use resolve::{AddressPolicy, Resolver};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Host;

/// Time limit for connecting, including DNS and TLS.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects that are followed.
pub const MAX_REDIRECTS: usize = 10;
/// Maximum length of a URL.
const MAX_URL_BYTES: usize = 64 * 1024;

/// Settings of the client. The user sets them, never a model.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Hosts that may be contacted although they are not on the public internet.
    pub allow: HostPatterns,
    /// Hosts that are never contacted.
    pub deny: HostPatterns,
    /// PEM file with certificates to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Proxy (`http://host:port`, optionally with a user name and password) for every request.
    pub proxy: Option<crate::Secret>,
    /// Resolves host names.
    pub dns: DnsLookup,
}

/// HTTP method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `DELETE`.
    Delete,
}

/// Origin of a request's URL, which decides whether the guard checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A model, a page or a server: the guard checks the URL.
    Untrusted,
    /// The user, in the configuration: this host and port may be dialled wherever they are. A
    /// redirect to another origin is untrusted again.
    Configuration,
}

/// How to handle redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Follows up to [`MAX_REDIRECTS`], each checked like a new request.
    Follow,
    /// Like `Follow`, but only within the host of the request.
    SameHost,
    /// Returns the redirect itself as the response.
    Refuse,
}

/// A request header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// A header that is not secret.
    Plain(&'static str, String),
    /// A credential, dropped when a redirect leads to another origin.
    Credential(&'static str, crate::Secret),
    /// A header named in the configuration. Its value may be secret, so it is treated as a
    /// credential.
    Named(String, crate::Secret),
}

/// An HTTP request. Deliberately without defaults: every caller chooses each setting.
pub struct Request {
    /// Only the methods that haft needs are supported.
    pub method: Method,
    /// Target, `http` or `https`.
    pub url: Url,
    /// Whether the URL is trusted.
    pub origin: Origin,
    /// Headers in addition to those that every request has.
    pub headers: Vec<Header>,
    /// Content; its type is declared in `headers`.
    pub body: Option<Vec<u8>>,
    /// Time limit for the whole exchange, including redirects and the response body.
    pub timeout: Duration,
    /// Maximum size of the response body in bytes, after decompression.
    pub limit: usize,
    /// How to handle redirects.
    pub redirects: Redirects,
}

/// The HTTP client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    settings: Settings,
    authorities: Authorities,
    /// Dials public addresses and allowed ranges.
    guarded: OnceLock<reqwest::Client>,
    /// Dials any address: for hosts that the configuration lists.
    unrestricted: OnceLock<reqwest::Client>,
}

/// Error in the settings of a client or a channel.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

impl Client {
    /// Creates a client. Loads the system's certificates only on first use: that takes a while,
    /// and many clients never send a request.
    ///
    /// # Errors
    /// Fails if the certificate file cannot be read.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let authorities = match &settings.ca_file {
            Some(path) => Authorities::read(path)?,
            None => Authorities::default(),
        };
        Ok(Self(Arc::new(Inner {
            settings,
            authorities,
            guarded: OnceLock::new(),
            unrestricted: OnceLock::new(),
        })))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Returns the certificates to trust in addition to the system's.
    pub(crate) fn authorities(&self) -> &Authorities {
        &self.0.authorities
    }

    /// Sends a request and returns the response, whatever its status.
    ///
    /// # Errors
    /// Fails if no response arrives. The error contains the host, never the full URL, which may
    /// contain a token.
    pub async fn send(&self, request: Request) -> Result<Response, HttpError> {
        let started = Instant::now();
        let deadline = started + request.timeout;
        let Request {
            mut method,
            mut url,
            mut origin,
            headers,
            mut body,
            timeout,
            limit,
            redirects,
        } = request;
        let mut headers = header_map(&headers)?;
        let mut hops = 0;
        loop {
            let access = self.access(&url, origin)?;
            let endpoint = Endpoint::of(&url);
            if self.0.settings.proxy.is_some() {
                let checked = timeout_at(deadline, self.0.check(&url, access)).await;
                checked.unwrap_or_else(|_| {
                    Err(HttpError::TimedOut {
                        endpoint: endpoint.clone(),
                        after: timeout,
                        was_sent: false,
                    })
                })?;
            }
            let library = match access {
                Access::Guarded => self.0.guarded()?,
                Access::Unrestricted => self.0.unrestricted()?,
            };
            let was_sent = Arc::new(AtomicBool::new(false));
            let mut builder = library
                .request(
                    match method {
                        Method::Get => reqwest::Method::GET,
                        Method::Post => reqwest::Method::POST,
                        Method::Delete => reqwest::Method::DELETE,
                    },
                    url.clone(),
                )
                .headers(headers.clone());
            let content = Bytes::from(body.clone().unwrap_or_default());
            builder = builder.body(TrackedBody::body(content, Arc::clone(&was_sent)));
            let response = timeout_at(deadline, builder.send()).await;
            // An empty body is never polled, so its flag stays unset.
            let was_sent = was_sent.load(Ordering::Acquire) || body.is_none();
            let response = match response {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => return Err(HttpError::from_library(&error, endpoint, was_sent)),
                Err(_) => {
                    return Err(HttpError::TimedOut {
                        endpoint,
                        after: timeout,
                        was_sent,
                    });
                }
            };
            if redirects != Redirects::Refuse
                && let Some(next) =
                    redirect::next(&response, &url, method, &headers, body.is_some())?
            {
                hops += 1;
                if hops > MAX_REDIRECTS {
                    return Err(HttpError::Redirect {
                        endpoint,
                        reason: "more than 10 redirects",
                    });
                }
                let is_same = next.url.host_str() == url.host_str();
                if redirects == Redirects::SameHost && !is_same {
                    return Err(HttpError::Redirect {
                        endpoint,
                        reason: "the target is another host",
                    });
                }
                if next.drops_body {
                    method = Method::Get;
                    body = None;
                    headers.remove(reqwest::header::CONTENT_TYPE);
                }
                if next.leaves_origin {
                    origin = Origin::Untrusted;
                    redirect::drop_credentials(&mut headers);
                }
                url = next.url;
                continue;
            }
            return Ok(Response {
                status: response.status().as_u16(),
                url,
                hops,
                endpoint,
                deadline,
                timeout,
                remaining: limit,
                response,
            });
        }
    }

    /// Checks whether a request may be sent to a URL, as far as that is known before the DNS
    /// lookup.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn permits(&self, url: &Url, origin: Origin) -> Result<(), HttpError> {
        self.access(url, origin).map(|_| ())
    }

    /// Returns the access that a request to a URL gets, or the reason why it may not be sent.
    fn access(&self, url: &Url, origin: Origin) -> Result<Access, HttpError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::Invalid {
                reason: "only http and https URLs are supported",
            });
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(HttpError::Invalid {
                reason: "the URL is too long",
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HttpError::Invalid {
                reason: "URLs with a user name or password are not supported",
            });
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(HttpError::Invalid {
                reason: "the URL has no host",
            });
        };
        let Settings { allow, deny, .. } = &self.0.settings;
        let name = host.to_string();
        let forbidden = |kind| HttpError::Forbidden {
            endpoint: Endpoint::of(url),
            kind,
        };
        if deny.matches(&name, port) {
            return Err(forbidden(guard::DENIED));
        }
        if origin == Origin::Configuration || allow.matches(&name, port) {
            return Ok(Access::Unrestricted);
        }
        // reqwest does not ask the resolver about literal addresses.
        let kind = match host {
            Host::Domain(name) => guard::refusal_of_name(name),
            Host::Ipv4(address) => guard::refusal(address.into()),
            Host::Ipv6(address) => guard::refusal(address.into()),
        };
        kind.map_or(Ok(Access::Guarded), |kind| Err(forbidden(kind)))
    }
}

/// Access that a request gets; each has its own reqwest client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Only addresses that the guard permits.
    Guarded,
    /// Any address, for hosts that the configuration lists.
    Unrestricted,
}

impl Inner {
    /// Checks the addresses of a name before asking a proxy to reach it. The proxy resolves the
    /// name again, so this is only a best effort: it catches names that this machine already
    /// resolves to a private address.
    async fn check(&self, url: &Url, access: Access) -> Result<(), HttpError> {
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        let policy = self.address_policy(access);
        let found = self.settings.dns.addresses_of(name).await;
        if let Some(kind) = found.iter().find_map(|address| policy.refusal(*address)) {
            return Err(HttpError::Forbidden {
                endpoint: Endpoint::of(url),
                kind,
            });
        }
        if found.is_empty() && access == Access::Guarded {
            return Err(HttpError::UnknownHost {
                endpoint: Endpoint::of(url),
            });
        }
        Ok(())
    }

    fn address_policy(&self, access: Access) -> AddressPolicy {
        let Settings { allow, deny, .. } = &self.settings;
        match access {
            Access::Guarded => AddressPolicy::Guarded {
                allow: allow.clone(),
                deny: deny.clone(),
            },
            Access::Unrestricted => AddressPolicy::DenyOnly { deny: deny.clone() },
        }
    }

    fn guarded(&self) -> Result<&reqwest::Client, HttpError> {
        self.get_or_build(&self.guarded, Access::Guarded)
    }

    fn unrestricted(&self) -> Result<&reqwest::Client, HttpError> {
        self.get_or_build(&self.unrestricted, Access::Unrestricted)
    }

    /// Returns the client in `slot`, building it on first use.
    fn get_or_build<'a>(
        &self,
        slot: &'a OnceLock<reqwest::Client>,
        access: Access,
    ) -> Result<&'a reqwest::Client, HttpError> {
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let tls = tls::configuration(&self.authorities)
            .map_err(|SetupError(reason)| HttpError::Setup { reason })?;
        let mut builder = reqwest::Client::builder();
        let policy = match &self.settings.proxy {
            // A proxy from the environment would resolve names itself, unchecked.
            None => {
                builder = builder.no_proxy();
                self.address_policy(access)
            }
            // Only the proxy's own name is resolved here, and the user chose that. The target of
            // the request was checked before.
            Some(proxy) => {
                let proxy = reqwest::Proxy::all(proxy.expose()).map_err(|_| HttpError::Setup {
                    reason: "the configured proxy is not a valid URL".to_owned(),
                })?;
                builder = builder.proxy(proxy);
                AddressPolicy::DenyOnly {
                    deny: HostPatterns::default(),
                }
            }
        };
        let client = builder
            .tls_backend_preconfigured(tls)
            .dns_resolver(Resolver::new(policy, self.settings.dns.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            // The server may close an idle connection just as the next request is sent; then
            // there is no way to tell whether the request arrived.
            .pool_idle_timeout(Duration::from_secs(2))
            .build()
            .map_err(|error| HttpError::Setup {
                reason: format!("cannot set up HTTP: {error}"),
            })?;
        Ok(slot.get_or_init(|| client))
    }
}

fn header_map(headers: &[Header]) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::new();
    for header in headers {
        let (name, value, secret) = match header {
            Header::Plain(name, value) => {
                (Ok(HeaderName::from_static(name)), value.as_str(), false)
            }
            Header::Credential(name, value) => {
                (Ok(HeaderName::from_static(name)), value.expose(), true)
            }
            Header::Named(name, value) => (
                HeaderName::from_bytes(name.as_bytes()),
                value.expose(),
                true,
            ),
        };
        let name = name.map_err(|_| HttpError::Invalid {
            reason: "invalid header name",
        })?;
        let mut value = HeaderValue::from_str(value).map_err(|_| HttpError::Invalid {
            reason: "a header value contains invalid characters",
        })?;
        value.set_sensitive(secret);
        map.insert(name, value);
    }
    Ok(map)
}

/// A response whose body has not been read yet.
pub struct Response {
    /// HTTP status code.
    pub status: u16,
    /// URL of the response, after redirects.
    pub url: Url,
    /// Number of redirects that were followed.
    pub hops: usize,
    endpoint: Endpoint,
    deadline: Instant,
    timeout: Duration,
    remaining: usize,
    response: reqwest::Response,
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// At most as many bytes as the request's limit.
    pub bytes: Vec<u8>,
    /// Whether the response was larger than the limit.
    pub is_truncated: bool,
}

impl Response {
    /// Returns the status with its usual phrase: `404 Not Found`.
    #[must_use]
    pub fn status_line(&self) -> String {
        match self.response.status().canonical_reason() {
            Some(phrase) => format!("{} {phrase}", self.status),
            None => self.status.to_string(),
        }
    }

    /// Returns a header of the response if it is present and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns the target if this response is a redirect.
    ///
    /// # Errors
    /// Fails if the target is not an http or https URL.
    pub fn redirect(&self) -> Result<Option<Url>, HttpError> {
        let next = redirect::next(
            &self.response,
            &self.url,
            Method::Get,
            &HeaderMap::new(),
            false,
        )?;
        Ok(next.map(|next| next.url))
    }

    /// Returns the next chunk of the body as received, or `None` at the end.
    ///
    /// # Errors
    /// Fails if the body exceeds the request's limit, the time limit expires, or the connection
    /// breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = match timeout_at(self.deadline, self.response.chunk()).await {
            Ok(next) => {
                next.map_err(|error| HttpError::from_library(&error, self.endpoint.clone(), true))?
            }
            Err(_) => {
                return Err(HttpError::TimedOut {
                    endpoint: self.endpoint.clone(),
                    after: self.timeout,
                    was_sent: true,
                });
            }
        };
        let length = next.as_ref().map_or(0, Bytes::len);
        match self.remaining.checked_sub(length) {
            Some(remaining) => self.remaining = remaining,
            None => {
                return Err(HttpError::TooLarge {
                    endpoint: self.endpoint.clone(),
                });
            }
        }
        Ok(next)
    }

    /// Reads and decompresses the body. The limit of the request applies to the bytes received
    /// and to the result.
    ///
    /// # Errors
    /// Fails if the time limit expires, the connection breaks before the end, or the body cannot
    /// be decompressed.
    pub async fn body(mut self) -> Result<Body, HttpError> {
        let encodings = self.header("content-encoding").map(str::to_owned);
        let limit = self.remaining;
        let Body {
            bytes,
            is_truncated,
        } = self.raw_body().await?;
        let Some(encodings) = encodings else {
            return Ok(Body {
                bytes,
                is_truncated,
            });
        };
        let endpoint = self.endpoint;
        let work = move || decompress::decompress(bytes, &encodings, limit, is_truncated);
        let decompressed = tokio::task::spawn_blocking(work).await;
        let decompressed = decompressed.unwrap_or_else(|error| Err(error.to_string()));
        let Decompressed {
            bytes,
            is_truncated,
        } = decompressed.map_err(|reason| HttpError::BadEncoding { endpoint, reason })?;
        Ok(Body {
            bytes,
            is_truncated,
        })
    }

    async fn raw_body(&mut self) -> Result<Body, HttpError> {
        let mut bytes = Vec::new();
        let limit = self.remaining;
        // Reads one byte more than the limit to tell a truncated body from one that just fits.
        self.remaining = usize::MAX;
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > limit {
                bytes.truncate(limit);
                return Ok(Body {
                    bytes,
                    is_truncated: true,
                });
            }
        }
        Ok(Body {
            bytes,
            is_truncated: false,
        })
    }
}
