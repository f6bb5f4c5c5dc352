//! Lines of bounded length.

use std::io;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is a message.
pub(crate) const LONGEST: usize = 16 << 20;
const CHUNK: usize = 64 << 10;

/// What came next.
#[derive(Debug)]
pub(crate) enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// The beginning of a line that is too long; the rest is skipped.
    TooLong,
    /// Nothing more.
    End,
}

/// Reads lines, never more of one than is allowed.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(CHUNK, input),
            line: Vec::new(),
            skipping: false,
        }
    }

    /// The next line. It may be dropped at any time and asked for again: what
    /// was read so far stays here.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                // A last line may lack its end.
                return Ok(if self.line.is_empty() {
                    Line::End
                } else {
                    Line::Whole(std::mem::take(&mut self.line))
                });
            }
            let (part, ends) = match memchr::memchr(b'\n', chunk) {
                Some(end) => (chunk.get(..end).unwrap_or_default(), true),
                None => (chunk, false),
            };
            let used = part.len() + usize::from(ends);
            let too_long = !self.skipping && self.line.len() + part.len() > LONGEST;
            if too_long {
                self.line = Vec::new();
            } else if !self.skipping {
                self.line.extend_from_slice(part);
            }
            self.input.consume(used);
            let skipped = self.skipping;
            self.skipping = (skipped || too_long) && !ends;
            if too_long {
                return Ok(Line::TooLong);
            }
            if ends && !skipped {
                return Ok(Line::Whole(std::mem::take(&mut self.line)));
            }
        }
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
                Line::Whole(line) => seen.push(match line.len() {
                    0..100 => String::from_utf8_lossy(&line).into_owned(),
                    length => format!("{length} bytes"),
                }),
                Line::TooLong => seen.push("too long".to_owned()),
                Line::End => return seen,
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
    async fn the_longest_line_is_read_and_one_byte_more_is_not() {
        let mut input = vec![b'x'; LONGEST];
        input.extend_from_slice(b"\nnext\n");
        assert_eq!(
            all(&input).await,
            [format!("{LONGEST} bytes"), "next".to_owned()]
        );
        input.insert(0, b'x');
        assert_eq!(all(&input).await, ["too long", "next"]);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_never_kept() {
        let mut lines = Lines::new(tokio::io::AsyncReadExt::take(
            tokio::io::repeat(b'x'),
            1 << 27,
        ));
        assert!(matches!(lines.next().await, Ok(Line::TooLong)));
        assert!(matches!(lines.next().await, Ok(Line::End)));
        assert_eq!(lines.line.capacity(), 0);
    }
}
