//! The single pass over a text that selects the window.

use super::ends::{Ends, Gap};
use super::{Read, Room};
use crate::text::decode;
use crate::text::limit::Hit;
use crate::{Error, Result};

/// A window of a text, and facts about the rest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The lines, without the newline of the last one. CRLF becomes LF; bytes that are not
    /// valid UTF-8 become replacement characters.
    pub text: String,
    /// Number of the first line returned, counted from 1.
    pub first: u64,
    /// Number of lines returned.
    pub lines: u64,
    /// Number of lines in the file.
    pub total_lines: u64,
    /// Size of the file in bytes.
    pub total_bytes: u64,
    /// The limit that cut the window short, if one did.
    pub hit: Option<Hit>,
    /// The line that exceeds the limit by itself, if there is one.
    pub long_line: Option<LongLine>,
    /// The part that `text` omits, for [`Room::Ends`].
    pub gap: Option<Gap>,
    /// Whether the last line of the file ends with a newline.
    pub final_newline: bool,
}

/// Byte-order mark that some programs write before UTF-8. It is not part of the text, but
/// it stays in the file.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A line that was cut because it exceeds the limit by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongLine {
    /// Line number, counted from 1.
    pub number: u64,
    /// Length of the line in bytes.
    pub bytes: u64,
    /// Number of bytes returned.
    pub shown: u64,
}

/// Bytes to read between two checks of the cancel flag.
const CHUNK: usize = 64 << 10;

/// Selects the window from a text that is already in memory.
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
    /// One past the last line that the caller requested.
    end: u64,
    max_bytes: usize,
    max_lines: u64,
    /// Destination of the lines for [`Room::Ends`].
    ends: Option<Ends>,
    /// Number of the current line, counted from 1, and its length so far.
    line: u64,
    line_bytes: u64,
    /// Bytes of the current line, as far as they may be returned.
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

    /// Whether the current line may still be returned.
    fn wanted(&self) -> bool {
        self.line >= self.first && self.line < self.end && self.hit.is_none()
    }

    fn feed(&mut self, mut bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            // Lines after the window are counted in bulk.
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
                // Before the window: only count.
            } else if let Some(ends) = &mut self.ends {
                ends.push(line);
            } else {
                // A little more than the limit, because a CR or half a character may be
                // dropped.
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
        // Files in /proc report a size of 0.
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
