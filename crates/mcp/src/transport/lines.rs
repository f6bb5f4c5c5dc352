//! Reads lines of bounded length.

use super::id::IdFinder;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum length of a line in bytes.
pub const MAX_LINE: usize = 16 << 20;
const CHUNK: usize = 64 << 10;

/// Result of reading a line.
#[derive(Debug)]
pub enum InputLine {
    /// A line without its line feed.
    Complete(Vec<u8>),
    /// The start of a line that is too long, with its id if it was found there. The
    /// remaining line is skipped.
    TooLong(Option<Value>),
    /// The end of a line that was too long, if its start had no id; with the id if it was
    /// found later.
    Skipped(Option<Value>),
    /// End of input.
    End,
}

/// Reads lines, and never stores more than the maximum of one.
pub struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    skipping: Option<Skipping>,
}

/// A line that is too long and is being skipped.
struct Skipping {
    finder: IdFinder,
    /// Whether the id has been returned.
    is_reported: bool,
    /// Whether the end of the line has been read.
    is_ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines from `input`.
    pub fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(CHUNK, input),
            line: Vec::new(),
            skipping: None,
        }
    }

    /// Returns the next line. Cancel-safe: the part that was read stays in `self`.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub async fn next(&mut self) -> io::Result<InputLine> {
        loop {
            if self
                .skipping
                .as_ref()
                .is_some_and(|skipping| skipping.is_ended)
                && let Some(id) = self.skipped()
            {
                return Ok(InputLine::Skipped(id));
            }
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                if let Some(id) = self.skipped() {
                    return Ok(InputLine::Skipped(id));
                }
                // The last line may lack its line feed.
                return Ok(if self.line.is_empty() {
                    InputLine::End
                } else {
                    InputLine::Complete(std::mem::take(&mut self.line))
                });
            }
            let (part, ends) = match memchr::memchr(b'\n', chunk) {
                Some(end) => (chunk.get(..end).unwrap_or_default(), true),
                None => (chunk, false),
            };
            let used = part.len() + usize::from(ends);
            let mut line = None;
            if let Some(skipping) = &mut self.skipping {
                skipping.finder.feed(part);
                skipping.is_ended = ends;
            } else if self.line.len() + part.len() > MAX_LINE {
                let mut finder = IdFinder::default();
                finder.feed(&std::mem::take(&mut self.line));
                finder.feed(part);
                let id = finder.found().cloned();
                self.skipping = Some(Skipping {
                    finder,
                    is_reported: id.is_some(),
                    is_ended: ends,
                });
                line = Some(InputLine::TooLong(id));
            } else {
                self.line.extend_from_slice(part);
                line = ends.then(|| InputLine::Complete(std::mem::take(&mut self.line)));
            }
            self.input.consume(used);
            if let Some(line) = line {
                return Ok(line);
            }
        }
    }

    /// Ends skipping a line. Returns its id, unless that was returned before.
    fn skipped(&mut self) -> Option<Option<Value>> {
        let Skipping {
            finder,
            is_reported,
            ..
        } = self.skipping.take()?;
        (!is_reported).then(|| finder.found().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(input);
        let mut seen = Vec::new();
        loop {
            match lines.next().await.expect("a slice can be read") {
                InputLine::Complete(line) => seen.push(match line.len() {
                    0..100 => String::from_utf8_lossy(&line).into_owned(),
                    length => format!("{length} bytes"),
                }),
                InputLine::TooLong(id) => seen.push(format!("too long {id:?}")),
                InputLine::Skipped(id) => seen.push(format!("skipped {id:?}")),
                InputLine::End => return seen,
            }
        }
    }

    #[tokio::test]
    async fn lines_end_at_a_line_feed_or_the_end() {
        assert_eq!(all(b"").await, [""; 0]);
        assert_eq!(all(b"a\n\nb").await, ["a", "", "b"]);
        assert_eq!(all(b"a\r\n").await, ["a\r"]);
    }

    #[tokio::test]
    async fn a_line_of_the_maximum_length_is_read_and_a_longer_one_is_not() {
        let mut input = vec![b'x'; MAX_LINE];
        input.extend_from_slice(b"\nnext\n");
        assert_eq!(
            all(&input).await,
            [format!("{MAX_LINE} bytes"), "next".to_owned()]
        );
        input.insert(0, b'x');
        assert_eq!(all(&input).await, ["too long None", "skipped None", "next"]);
    }

    #[tokio::test]
    async fn the_id_of_a_line_that_is_too_long_is_returned_once() {
        let long = "x".repeat(MAX_LINE);
        let first = format!("{{\"id\":1,\"a\":\"{long}\"}}\nnext\n");
        let reported = "too long Some(Number(1))";
        assert_eq!(all(first.as_bytes()).await, [reported, "next"]);
        let last = format!("{{\"a\":\"{long}{long}\",\"id\":1}}\nnext\n");
        let skipped = ["too long None", "skipped Some(Number(1))", "next"];
        assert_eq!(all(last.as_bytes()).await, skipped);
    }

    #[tokio::test]
    async fn an_endless_line_is_never_stored() {
        let mut lines = Lines::new(tokio::io::AsyncReadExt::take(
            tokio::io::repeat(b'x'),
            1 << 27,
        ));
        assert!(matches!(lines.next().await, Ok(InputLine::TooLong(None))));
        assert!(matches!(lines.next().await, Ok(InputLine::Skipped(None))));
        assert!(matches!(lines.next().await, Ok(InputLine::End)));
        assert_eq!(lines.line.capacity(), 0);
    }
}
