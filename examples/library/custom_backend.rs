//! A custom backend that logs every change to the backend it wraps. It needs five
//! methods, and every tool works on it.
//!
//! `cargo run -p haft --example custom_backend`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use async_trait::async_trait;
use haft::Runtime;
use haft::ops::backend::{Content, Entry, Expect, Memory, Stat, Written};
use haft::ops::{Backend, FilePath, Result};
use serde_json::json;
use std::sync::{Arc, Mutex};

struct Logged<B> {
    inner: B,
    log: Arc<Mutex<Vec<String>>>,
}

impl<B> Logged<B> {
    fn note(&self, what: &str, path: &FilePath) {
        if let Ok(mut log) = self.log.lock() {
            log.push(format!("{what} {}", path.real().display()));
        }
    }
}

#[async_trait]
impl<B: Backend> Backend for Logged<B> {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        self.inner.read(path).await
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        let size = bytes.len();
        let written = self.inner.write(path, bytes, expect).await?;
        self.note(
            &format!(
                "{} {size} bytes to",
                if written.created {
                    "created,"
                } else {
                    "replaced,"
                }
            ),
            path,
        );
        Ok(written)
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        self.inner.remove(path).await?;
        self.note("removed", path);
        Ok(())
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        self.inner.stat(path).await
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        self.inner.list(path).await
    }
    // `walk` has a default that uses `list`.
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let backend = Logged {
        inner: Memory::new(),
        log: Arc::clone(&log),
    };
    let runtime = Runtime::builder().preset("all").backend(backend).build()?;

    for (tool, arguments) in [
        (
            "write",
            json!({ "path": "/src/main.rs", "content": "fn main() {}\n" }),
        ),
        (
            "edit",
            json!({ "path": "/src/main.rs", "old_text": "{}", "new_text": "{ run() }" }),
        ),
        ("grep", json!({ "pattern": "run", "path": "/" })),
    ] {
        println!("{}", runtime.call(tool, arguments).await.text());
    }
    for line in log.lock().map_err(|error| error.to_string())?.iter() {
        println!("log: {line}");
    }
    Ok(())
}
