//! The one pass over a text.

use super::ends::{Ends, Gap};
use super::{Read, Room};
use crate::text::decode;
use crate::text::limit::Hit;
use crate::{Error, Result};

/// A window of a text, and what there was beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The lines, without the newline of the last one. CRLF reads as LF, bytes
    /// that are no UTF-8 as replacement characters.
    pub text: String,
    /// The first line shown, counted from 1.
    pub first: u64,
    /// How many lines are shown.
    pub lines: u64,
    /// How many lines there are in all.
    pub total_lines: u64,
    /// How many bytes there are in all.
    pub total_bytes: u64,
    /// The limit that ended the window before the caller's own, if one did.
    pub hit: Option<Hit>,
    /// A single line that alone is longer than the limit.
    pub long_line: Option<LongLine>,
    /// What lies after `text`, for [`Room::Ends`] when that is not all.
    pub gap: Option<Gap>,
    /// Whether the last line of the file ends with a newline.
    pub final_newline: bool,
}

/// What some programs put before UTF-8. It is no text; it stays in the file.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A line of which only the beginning is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLine {
    /// Its number, counted from 1.
    pub number: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many of them are shown.
    pub shown: u64,
}

/// How much is read at a time, and between two looks at the cancel flag.
const CHUNK: usize = 64 << 10;

/// Shows a text that is in memory already.
pub(super) fn show_all(text: &[u8], size: u64, request: &Read) -> Result<Shown> {
    let mut state = State::new(request);
    state.feed(text);
    state.finish(size, request)
}

pub(super) fn show(
    mut reader: Box<dyn std::io::Read + Send>,
    size: u64,
    request: &Read,
) -> Result<Shown> {
    let mut state = State::new(request);
    let mut chunk = vec![0; CHUNK];
    loop {
        if request.cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let read = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(Error::io("read", request.path.given(), source)),
        };
        state.feed(chunk.get(..read).unwrap_or_default());
    }
    state.finish(size, request)
}

struct State {
    first: u64,
    /// One past the last line the caller wants.
    end: u64,
    max_bytes: usize,
    max_lines: u64,
    /// Where the lines go when their ends are wanted.
    ends: Option<Ends>,
    /// The line being read, from 1, and how long it is so far.
    line: u64,
    line_bytes: u64,
    /// The bytes of the line being read, as far as they may be shown.
    current: Vec<u8>,
    text: String,
    lines: u64,
    hit: Option<Hit>,
    long_line: Option<LongLine>,
    total_bytes: u64,
    open: bool,
}

impl State {
    fn new(request: &Read) -> Self {
        let first = request.window.first.max(1);
        let (max_bytes, max_lines, ends) = match request.room {
            Room::Lines { bytes, lines } => (bytes, lines as u64, None),
            Room::Ends { bytes } => (bytes, u64::MAX, Some(Ends::new(bytes))),
        };
        Self {
            first,
            end: request
                .window
                .lines
                .map_or(u64::MAX, |lines| first.saturating_add(lines)),
            max_bytes,
            max_lines,
            ends,
            line: 1,
            line_bytes: 0,
            current: Vec::new(),
            text: String::new(),
            lines: 0,
            hit: None,
            long_line: None,
            total_bytes: 0,
            open: false,
        }
    }

    /// Whether the line being read may still be shown.
    fn wanted(&self) -> bool {
        self.line >= self.first && self.line < self.end && self.hit.is_none()
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            // Lines that are not shown are counted in bulk.
            if !self.wanted() && (self.line >= self.end || self.hit.is_some()) {
                let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
                self.line += newlines;
                match memchr::memrchr(b'\n', bytes) {
                    Some(last) => self.line_bytes = (bytes.len() - last - 1) as u64,
                    None => self.line_bytes += bytes.len() as u64,
                }
                self.open = bytes.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.line_bytes += line.len() as u64;
            if !self.wanted() {
                // Before the window: only counted.
            } else if let Some(ends) = &mut self.ends {
                ends.push(line);
            } else {
                // A little more than can be shown: a CR or half a character may go.
                let room = (self.max_bytes + 8).saturating_sub(self.current.len());
                self.current
                    .extend_from_slice(line.get(..room.min(line.len())).unwrap_or_default());
            }
            match end {
                Some(_) => {
                    self.end_line(b"\n");
                    bytes = rest.get(1..).unwrap_or_default();
                    self.open = false;
                }
                None => {
                    self.open = true;
                    return;
                }
            }
        }
    }

    fn end_line(&mut self, newline: &[u8]) {
        if self.wanted() {
            if let Some(ends) = &mut self.ends {
                ends.end_line(newline);
                self.lines += 1;
            } else {
                self.take_line();
            }
        }
        self.line += 1;
        self.line_bytes = 0;
        self.current.clear();
    }

    fn take_line(&mut self) {
        let raw = self.current.strip_suffix(b"\r").unwrap_or(&self.current);
        let raw = if self.line == 1 {
            raw.strip_prefix(MARK).unwrap_or(raw)
        } else {
            raw
        };
        let line = decode::lossy(raw);
        let separator = usize::from(self.lines > 0);
        if self.lines >= self.max_lines {
            self.hit = Some(Hit::Lines);
        } else if self.text.len() + separator + line.len() > self.max_bytes {
            if self.lines == 0 {
                let shown = decode::prefix(&line, self.max_bytes);
                self.text.push_str(shown);
                self.lines = 1;
                self.long_line = Some(LongLine {
                    number: self.line,
                    bytes: self.line_bytes,
                    shown: shown.len() as u64,
                });
            }
            self.hit = Some(Hit::Bytes);
        } else {
            if separator == 1 {
                self.text.push('\n');
            }
            self.text.push_str(&line);
            self.lines += 1;
        }
    }

    fn finish(mut self, size: u64, request: &Read) -> Result<Shown> {
        let final_newline = !self.open;
        if self.open {
            self.end_line(b"");
        }
        let total_lines = self.line - 1;
        if total_lines > 0 && self.first > total_lines {
            return Err(Error::PastEnd {
                offset: self.first,
                lines: total_lines,
            });
        }
        // Files of /proc say that they have no bytes.
        let total_bytes = if size == 0 || request.path.real().starts_with("/proc") {
            self.total_bytes
        } else {
            size
        };
        let (text, gap) = match self.ends {
            Some(ends) => ends.finish(if self.first == 1 { MARK } else { b"" }),
            None => (self.text, None),
        };
        Ok(Shown {
            text,
            first: self.first,
            lines: self.lines,
            total_lines,
            total_bytes,
            hit: gap.as_ref().map(|_| Hit::Bytes).or(self.hit),
            long_line: self.long_line,
            gap,
            final_newline,
        })
    }
}
