//! Capturing one stream: its start and end in memory, all of it on disk, and its size.

use super::disk::{Log, Writer};
use super::{Captured, Keep, MAX_MEMORY, Stream, When};
use memchr::memrchr;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum length of a line that may be a question to the user.
const QUESTION: usize = 200;

/// Maximum size of a write on the calling thread.
const SMALL: usize = 16 << 10;

/// Number of bytes to collect before they are written.
const BATCH: usize = 512 << 10;

pub(super) struct Capture {
    head: Vec<u8>,
    head_max: usize,
    tail: Ring,
    total_bytes: u64,
    newlines: u64,
    /// The current line without a newline, as long as it is short.
    line: CurrentLine,
    disk: Destination,
}

/// Destination of the complete stream.
enum Destination {
    Nowhere,
    /// This file, once the stream exceeds the memory.
    Later(PathBuf, u64),
    Open(Box<Writer>),
    /// A file that is not read before the end; written in large chunks.
    Batched(Box<Writer>, Vec<u8>),
    /// Not stored, for this reason.
    Failed(String),
}

#[derive(Default)]
struct CurrentLine {
    bytes: Vec<u8>,
    length: usize,
}

impl Capture {
    pub(super) fn new(keep: &Keep, stream: Stream) -> Self {
        let head_max = keep.head.min(MAX_MEMORY);
        let disk = match &keep.disk {
            None => Destination::Nowhere,
            Some(disk) => {
                let path = match stream {
                    Stream::Output => disk.output.clone(),
                    Stream::Error => disk.error.clone(),
                };
                match disk.when {
                    When::Overflow => Destination::Later(path, disk.max),
                    When::Always => match Writer::create(path, disk.max) {
                        Ok(writer) => Destination::Open(Box::new(writer)),
                        Err(trouble) => Destination::Failed(trouble),
                    },
                }
            }
        };
        Self {
            head: Vec::new(),
            head_max,
            tail: Ring::new(keep.tail.min(MAX_MEMORY - head_max)),
            total_bytes: 0,
            newlines: 0,
            line: CurrentLine::default(),
            disk,
        }
    }

    /// Creates a capture for a stream that does not exist.
    pub(super) fn nothing() -> Self {
        let keep = Keep {
            head: 0,
            tail: 0,
            disk: None,
        };
        Self::new(&keep, Stream::Error)
    }

    /// Returns the log, which can be read while it grows.
    pub(super) fn log(&self) -> Option<Arc<Log>> {
        match &self.disk {
            Destination::Open(writer) | Destination::Batched(writer, _) => Some(writer.log()),
            _ => None,
        }
    }

    /// Returns the text after the last newline, if it is short.
    pub(super) fn last_line(&self) -> &[u8] {
        if self.line.length > QUESTION {
            &[]
        } else {
            &self.line.bytes
        }
    }

    /// Adds the next chunk of the stream. The buffer may be passed to the disk and is
    /// returned empty.
    pub(super) async fn feed(&mut self, chunk: &mut Vec<u8>) {
        self.count(chunk);
        if let Destination::Later(path, max) = &self.disk
            && self.total_bytes > (self.head_max + self.tail.max) as u64
        {
            let (path, max) = (path.clone(), *max);
            let before = [self.head.as_slice(), &self.tail.ordered()].concat();
            let opened = tokio::task::spawn_blocking(move || {
                let mut writer = Writer::create(path, max)?;
                writer.write(&before);
                Ok(writer)
            });
            self.disk = match opened.await {
                Ok(Ok(writer)) => Destination::Batched(Box::new(writer), Vec::new()),
                Ok(Err(trouble)) => Destination::Failed(trouble),
                Err(error) => Destination::Failed(error.to_string()),
            };
        }
        self.remember(chunk);
        self.write(chunk).await;
        chunk.clear();
    }

    /// Small writes are done on this thread or collected, because passing them to another
    /// thread costs more.
    async fn write(&mut self, chunk: &mut Vec<u8>) {
        self.disk = match std::mem::replace(&mut self.disk, Destination::Nowhere) {
            Destination::Open(mut writer) if chunk.len() <= SMALL => {
                writer.write(chunk);
                Destination::Open(writer)
            }
            Destination::Open(writer) => match write_on_thread(writer, std::mem::take(chunk)).await
            {
                Ok((writer, bytes)) => {
                    *chunk = bytes;
                    Destination::Open(writer)
                }
                Err(trouble) => Destination::Failed(trouble),
            },
            Destination::Batched(writer, mut batch) => {
                batch.extend_from_slice(chunk);
                if batch.len() < BATCH {
                    Destination::Batched(writer, batch)
                } else {
                    match write_on_thread(writer, batch).await {
                        Ok((writer, mut batch)) => {
                            batch.clear();
                            Destination::Batched(writer, batch)
                        }
                        Err(trouble) => Destination::Failed(trouble),
                    }
                }
            }
            other => other,
        };
    }

    fn count(&mut self, chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', chunk).count() as u64;
        let rest = match memrchr(b'\n', chunk) {
            None => chunk,
            Some(at) => {
                self.line = CurrentLine::default();
                chunk.get(at + 1..).unwrap_or_default()
            }
        };
        self.line.length += rest.len();
        if self.line.length <= QUESTION {
            self.line.bytes.extend(rest);
        }
    }

    fn remember(&mut self, chunk: &[u8]) {
        let room = self.head_max - self.head.len();
        let (first, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend(first);
        self.tail.push(rest);
    }

    pub(super) async fn finish(self) -> Captured {
        let total_lines = self.newlines + u64::from(self.line.length > 0);
        let mut captured = Captured {
            head: self.head,
            tail: self.tail.ordered(),
            total_bytes: self.total_bytes,
            total_lines,
            spill: None,
            omitted: 0,
            trouble: None,
        };
        match self.disk {
            Destination::Nowhere | Destination::Later(..) => {}
            Destination::Failed(trouble) => captured.trouble = Some(trouble),
            Destination::Open(writer) => close(writer, Vec::new(), &mut captured).await,
            Destination::Batched(writer, batch) => close(writer, batch, &mut captured).await,
        }
        captured
    }
}

async fn close(mut writer: Box<Writer>, rest: Vec<u8>, captured: &mut Captured) {
    let closed = tokio::task::spawn_blocking(move || {
        writer.write(&rest);
        writer.finish()
    });
    match closed.await {
        Ok(written) => {
            captured.spill = written.path;
            captured.omitted = written.omitted;
            captured.trouble = written.trouble;
        }
        Err(error) => captured.trouble = Some(error.to_string()),
    }
}

async fn write_on_thread(
    mut writer: Box<Writer>,
    bytes: Vec<u8>,
) -> Result<(Box<Writer>, Vec<u8>), String> {
    let written = tokio::task::spawn_blocking(move || {
        writer.write(&bytes);
        (writer, bytes)
    });
    written.await.map_err(|error| error.to_string())
}

/// The last bytes of a stream.
struct Ring {
    bytes: Vec<u8>,
    /// Index of the oldest byte, once the buffer is full.
    start: usize,
    max: usize,
}

impl Ring {
    fn new(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            max,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        let chunk = chunk
            .get(chunk.len().saturating_sub(self.max)..)
            .unwrap_or_default();
        let (fill, over) = chunk.split_at(chunk.len().min(self.max - self.bytes.len()));
        self.bytes.extend(fill);
        let mut over = over;
        while !over.is_empty() {
            let (now, later) = over.split_at(over.len().min(self.max - self.start));
            if let Some(slots) = self.bytes.get_mut(self.start..self.start + now.len()) {
                slots.copy_from_slice(now);
            }
            self.start = (self.start + now.len()) % self.max;
            over = later;
        }
    }

    fn ordered(&self) -> Vec<u8> {
        let (newer, older) = self.bytes.split_at(self.start);
        [older, newer].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keep(head: usize, tail: usize) -> Keep {
        Keep {
            head,
            tail,
            disk: None,
        }
    }

    #[tokio::test]
    async fn lines_and_questions_are_counted_across_chunks() {
        let mut capture = Capture::new(&keep(100, 100), Stream::Output);
        for part in ["one\ntw", "o\nPass", "word: "] {
            capture.feed(&mut part.into()).await;
        }
        assert_eq!(capture.last_line(), b"Password: ");
        let captured = capture.finish().await;
        assert_eq!((captured.total_bytes, captured.total_lines), (18, 3));
        assert_eq!(captured.missing(), 0);
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_ends_of_the_stream(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            head in 0_usize..50,
            tail in 0_usize..50,
        ) {
            let mut capture = Capture::new(&keep(head, tail), Stream::Output);
            let whole: Vec<u8> = chunks.concat();
            for chunk in &chunks {
                capture.count(chunk);
                capture.remember(chunk);
            }
            prop_assert_eq!(&capture.head, &whole[..head.min(whole.len())]);
            let rest = &whole[head.min(whole.len())..];
            prop_assert_eq!(capture.tail.ordered(), &rest[rest.len().saturating_sub(tail)..]);
        }
    }
}
