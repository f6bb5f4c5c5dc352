//! Lines of bounded length.

use super::id::Seeker;
use serde_json::Value;
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
    /// The beginning of a line that is too long, and its id if that was in it; the
    /// rest is skipped.
    TooLong(Option<Value>),
    /// The end of a line that was too long and whose beginning had no id, and the id
    /// if the rest had it.
    Skipped(Option<Value>),
    /// Nothing more.
    End,
}

/// Reads lines, never more of one than is allowed.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    skipping: Option<Skipping>,
}

/// A line that is too long, on its way out.
struct Skipping {
    seeker: Seeker,
    /// Whether the id was told.
    told: bool,
    /// Whether its end was read.
    over: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(CHUNK, input),
            line: Vec::new(),
            skipping: None,
        }
    }

    /// The next line. It may be dropped at any time and asked for again: what
    /// was read so far stays here.
    pub(crate) async fn next(&mut self) -> io::Result<Line> {
        loop {
            if self.skipping.as_ref().is_some_and(|skipping| skipping.over)
                && let Some(id) = self.skipped()
            {
                return Ok(Line::Skipped(id));
            }
            let chunk = self.input.fill_buf().await?;
            if chunk.is_empty() {
                if let Some(id) = self.skipped() {
                    return Ok(Line::Skipped(id));
                }
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
            let mut line = None;
            if let Some(skipping) = &mut self.skipping {
                skipping.seeker.feed(part);
                skipping.over = ends;
            } else if self.line.len() + part.len() > LONGEST {
                let mut seeker = Seeker::default();
                seeker.feed(&std::mem::take(&mut self.line));
                seeker.feed(part);
                let id = seeker.found().cloned();
                self.skipping = Some(Skipping {
                    seeker,
                    told: id.is_some(),
                    over: ends,
                });
                line = Some(Line::TooLong(id));
            } else {
                self.line.extend_from_slice(part);
                line = ends.then(|| Line::Whole(std::mem::take(&mut self.line)));
            }
            self.input.consume(used);
            if let Some(line) = line {
                return Ok(line);
            }
        }
    }

    /// The line that was skipped is over: its id, unless that was told before.
    fn skipped(&mut self) -> Option<Option<Value>> {
        let Skipping { seeker, told, .. } = self.skipping.take()?;
        (!told).then(|| seeker.found().cloned())
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
                Line::TooLong(id) => seen.push(format!("too long {id:?}")),
                Line::Skipped(id) => seen.push(format!("skipped {id:?}")),
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
        assert_eq!(all(&input).await, ["too long None", "skipped None", "next"]);
    }

    #[tokio::test]
    async fn the_id_of_a_line_that_is_too_long_is_told_once() {
        let long = "x".repeat(LONGEST);
        let first = format!("{{\"id\":1,\"a\":\"{long}\"}}\nnext\n");
        let told = "too long Some(Number(1))";
        assert_eq!(all(first.as_bytes()).await, [told, "next"]);
        let last = format!("{{\"a\":\"{long}{long}\",\"id\":1}}\nnext\n");
        let skipped = ["too long None", "skipped Some(Number(1))", "next"];
        assert_eq!(all(last.as_bytes()).await, skipped);
    }

    #[tokio::test]
    async fn a_line_that_never_ends_is_never_kept() {
        let mut lines = Lines::new(tokio::io::AsyncReadExt::take(
            tokio::io::repeat(b'x'),
            1 << 27,
        ));
        assert!(matches!(lines.next().await, Ok(Line::TooLong(None))));
        assert!(matches!(lines.next().await, Ok(Line::Skipped(None))));
        assert!(matches!(lines.next().await, Ok(Line::End)));
        assert_eq!(lines.line.capacity(), 0);
    }
}
