//! The web pages of a section, for tools that fetch pages.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Pages by path: status, content type and text.
type Pages = Arc<Mutex<BTreeMap<String, (u16, &'static str, String)>>>;

/// A web server on this machine with the pages of a section. Stops when dropped.
#[derive(Debug)]
pub(super) struct Site {
    port: u16,
    pages: Pages,
    serving: JoinHandle<()>,
}

impl Site {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let pages = Pages::default();
        let theirs = Arc::clone(&pages);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&theirs)));
            }
        });
        Self {
            port,
            pages,
            serving,
        }
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Adds a page. The extension of the path decides its content type.
    pub(super) fn put(&self, path: &str, status: u16, text: String) {
        let kind = match path.rsplit_once('.') {
            Some((_, "json")) => "application/json",
            Some((_, "txt")) => "text/plain; charset=utf-8",
            Some((_, "pdf")) => "application/pdf",
            _ => "text/html; charset=utf-8",
        };
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.insert(path.to_owned(), (status, kind, text));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Responds to one request by its path, ignoring everything else.
async fn serve(stream: TcpStream, pages: Pages) {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    let mut line = String::new();
    while let Ok(count) = stream.read_line(&mut line).await
        && count > 2
    {
        if first.is_empty() {
            first.clone_from(&line);
        }
        line.clear();
    }
    let address = first.split(' ').nth(1).unwrap_or_default();
    let path = address.split('?').next().unwrap_or_default();
    let found = {
        let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.get(path).cloned()
    };
    let (status, kind, text) = found.unwrap_or((404, "text/plain", "no such page".to_owned()));
    // The text of a redirect is its target.
    let to = match status {
        300..=399 => format!("location: {}\r\n", text.trim()),
        _ => String::new(),
    };
    let reply = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{to}connection: close\r\n\r\n{text}",
        if status == 200 { "OK" } else { "Other" },
        text.len()
    );
    // The client may have disconnected.
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.flush().await;
}
