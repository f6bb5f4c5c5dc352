//! A channel that ends in front of the person: lines on a terminal.

use super::carrier::{Carrier, Failure, Part, Time};
use async_trait::async_trait;
use haft_ops::text::decode::visible;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Where consoles write. The library does not know of a terminal: the program
/// gives it one.
#[derive(Clone)]
pub struct Sink(Arc<Mutex<dyn Write + Send>>);

impl Sink {
    /// Writes there.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(to)))
    }
}

pub(super) struct Console(pub(super) Sink);

#[async_trait]
impl Carrier for Console {
    fn host(&self) -> Option<String> {
        None
    }

    fn most(&self) -> Option<usize> {
        None
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    async fn attempt(&self, part: Part<'_>, _: Time) -> Result<(), Failure> {
        let Part {
            channel,
            chat,
            text,
        } = part;
        let text = text.strip_suffix('\n').unwrap_or(text);
        // No line of it can pass for somebody else's.
        let text = text.replace('\n', "\n  | ");
        let line = format!("[{channel} → {chat}] {text}");
        let line = format!("{}\n", visible(&line));
        // A message is one write, so that others do not write into it.
        let mut sink = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write_all(line.as_bytes())
            .and_then(|()| sink.flush())
            .map_err(|error| Failure::lasting(format!("cannot write to the console: {error}")))
    }
}
