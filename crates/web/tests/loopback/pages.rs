//! Whole pages of different kinds, and their text. `UPDATE=1` rewrites the expected texts; review
//! the difference.

use crate::bed::{Bed, Book, page, read};
use crate::http_server::Server;
use serde_json::json;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

#[expect(clippy::disallowed_methods, reason = "a test reads its own files")]
fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).expect(name)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads and rewrites its own files"
)]
fn current(name: &str, text: &str) {
    let path = fixture(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect(name);
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        expected == text,
        "{name} is another now:\n{text}\n--- instead of:\n{expected}"
    );
}

#[tokio::test]
async fn pages_become_readable_text() {
    for (name, content_type) in [
        ("docs.html", "text/html; charset=utf-8"),
        ("blog.html", "text/html"),
        ("reference.html", "text/html"),
        ("forum.html", "text/html; charset=utf-8"),
        ("api.json", "application/json"),
    ] {
        let body = bytes(name);
        let server = Server::new([page(content_type, &body), page(content_type, &body)]).await;
        let host = "site.example";
        let book = Book::default().with(host, &[&["127.0.0.1"]]);
        let runtime = Bed::allowing(&[host]).dns(book.dns()).session();
        let url = format!("http://{host}:{}/guide/{name}", server.port);
        let ask = |offset: usize| {
            let runtime = runtime.clone();
            let arguments = json!({ "url": url, "offset": offset });
            async move { read(&runtime.call("web_fetch", arguments).await) }
        };
        let port = format!(":{}", server.port);
        let text = ask(0).await.replace(&port, "");
        current(&format!("{name}.txt"), &(text.clone() + "\n"));
        // The text around the main content is available at an offset.
        if let Some((_, rest)) = text.split_once("Use offset=") {
            let offset = rest.split_once(' ').expect("a number").0;
            let offset: usize = offset.parse().expect("a number");
            let rest = ask(offset).await.replace(&port, "");
            current(&format!("{name}.rest.txt"), &(rest + "\n"));
        }
    }
}
