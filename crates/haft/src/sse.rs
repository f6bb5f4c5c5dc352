//! Parsers for server-sent events and for plain lines that arrive in pieces.

use memchr::memchr2;

/// Maximum size of a line or an event in bytes.
pub const MAX_EVENT: usize = 16 << 20;

/// A line or an event that is longer than [`MAX_EVENT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {MAX_EVENT} bytes")]
pub struct TooLarge;

/// Splits bytes into lines, which end with a line feed, a carriage return, or both.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Start of the next line.
    start: usize,
    /// Length of the prefix that was searched for a line ending.
    searched: usize,
    /// Whether the last line ended with a carriage return; its line feed may follow.
    had_return: bool,
}

impl Lines {
    /// Appends bytes as they arrive; pieces may end anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line, without its ending.
    ///
    /// # Errors
    /// When a line is longer than [`MAX_EVENT`].
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` is not the end: more bytes may follow"
    )]
    pub fn next(&mut self) -> Result<Option<String>, TooLarge> {
        if self.had_return && self.start < self.buffer.len() {
            self.had_return = false;
            if self.buffer.get(self.start) == Some(&b'\n') {
                self.start += 1;
                self.searched = self.start;
            }
        }
        let unread = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr2(b'\n', b'\r', unread).map(|at| at + self.searched) else {
            self.searched = self.buffer.len();
            return match self.buffer.len() - self.start > MAX_EVENT {
                true => Err(TooLarge),
                false => Ok(None),
            };
        };
        self.had_return = self.buffer.get(end) == Some(&b'\r');
        let line = self.buffer.get(self.start..end).unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        self.start = end + 1;
        self.searched = self.start;
        Ok(Some(line))
    }

    /// Returns the rest at the end of the stream: a last line without an ending.
    pub fn finish(&mut self) -> String {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let line = String::from_utf8_lossy(rest).into_owned();
        *self = Self::default();
        line
    }
}

/// A server-sent event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Event {
    /// Type of the event, if it has one.
    pub event: Option<String>,
    /// The `data` lines, joined with line feeds.
    pub data: Option<String>,
    /// Id to resume the stream after this event.
    pub id: Option<String>,
    /// Delay before a reconnect, in milliseconds.
    pub retry: Option<u64>,
}

/// Splits bytes into events.
#[derive(Debug, Default)]
pub struct Events {
    lines: Lines,
    event: Event,
}

impl Events {
    /// Appends bytes as they arrive; pieces may end anywhere.
    pub fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
    }

    /// Returns the next complete event. An event that the stream cuts off is dropped.
    ///
    /// # Errors
    /// When an event or a line of it is longer than [`MAX_EVENT`].
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` is not the end: more bytes may follow"
    )]
    pub fn next(&mut self) -> Result<Option<Event>, TooLarge> {
        while let Some(line) = self.lines.next()? {
            if line.is_empty() {
                let event = std::mem::take(&mut self.event);
                if event.data.is_some() || event.id.is_some() || event.retry.is_some() {
                    return Ok(Some(event));
                }
                continue;
            }
            let line = line.strip_prefix('\u{feff}').unwrap_or(&line);
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => self.event.event = Some(value.to_owned()),
                "data" => self.add(value)?,
                "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
                "retry" => self.event.retry = value.parse().ok(),
                _ => {}
            }
        }
        Ok(None)
    }

    fn add(&mut self, value: &str) -> Result<(), TooLarge> {
        match &mut self.event.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
                if data.len() > MAX_EVENT {
                    return Err(TooLarge);
                }
            }
            none => *none = Some(value.to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str, size: usize) -> Vec<Event> {
        let mut events = Events::default();
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            events.push(chunk);
            while let Some(event) = events.next().unwrap() {
                found.push(event);
            }
        }
        found
    }

    fn lines(text: &str, size: usize) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            lines.push(chunk);
            while let Some(line) = lines.next().unwrap() {
                found.push(line);
            }
        }
        found.push(lines.finish());
        found
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        let text = "\u{feff}: comment\r\nevent: x\r\ndata: {\"a\":\"ä€\"}\r\n\r\n\n\
                    data:one\ndata: two\nid: 7\n\ndata: \n\nid: 4\n\nretry: 1\rdata: [DONE]\r\rdata: lost";
        let event = |event: Option<&str>, data: Option<&str>, id: Option<&str>, retry| Event {
            event: event.map(str::to_owned),
            data: data.map(str::to_owned),
            id: id.map(str::to_owned),
            retry,
        };
        let expected = [
            event(Some("x"), Some("{\"a\":\"ä€\"}"), None, None),
            event(None, Some("one\ntwo"), Some("7"), None),
            event(None, Some(""), None, None),
            event(None, None, Some("4"), None),
            event(None, Some("[DONE]"), None, Some(1)),
        ];
        for size in 1..text.len() {
            assert_eq!(events(text, size), expected, "{size}");
        }
    }

    #[test]
    fn lines_are_the_same_wherever_the_bytes_are_cut() {
        for size in 1..12 {
            let found = lines("{\"ä\":1}\r\n\n \n{}\n{", size);
            assert_eq!(found, ["{\"ä\":1}", "", " ", "{}", "{"], "{size}");
        }
    }

    #[test]
    fn a_line_that_does_not_end_is_refused() {
        let mut events = Events::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut pushed = 0;
        while events.next().is_ok() {
            events.push(&chunk);
            pushed += chunk.len();
            assert!(pushed <= MAX_EVENT + 2 * chunk.len());
        }
        assert!(pushed > MAX_EVENT);
    }

    #[test]
    fn an_event_that_does_not_end_is_refused() {
        let mut events = Events::default();
        let chunk = format!("data: {}\n", "x".repeat(1 << 20));
        let refused = (0..20).any(|_| {
            events.push(chunk.as_bytes());
            events.next().is_err()
        });
        assert!(refused);
    }
}
