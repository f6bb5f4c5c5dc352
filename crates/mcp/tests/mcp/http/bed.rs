//! A server on its own thread, and a client for it.

use crate::tools::Bench;
use haft::Sibling;
use haft_mcp::{HttpLimits, HttpServer, HttpSettings, ServerName, Token, ToolsChanged};
use haft_testing::http::Client;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "0123456789abcdef-token";

pub(crate) struct Bed {
    pub(crate) bench: Bench,
    pub(crate) client: Client,
    pub(crate) changed: ToolsChanged,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self::of(Bench::new(), |_| {})
    }

    /// Creates a server with changed limits.
    pub(crate) fn within(change: impl FnOnce(&mut HttpLimits)) -> Self {
        Self::of(Bench::new(), change)
    }

    pub(crate) fn of(bench: Bench, change: impl FnOnce(&mut HttpLimits)) -> Self {
        let mut settings = HttpSettings {
            token: Some(Token::new(TOKEN)),
            ..HttpSettings::default()
        };
        change(&mut settings.limits);
        let shutdown = CancellationToken::new();
        let (runtime, token) = (bench.runtime.clone(), shutdown.clone());
        let (sender, bound) = mpsc::channel();
        let serving = std::thread::spawn(move || {
            let threads = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            threads.block_on(async move {
                let sessions = move || {
                    let session = runtime.sibling(Sibling::default());
                    session.map_err(|error| error.to_string())
                };
                let name = ServerName::new("haft-test", "1.2.3");
                let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let server = HttpServer::bind(any, settings, name, sessions)
                    .await
                    .expect("a port");
                sender
                    .send((server.address(), server.tools_changed()))
                    .expect("the test waits");
                server.serve(token).await.expect("a clean end");
            });
        });
        let (address, changed) = bound.recv().expect("it listens");
        Self {
            bench,
            client: Client::new(address, Some(TOKEN)),
            changed,
            shutdown,
            serving: Some(serving),
        }
    }

    /// Waits until this many calls of `wait` and `deaf` are running.
    pub(crate) fn until_waiting(&self, calls: usize) {
        let begun = Instant::now();
        while self.bench.waiting.load(Ordering::SeqCst) != calls {
            assert!(begun.elapsed() < Duration::from_secs(20), "{calls} calls");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends the server, and returns how long that took.
    pub(crate) fn end(mut self) -> Duration {
        let begun = Instant::now();
        self.shutdown.cancel();
        let serving = self.serving.take().expect("it serves");
        serving.join().expect("it does not panic");
        begun.elapsed()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}
