//! The network that the commands of a session share, and the way out of it.
//!
//! The network itself has only loopback (`executor::sandbox::SessionNetwork`). A [`Gateway`]
//! listens in it: commands reach other hosts through its proxy, each connection judged by the
//! rules of the call that makes it, and the gateway forwards the ports that the user named.

use crate::blocking::{self, Weight};
use crate::executor::sandbox::{self, Helper, SessionNetwork};
use async_trait::async_trait;
use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Carries connections out of the networks of sessions.
pub trait Gateway: Send + Sync {
    /// Returns the ports of this machine's loopback that appear on the session's.
    fn forwards(&self) -> Vec<u16>;

    /// Serves connections to these sockets, which listen in the network of a session, until
    /// the result is dropped.
    ///
    /// # Errors
    /// The sockets cannot be used.
    fn serve(
        &self,
        proxy: TcpListener,
        forwards: Vec<TcpListener>,
    ) -> std::io::Result<Box<dyn Send + Sync>>;

    /// Admits the commands of one call, until the pass and its copies are dropped.
    fn admit(&self, judge: Arc<dyn HostJudge>) -> Pass;
}

/// Decides which hosts the commands of a call may reach.
#[async_trait]
pub trait HostJudge: Send + Sync {
    /// Decides about one connection. May ask the user, and so take long.
    async fn judge(self: Arc<Self>, host: &str, port: u16) -> HostVerdict;

    /// Notes that a connection to an allowed host was refused nevertheless.
    fn refused(&self, host: &str, port: u16, reason: Refusal);
}

/// Reason for refusing a connection to an allowed host, as a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It has only addresses that it may not have, such as `x.example has the address
    /// 10.0.0.1, which is a private address`.
    Address(String),
    /// The client named another host in the connection, or none.
    Name(String),
}

/// Decision about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostVerdict {
    /// Allowed, if the host has a public address.
    Public,
    /// Allowed, whatever its address.
    Any,
    /// Refused, without looking up its name.
    Refused,
}

/// Admission of a call's commands to the gateway.
#[derive(Clone)]
pub struct Pass {
    /// Name that the commands give to the proxy. Cannot be guessed.
    pub name: String,
    /// The name with the password, in the Base64 of requests.
    pub sent_as: String,
    /// Ends the admission when dropped.
    pub registered: Arc<dyn Send + Sync>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").finish_non_exhaustive()
    }
}

/// Network of a session. It is created when the first command needs it.
#[derive(Clone, Default)]
pub struct SharedNetwork {
    opened: Arc<Mutex<Option<Arc<OpenNetwork>>>>,
    gateway: Option<Arc<dyn Gateway>>,
}

/// A network that exists.
pub(super) struct OpenNetwork {
    pub(super) namespaces: Arc<SessionNetwork>,
    /// Address of the proxy in the network.
    proxy: Option<SocketAddr>,
    _served: Option<Box<dyn Send + Sync>>,
}

impl std::fmt::Debug for SharedNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedNetwork").finish_non_exhaustive()
    }
}

impl SharedNetwork {
    /// Creates a network with a way out.
    #[must_use]
    pub fn with_gateway(gateway: Option<Arc<dyn Gateway>>) -> Self {
        Self {
            opened: Arc::default(),
            gateway,
        }
    }

    /// Returns a network like this one for another session.
    #[must_use]
    pub fn for_new_session(&self) -> Self {
        Self::with_gateway(self.gateway.clone())
    }

    /// Returns the way out.
    #[must_use]
    pub fn gateway(&self) -> Option<&Arc<dyn Gateway>> {
        self.gateway.as_ref()
    }

    pub(super) async fn open(&self, helper: &Helper) -> sandbox::Result<Arc<OpenNetwork>> {
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened {
            return Ok(Arc::clone(opened));
        }
        let ports: Vec<u16> = match &self.gateway {
            // Port 0 is the proxy's: any port that is free.
            Some(gateway) => std::iter::once(0).chain(gateway.forwards()).collect(),
            None => Vec::new(),
        };
        let helper = helper.clone();
        let made = blocking::run(Weight::Heavy, move || {
            Ok(SessionNetwork::open(&helper, &ports))
        });
        let failed = |source| sandbox::Error::Step {
            step: "create the session's network",
            path: None,
            source,
        };
        let made = made.await;
        let made = made.map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        let (namespaces, mut listeners) = made?;
        let mut network = OpenNetwork {
            namespaces: Arc::new(namespaces),
            proxy: None,
            _served: None,
        };
        if let Some(gateway) = self.gateway.as_ref().filter(|_| !listeners.is_empty()) {
            let proxy = listeners.remove(0);
            network.proxy = Some(proxy.local_addr().map_err(failed)?);
            network._served = Some(gateway.serve(proxy, listeners).map_err(failed)?);
        }
        let network = Arc::new(network);
        *opened = Some(Arc::clone(&network));
        Ok(network)
    }
}

/// Hosts that programs reach without the proxy: the session's own servers, in every spelling
/// that some client compares.
const DIRECT: &str = "localhost,127.0.0.1,::1,[::1],0.0.0.0,.localhost";

/// Variables with the address of the proxy.
const PROXIES: [&str; 10] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
];

/// Password of every pass: its name is the secret.
pub const PASSWORD: &str = "haft";

/// Variables with the hosts that need no proxy.
const EXCEPTIONS: [&str; 3] = ["NO_PROXY", "no_proxy", "npm_config_noproxy"];

/// Makes `fetch` of Node use the variables above.
const NODE: &str = "NODE_USE_ENV_PROXY";

/// Whether a variable leads programs to the proxy, or past it.
#[must_use]
pub fn is_proxy_variable(name: &OsStr) -> bool {
    let mut names = PROXIES.iter().chain(&EXCEPTIONS).chain([&NODE]);
    names.any(|one| name == *one)
}

impl OpenNetwork {
    /// Returns the variables that lead a command to the proxy.
    pub(super) fn variables(&self, pass: &Pass) -> Vec<(&'static str, OsString)> {
        let Some(proxy) = self.proxy else {
            return Vec::new();
        };
        let url = format!("http://{}:{PASSWORD}@{proxy}", pass.name);
        let url = OsString::from(url);
        let proxies = PROXIES.into_iter().map(|name| (name, url.clone()));
        let exceptions = EXCEPTIONS.into_iter().map(|name| (name, DIRECT.into()));
        proxies
            .chain(exceptions)
            .chain([(NODE, "1".into())])
            .collect()
    }
}
