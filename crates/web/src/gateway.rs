//! The proxy through which sandboxed commands reach the hosts that they may reach.
//!
//! It listens in the network of a session, where nothing else leads out. Each connection is
//! judged by the rules of the call that makes it, the name is resolved here, and the address
//! that was checked is the one that is dialled. TLS is not opened: the host is the one that the
//! client names in `CONNECT`, and the name in its TLS greeting must be the same (`tunnel.rs`).
//! Plain HTTP, also in a tunnel, is parsed and written anew, so that every request on a
//! connection is judged (`forward.rs`).

mod dial;
mod forward;
mod request;
mod tunnel;

use crate::client::DnsLookup;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use haft_ops::exec::network::{Gateway, HostJudge, PASSWORD, Pass};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Maximum number of connections at a time for each session. More have to wait.
const MAX_CONNECTIONS: usize = 256;

/// Time limit for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the head of a request in bytes.
const MAX_HEAD: usize = 64 << 10;

/// The way out of the networks of sessions.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    dns: DnsLookup,
    forwards: Vec<u16>,
    passes: Arc<Mutex<HashMap<String, Arc<dyn HostJudge>>>>,
}

impl Proxy {
    /// Creates a proxy that resolves names with `dns`, and makes these ports of this machine's
    /// loopback appear in the networks of sessions.
    #[must_use]
    pub fn new(dns: DnsLookup, forwards: Vec<u16>) -> Self {
        Self(Arc::new(Inner {
            dns,
            forwards,
            passes: Arc::default(),
        }))
    }
}

/// Ends an admission when dropped.
struct Registered {
    name: String,
    passes: Arc<Mutex<HashMap<String, Arc<dyn HostJudge>>>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.remove(&self.name);
    }
}

/// Ends the tasks of a session's listeners when dropped.
struct Serving(Vec<JoinHandle<()>>);

impl Drop for Serving {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Gateway for Proxy {
    fn forwards(&self) -> Vec<u16> {
        self.0.forwards.clone()
    }

    fn serve(
        &self,
        proxy: std::net::TcpListener,
        forwards: Vec<std::net::TcpListener>,
    ) -> io::Result<Box<dyn Send + Sync>> {
        let mut serving = Serving(Vec::new());
        let inner = Arc::clone(&self.0);
        let answer = move |stream| converse(Arc::clone(&inner), stream);
        serving.0.push(tokio::spawn(accept(listen(proxy)?, answer)));
        for listener in forwards {
            let port = listener.local_addr()?.port();
            let answer = move |stream| forward_port(stream, port);
            serving
                .0
                .push(tokio::spawn(accept(listen(listener)?, answer)));
        }
        Ok(Box::new(serving))
    }

    fn admit(&self, judge: Arc<dyn HostJudge>) -> Pass {
        let name = random_name();
        let mut passes = self.0.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.insert(name.clone(), judge);
        drop(passes);
        let registered = Arc::new(Registered {
            name: name.clone(),
            passes: Arc::clone(&self.0.passes),
        });
        let sent_as = BASE64_STANDARD.encode(format!("{name}:{PASSWORD}"));
        Pass {
            name,
            sent_as,
            registered,
        }
    }
}

/// Returns a name that cannot be guessed. If the kernel has no random bytes, nobody is admitted
/// under the name.
fn random_name() -> String {
    let mut bytes = [0_u8; 16];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn listen(listener: std::net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Accepts connections until it is aborted, which ends them too.
async fn accept<F>(listener: TcpListener, answer: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let answered = answer(stream);
                connections.spawn(async move {
                    answered.await;
                    drop(place);
                });
            }
            // Out of descriptors, or the client is gone already.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Tunnels of one connection. They end with what holds them.
type Tunnels = Arc<Mutex<JoinSet<()>>>;

/// Serves the requests on one connection, and the tunnel that it may become.
async fn converse(proxy: Arc<Inner>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let tunnels = Tunnels::default();
    let opened = Arc::clone(&tunnels);
    let service = service_fn(move |request| {
        let (proxy, opened) = (Arc::clone(&proxy), Arc::clone(&opened));
        async move { Ok::<_, std::convert::Infallible>(request::answer(&proxy, &opened, request).await) }
    });
    let connection = http_server().serve_connection(TokioIo::new(stream), service);
    // Errors concern the client alone, and it has seen them.
    let _ = connection.with_upgrades().await;
    let mut open = std::mem::take(&mut *tunnels.lock().unwrap_or_else(PoisonError::into_inner));
    while open.join_next().await.is_some() {}
}

fn http_server() -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD);
    server
}

/// Connects to the same port of this machine's loopback.
async fn forward_port(mut inside: TcpStream, port: u16) {
    let addresses: [SocketAddr; 2] = [
        ([127, 0, 0, 1], port).into(),
        ([0, 0, 0, 0, 0, 0, 0, 1], port).into(),
    ];
    for address in addresses {
        if let Ok(mut outside) = TcpStream::connect(address).await {
            let _ = tunnel::relay(&mut inside, &mut outside).await;
            return;
        }
    }
}
