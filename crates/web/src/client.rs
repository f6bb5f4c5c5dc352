//! The one HTTP client. Everything that leaves haft over HTTP leaves through
//! here; reqwest stays in this module.
//!
//! The address that was checked is the address that is dialled: names are
//! resolved by `resolve.rs`, which hands on only addresses that may be dialled,
//! and literal addresses, which the library never asks a resolver about, are
//! checked before each request. Redirects are followed by hand, and each is
//! checked like a first request.

mod body;
mod error;
mod names;
mod redirect;
mod resolve;
mod tls;
mod unpack;
mod wait;

pub use error::{HttpError, Reach};
pub(crate) use error::{tls_error, words};
pub use names::Names;
pub(crate) use tls::Authorities;
pub(crate) use unpack::ACCEPTED;
pub use url::Url;
pub(crate) use wait::retry_after;

use crate::guard::{self, Entries};
use body::Watched;
use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use resolve::{Judge, Resolver};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use unpack::Unpacked;
use url::Host;

/// How long connecting may take, names and TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many redirects are followed at most.
pub const MAX_REDIRECTS: usize = 10;
/// How long an address may be.
const MAX_URL_BYTES: usize = 64 * 1024;

/// How the client is set up, by the person and never by a model.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Places that may be spoken to although they are not the open internet.
    pub allow: Entries,
    /// Places that are never spoken to.
    pub deny: Entries,
    /// A file of certificates (PEM) that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// A proxy (`http://host:port`) that every request goes through. It may have a
    /// name and a password.
    pub proxy: Option<crate::Secret>,
    /// Who knows the addresses of names.
    pub names: Names,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Asks for something.
    Get,
    /// Hands something over.
    Post,
    /// Says that something is not wanted any more.
    Delete,
}

/// Who chose the address of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A model, a page, a server: the guard decides.
    Anybody,
    /// The person, in the configuration: exactly this host and port may be
    /// anywhere. Where else it redirects to is anybody's word again.
    Configuration,
}

/// What is done about redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Followed, [`MAX_REDIRECTS`] at most, each checked like a first request.
    Follow,
    /// The same, but only to the host that was asked: nobody else was agreed to.
    SameHost,
    /// Not followed: the answer is the redirect itself.
    Refuse,
}

/// A header, and whether it is for the eyes of its recipient only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// Anybody may see it.
    Plain(&'static str, String),
    /// A credential: dropped when a redirect leads to another origin.
    Credential(&'static str, crate::Secret),
    /// One that the configuration names: a credential, for all that is known.
    Named(String, crate::Secret),
}

/// A request. It has no defaults: whoever makes one says what it wants.
pub struct Request {
    /// What it does.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Who chose that.
    pub origin: Origin,
    /// Headers beside those every request has.
    pub headers: Vec<Header>,
    /// What is handed over.
    pub body: Option<Vec<u8>>,
    /// How long all of it may take: redirects and the body of the answer too.
    pub timeout: Duration,
    /// How much of the answer's body is read, after it was unpacked.
    pub limit: usize,
    /// What is done about redirects.
    pub redirects: Redirects,
}

/// The client. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    settings: Settings,
    authorities: Authorities,
    /// Dials addresses of the open internet, and ranges that are allowed.
    guarded: OnceLock<reqwest::Client>,
    /// Dials anything: for hosts that the configuration names.
    open: OnceLock<reqwest::Client>,
}

/// A client that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SetupError(pub(crate) String);

impl Client {
    /// A client that keeps to these settings. It costs nothing until it is
    /// used: reading the system's certificates takes a while, and many who
    /// have a client never send anything.
    ///
    /// # Errors
    /// When the file of certificates cannot be read.
    pub fn new(settings: Settings) -> Result<Self, SetupError> {
        let authorities = match &settings.ca_file {
            Some(path) => Authorities::read(path)?,
            None => Authorities::default(),
        };
        Ok(Self(Arc::new(Inner {
            settings,
            authorities,
            guarded: OnceLock::new(),
            open: OnceLock::new(),
        })))
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// The certificates that are trusted beside the system's.
    pub(crate) fn authorities(&self) -> &Authorities {
        &self.0.authorities
    }

    /// Sends a request and gives its answer, whatever its status.
    ///
    /// # Errors
    /// When there is no answer. The error names a host, never a whole address.
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
        let mut headers = collect(&headers)?;
        let mut hops = 0;
        loop {
            let door = self.door(&url, origin)?;
            let reach = Reach::of(&url);
            if self.0.settings.proxy.is_some() {
                let checked = timeout_at(deadline, self.0.check(&url, door)).await;
                checked.unwrap_or_else(|_| {
                    Err(HttpError::TimedOut {
                        reach: reach.clone(),
                        after: timeout,
                        begun: false,
                    })
                })?;
            }
            let library = match door {
                Door::Guarded => self.0.guarded()?,
                Door::Open => self.0.open()?,
            };
            let begun = Arc::new(AtomicBool::new(false));
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
            let carried = Bytes::from(body.clone().unwrap_or_default());
            builder = builder.body(Watched::body(carried, Arc::clone(&begun)));
            let answer = timeout_at(deadline, builder.send()).await;
            // A body that is empty is never asked for, and tells nothing.
            let begun = begun.load(Ordering::Acquire) || body.is_none();
            let answer = match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => return Err(HttpError::from_library(&error, reach, begun)),
                Err(_) => {
                    return Err(HttpError::TimedOut {
                        reach,
                        after: timeout,
                        begun,
                    });
                }
            };
            if redirects != Redirects::Refuse
                && let Some(next) = redirect::next(&answer, &url, method, &headers, body.is_some())?
            {
                hops += 1;
                if hops > MAX_REDIRECTS {
                    return Err(HttpError::Redirect {
                        reach,
                        reason: "it redirects more than 10 times",
                    });
                }
                let is_same = next.url.host_str() == url.host_str();
                if redirects == Redirects::SameHost && !is_same {
                    return Err(HttpError::Redirect {
                        reach,
                        reason: "it leads to another host",
                    });
                }
                if next.forget_body {
                    method = Method::Get;
                    body = None;
                    headers.remove(reqwest::header::CONTENT_TYPE);
                }
                if next.leaves {
                    origin = Origin::Anybody;
                    redirect::drop_credentials(&mut headers);
                }
                url = next.url;
                continue;
            }
            return Ok(Response {
                status: answer.status().as_u16(),
                url,
                hops,
                reach,
                deadline,
                timeout,
                left: limit,
                answer,
            });
        }
    }

    /// Whether a request may be sent to an address, as far as that can be said before
    /// its name is looked up.
    ///
    /// # Errors
    /// Why not.
    pub fn permits(&self, url: &Url, origin: Origin) -> Result<(), HttpError> {
        self.door(url, origin).map(|_| ())
    }

    /// Which of the two clients may send to an address, if any.
    fn door(&self, url: &Url, origin: Origin) -> Result<Door, HttpError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(HttpError::Invalid {
                reason: "only http and https addresses can be fetched",
            });
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(HttpError::Invalid {
                reason: "the address is too long",
            });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(HttpError::Invalid {
                reason: "an address with a user name or password is not fetched",
            });
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(HttpError::Invalid {
                reason: "the address has no host",
            });
        };
        let Settings { allow, deny, .. } = &self.0.settings;
        let name = host.to_string();
        let forbidden = |kind| HttpError::Forbidden {
            reach: Reach::of(url),
            kind,
        };
        if deny.names(&name, port) {
            return Err(forbidden(guard::DENIED));
        }
        if origin == Origin::Configuration || allow.names(&name, port) {
            return Ok(Door::Open);
        }
        // The library does not ask the resolver about literal addresses.
        let kind = match host {
            Host::Domain(name) => guard::refusal_of_name(name),
            Host::Ipv4(address) => guard::refusal(address.into()),
            Host::Ipv6(address) => guard::refusal(address.into()),
        };
        kind.map_or(Ok(Door::Guarded), |kind| Err(forbidden(kind)))
    }
}

/// Which of the two clients sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The one that dials only what the guard lets through.
    Guarded,
    /// The one for hosts that the configuration names.
    Open,
}

impl Inner {
    /// Checks the addresses of a name before a proxy is asked to reach it. The proxy
    /// looks it up again, which cannot be helped; but what this machine knows to be
    /// inside is not asked for.
    async fn check(&self, url: &Url, door: Door) -> Result<(), HttpError> {
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        let judge = self.judge(door);
        let found = self.settings.names.of(name).await;
        if let Some(kind) = found.iter().find_map(|address| judge.refusal(*address)) {
            return Err(HttpError::Forbidden {
                reach: Reach::of(url),
                kind,
            });
        }
        if found.is_empty() && door == Door::Guarded {
            return Err(HttpError::UnknownHost {
                reach: Reach::of(url),
            });
        }
        Ok(())
    }

    fn judge(&self, door: Door) -> Judge {
        let Settings { allow, deny, .. } = &self.settings;
        match door {
            Door::Guarded => Judge::Guard {
                allow: allow.clone(),
                deny: deny.clone(),
            },
            Door::Open => Judge::Deny { deny: deny.clone() },
        }
    }

    fn guarded(&self) -> Result<&reqwest::Client, HttpError> {
        self.made(&self.guarded, Door::Guarded)
    }

    fn open(&self) -> Result<&reqwest::Client, HttpError> {
        self.made(&self.open, Door::Open)
    }

    /// What is in the place, made now if nothing is.
    fn made<'a>(
        &self,
        place: &'a OnceLock<reqwest::Client>,
        door: Door,
    ) -> Result<&'a reqwest::Client, HttpError> {
        if let Some(client) = place.get() {
            return Ok(client);
        }
        let tls = tls::configuration(&self.authorities)
            .map_err(|SetupError(reason)| HttpError::Setup { reason })?;
        let mut builder = reqwest::Client::builder();
        let judge = match &self.settings.proxy {
            // A proxy of the environment would resolve names for us.
            None => {
                builder = builder.no_proxy();
                self.judge(door)
            }
            // The only name that is looked up then is the proxy's own, which the
            // person chose. What it is asked for was checked before.
            Some(proxy) => {
                let proxy = reqwest::Proxy::all(proxy.expose()).map_err(|_| HttpError::Setup {
                    reason: "the proxy of the configuration is no address".to_owned(),
                })?;
                builder = builder.proxy(proxy);
                Judge::Deny {
                    deny: Entries::default(),
                }
            }
        };
        let client = builder
            .tls_backend_preconfigured(tls)
            .dns_resolver(Resolver::new(judge, self.settings.names.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            // A connection that has been idle may be closed just as the next
            // request leaves, and nobody could say if it arrived.
            .pool_idle_timeout(Duration::from_secs(2))
            .build()
            .map_err(|error| HttpError::Setup {
                reason: format!("cannot set up HTTP: {error}"),
            })?;
        Ok(place.get_or_init(|| client))
    }
}

fn collect(headers: &[Header]) -> Result<HeaderMap, HttpError> {
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
            reason: "a header has a name that no header may have",
        })?;
        let mut value = HeaderValue::from_str(value).map_err(|_| HttpError::Invalid {
            reason: "a header holds characters that no header may",
        })?;
        value.set_sensitive(secret);
        map.insert(name, value);
    }
    Ok(map)
}

/// An answer whose body is still to be read.
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Where it came from, after redirects.
    pub url: Url,
    /// How many redirects led there.
    pub hops: usize,
    reach: Reach,
    deadline: Instant,
    timeout: Duration,
    left: usize,
    answer: reqwest::Response,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// Its bytes, as many as were asked for at most.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

impl Response {
    /// The status with its usual words: `404 Not Found`.
    #[must_use]
    pub fn status_line(&self) -> String {
        match self.answer.status().canonical_reason() {
            Some(words) => format!("{} {words}", self.status),
            None => self.status.to_string(),
        }
    }

    /// A header of the answer, if it is there and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers().get(name)?.to_str().ok()
    }

    /// Where the answer leads, if it is a redirect.
    ///
    /// # Errors
    /// When it leads to no address of the web.
    pub fn redirect(&self) -> Result<Option<Url>, HttpError> {
        let next = redirect::next(
            &self.answer,
            &self.url,
            Method::Get,
            &HeaderMap::new(),
            false,
        )?;
        Ok(next.map(|next| next.url))
    }

    /// The next piece of the body, as it comes; `None` at its end.
    ///
    /// # Errors
    /// When the limit of the request is passed, its time is over, or the
    /// connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = match timeout_at(self.deadline, self.answer.chunk()).await {
            Ok(next) => {
                next.map_err(|error| HttpError::from_library(&error, self.reach.clone(), true))?
            }
            Err(_) => {
                return Err(HttpError::TimedOut {
                    reach: self.reach.clone(),
                    after: self.timeout,
                    begun: true,
                });
            }
        };
        let length = next.as_ref().map_or(0, Bytes::len);
        match self.left.checked_sub(length) {
            Some(left) => self.left = left,
            None => {
                return Err(HttpError::TooLarge {
                    reach: self.reach.clone(),
                });
            }
        }
        Ok(next)
    }

    /// The body, unpacked, as much of it as the limit lets through: that is the most
    /// that is read, and the most that comes out.
    ///
    /// # Errors
    /// When the time is over, the connection breaks before its end, or it cannot be
    /// unpacked.
    pub async fn body(mut self) -> Result<Body, HttpError> {
        let encodings = self.header("content-encoding").map(str::to_owned);
        let limit = self.left;
        let Body { bytes, cut } = self.packed_body().await?;
        let Some(encodings) = encodings else {
            return Ok(Body { bytes, cut });
        };
        let reach = self.reach;
        let work = move || unpack::unpack(bytes, &encodings, limit, cut);
        let unpacked = tokio::task::spawn_blocking(work).await;
        let unpacked = unpacked.unwrap_or_else(|error| Err(error.to_string()));
        let Unpacked { bytes, cut } =
            unpacked.map_err(|reason| HttpError::Packed { reach, reason })?;
        Ok(Body { bytes, cut })
    }

    async fn packed_body(&mut self) -> Result<Body, HttpError> {
        let mut bytes = Vec::new();
        let limit = self.left;
        // One byte more tells a body that is cut from one that just fits.
        self.left = usize::MAX;
        while let Some(chunk) = self.chunk().await? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > limit {
                bytes.truncate(limit);
                return Ok(Body { bytes, cut: true });
            }
        }
        Ok(Body { bytes, cut: false })
    }
}
