//! The pages of a section, for tools that fetch some.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A page: its status, its type and its text.
type Pages = Arc<Mutex<BTreeMap<String, (u16, &'static str, String)>>>;

/// A server on this machine that has the pages of a section. It ends with it.
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

    /// Adds a page. Its type is told by its name.
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

/// Answers one request, whatever it asks for beside the path.
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
    // The text of a redirect is where it leads.
    let to = match status {
        300..=399 => format!("location: {}\r\n", text.trim()),
        _ => String::new(),
    };
    let answer = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{to}connection: close\r\n\r\n{text}",
        if status == 200 { "OK" } else { "Other" },
        text.len()
    );
    // Whoever asked may be gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.flush().await;
}
