//! A channel that prints messages to the user's terminal.

use super::transport::{Failure, Part, TimeLimit, Transport};
use async_trait::async_trait;
use haft_ops::text::decode::visible;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Output of console channels. The program provides it, because libraries do not print.
#[derive(Clone)]
pub struct Sink(Arc<Mutex<dyn Write + Send>>);

impl Sink {
    /// Creates a sink that writes to `to`.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(to)))
    }
}

pub(super) struct Console(pub(super) Sink);

#[async_trait]
impl Transport for Console {
    fn host(&self) -> Option<String> {
        None
    }

    fn max_length(&self) -> Option<usize> {
        None
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn attempt(&self, part: Part<'_>, _: TimeLimit) -> Result<(), Failure> {
        let Part {
            channel,
            chat,
            text,
        } = part;
        let text = text.strip_suffix('\n').unwrap_or(text);
        // Indents the following lines, so that none looks like another message's header.
        let text = text.replace('\n', "\n  | ");
        let line = format!("[{channel} → {chat}] {text}");
        let line = format!("{}\n", visible(&line));
        // One write per message, so that other output cannot interleave.
        let mut sink = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write_all(line.as_bytes())
            .and_then(|()| sink.flush())
            .map_err(|error| Failure::permanent(format!("cannot write to the console: {error}")))
    }
}
