//! The start and the end of a window, without storing the text between them.

use crate::text::decode::{self, lossy, prefix, suffix};

/// The part left out between the start and the end of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Number of bytes left out.
    pub bytes: u64,
    /// The text after the gap, including the final newline if the window ends with one.
    pub tail: String,
}

/// Bytes stored beyond half of the limit at each end, so that a character cut by the gap
/// can be dropped and a byte-order mark does not count.
const SPARE: usize = 8;

pub(super) struct Ends {
    limit: usize,
    /// Maximum number of bytes stored for each end.
    most: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
    /// Whether the last byte so far was a CR. It is dropped before a newline.
    cr: bool,
}

impl Ends {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            most: limit / 2 + SPARE,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            cr: false,
        }
    }

    /// Adds the next part of a line.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.cr) {
            self.hold(b"\r");
        }
        match bytes.strip_suffix(b"\r") {
            Some(before) => {
                self.cr = true;
                self.hold(before);
            }
            None => self.hold(bytes),
        }
    }

    /// Ends a line: with a newline, or with nothing at the end of the file.
    pub(super) fn end_line(&mut self, newline: &[u8]) {
        self.cr = false;
        self.hold(newline);
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.most - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let from = rest.len().saturating_sub(self.most);
        if from > 0 {
            self.tail.clear();
        }
        self.tail
            .extend_from_slice(rest.get(from..).unwrap_or_default());
        // Not after every line, because moving the bytes to the front takes time.
        if self.tail.len() > self.most * 8 {
            self.tail.drain(..self.tail.len() - self.most);
        }
    }

    /// Returns the whole text, or its start and the gap after it. Removes `mark` from the
    /// start of the text.
    pub(super) fn finish(self, mark: &[u8]) -> (String, Option<Gap>) {
        let head = self.head.strip_prefix(mark).unwrap_or(&self.head);
        let missing = self.total - (self.head.len() + self.tail.len()) as u64;
        let half = self.limit / 2;
        if missing == 0 {
            let whole = [head, &self.tail].concat();
            let text = lossy(&whole);
            if text.len() <= self.limit {
                let shown = text.strip_suffix('\n').unwrap_or(&text);
                return (shown.to_owned(), None);
            }
            let (first, last) = (prefix(&text, half), suffix(&text, half));
            let bytes = (text.len() - first.len() - last.len()) as u64;
            return (first.to_owned(), Some(gap(bytes, last)));
        }
        let (head, missing, tail) = decode::ends(head, missing, &self.tail);
        let (first, last) = (prefix(&head, half), suffix(&tail, half));
        let more = head.len() - first.len() + tail.len() - last.len();
        (first.to_owned(), Some(gap(missing + more as u64, last)))
    }
}

fn gap(bytes: u64, tail: &str) -> Gap {
    Gap {
        bytes,
        tail: tail.to_owned(),
    }
}
