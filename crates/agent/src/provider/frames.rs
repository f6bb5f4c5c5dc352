//! The bytes of an answer, cut into the frames of its protocol.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// How long a line, and an event of several, may be.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// How a protocol divides its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: only their data matters.
    Events,
    /// A line of JSON for each.
    Lines,
}

/// A line that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Bytes in, frames out.
#[derive(Debug)]
pub(super) struct Frames {
    framing: Framing,
    buffer: BytesMut,
    /// How much of the buffer is known to have no end of a line.
    seen: usize,
    /// The data lines of the event so far.
    data: Option<String>,
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            buffer: BytesMut::new(),
            seen: 0,
            data: None,
        }
    }

    pub(super) fn push(&mut self, bytes: &Bytes) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame in what came so far.
    pub(super) fn next(&mut self) -> Result<Option<String>, TooLong> {
        while let Some(line) = self.line()? {
            let frame = match self.framing {
                Framing::Lines => Some(line).filter(|line| !line.trim().is_empty()),
                Framing::Events => self.event(&line)?,
            };
            if frame.is_some() {
                return Ok(frame);
            }
        }
        Ok(None)
    }

    /// What is left when the bytes are over: a last line needs no end, an event does.
    pub(super) fn finish(&mut self) -> Option<String> {
        let rest = self.buffer.split();
        let line = String::from_utf8_lossy(&rest).into_owned();
        (self.framing == Framing::Lines && !line.trim().is_empty()).then_some(line)
    }

    fn line(&mut self) -> Result<Option<String>, TooLong> {
        let unseen = self.buffer.get(self.seen..).unwrap_or_default();
        let Some(end) = memchr(b'\n', unseen).map(|at| at + self.seen) else {
            self.seen = self.buffer.len();
            return if self.seen > MAX_LINE {
                Err(TooLong)
            } else {
                Ok(None)
            };
        };
        self.seen = 0;
        let line = self.buffer.split_to(end);
        self.buffer.advance(1);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        Ok(Some(String::from_utf8_lossy(line).into_owned()))
    }

    fn event(&mut self, line: &str) -> Result<Option<String>, TooLong> {
        if line.is_empty() {
            return Ok(self.data.take().filter(|data| !data.trim().is_empty()));
        }
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let Some(data) = line.strip_prefix("data").and_then(value) else {
            return Ok(None);
        };
        let whole = match self.data.take() {
            Some(before) => before + "\n" + data,
            None => data.to_owned(),
        };
        if whole.len() > MAX_LINE {
            return Err(TooLong);
        }
        self.data = Some(whole);
        Ok(None)
    }
}

/// What stands behind the name of a field.
fn value(rest: &str) -> Option<&str> {
    if rest.is_empty() {
        return Some(rest);
    }
    let rest = rest.strip_prefix(':')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(framing: Framing, text: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::new(framing);
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            frames.push(&Bytes::copy_from_slice(chunk));
            while let Some(frame) = frames.next().unwrap() {
                found.push(frame);
            }
        }
        found.extend(frames.finish());
        found
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let text = "\u{feff}: comment\r\nevent: x\r\ndata: {\"a\":\"ä€\"}\r\n\r\n\n\
                    data:one\ndata: two\n\ndata: \n\nid: 4\n\nretry: 1\ndata: [DONE]\n\ndata: lost";
        for size in 1..text.len() {
            let found = cut(Framing::Events, text, size);
            assert_eq!(found, ["{\"a\":\"ä€\"}", "one\ntwo", "[DONE]"], "{size}");
        }
    }

    #[test]
    fn lines_need_no_end_at_the_end() {
        for size in 1..12 {
            let found = cut(Framing::Lines, "{\"ä\":1}\r\n\n \n{}\n{", size);
            assert_eq!(found, ["{\"ä\":1}", "{}", "{"], "{size}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_refused() {
        let mut frames = Frames::new(Framing::Events);
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        let mut pushed = 0;
        while frames.next().is_ok() {
            frames.push(&chunk);
            pushed += chunk.len();
            assert!(pushed <= MAX_LINE + 2 * chunk.len());
        }
        assert!(pushed > MAX_LINE);
    }

    #[test]
    fn an_event_that_does_not_end_is_refused() {
        let mut frames = Frames::new(Framing::Events);
        let chunk = Bytes::from(format!("data: {}\n", "x".repeat(1 << 20)));
        let refused = (0..20).any(|_| {
            frames.push(&chunk);
            frames.next().is_err()
        });
        assert!(refused);
    }
}
