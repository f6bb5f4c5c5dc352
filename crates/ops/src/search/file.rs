//! Searching one file.
//!
//! A small file is read whole into memory that the thread keeps, so that lines
//! are counted only up to a match and most files cost two reads. A large one
//! streams through ripgrep's line buffer.

use super::board::{Found, Job};
use super::lines::Lines;
use super::tree::Stop;
use crate::text::sniff::SAMPLE_BYTES;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Files up to here are searched in one piece.
const SMALL: usize = 256 << 10;

/// The longest line that is searched.
const MAX_LINE: usize = 16 << 20;

/// How the search of a file ended.
#[derive(Debug)]
pub(super) enum End {
    /// At its end, or early because the whole search was stopped.
    Searched,
    /// At a NUL byte near its beginning.
    Binary,
    /// At a line that is too long.
    TooLong,
    /// At an error of the system.
    Unreadable(io::Error),
}

/// Searches files, one after the other. Each thread has its own.
pub(super) struct Seeker {
    job: Arc<Job>,
    matcher: RegexMatcher,
    streaming: Searcher,
    whole: Searcher,
    buffer: Vec<u8>,
}

impl Seeker {
    pub(super) fn new(job: &Arc<Job>) -> Self {
        let ending = job.matcher.line_terminator().unwrap_or_default();
        let mut builder = SearcherBuilder::new();
        builder
            // As the pattern sees it, or each line would be looked at alone.
            .line_terminator(ending)
            .line_number(true)
            .before_context(job.context)
            .after_context(job.context)
            .heap_limit(Some(MAX_LINE))
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false);
        let whole = builder.build();
        let streaming = builder.bom_sniffing(true).build();
        Self {
            job: Arc::clone(job),
            matcher: job.matcher.clone(),
            streaming,
            whole,
            buffer: Vec::new(),
        }
    }

    /// Searches what `reader` gives and posts it under the path `below`.
    pub(super) fn seek(&mut self, below: &[u8], mut reader: impl Read) -> End {
        let end = match self.fill(&mut reader) {
            Ok(size) => self.search(below, size, reader),
            Err(_) if self.job.stop.is_set() => End::Searched,
            Err(error) => End::Unreadable(error),
        };
        let tally = &self.job.tally;
        match &end {
            // One that was stopped in the middle was not searched.
            End::Searched if self.job.stop.is_set() => {}
            End::Searched => tally.searched.add(1),
            End::Binary => tally.binary.add(1),
            End::TooLong => tally.too_long_lines.add(1),
            End::Unreadable(_) => tally.unreadable.add(1),
        }
        end
    }

    /// Fills the buffer; less than all of it means that this is the whole file.
    fn fill(&mut self, reader: &mut impl Read) -> io::Result<usize> {
        self.buffer.resize(SMALL, 0);
        let mut size = 0;
        while let Some(free) = self.buffer.get_mut(size..).filter(|free| !free.is_empty()) {
            match reader.read(free) {
                Ok(0) => break,
                Ok(read) => size += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(size)
    }

    fn search(&mut self, below: &[u8], size: usize, reader: impl Read) -> End {
        let job = &*self.job;
        let bytes = self.buffer.get(..size).unwrap_or_default();
        let mut lines = Lines::new(
            &self.matcher,
            job.max_matches,
            job.max_line,
            job.context,
            || job.may_show(below),
        );
        let failed = Cell::new(false);
        let utf16 = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
        let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
        // Where a reader looks for one too: what can be read can be searched.
        if !utf16 && memchr::memchr(0, sample).is_some() {
            return End::Binary;
        }
        let result = if size < SMALL && !utf16 {
            let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            self.whole.search_slice(&self.matcher, text, &mut lines)
        } else {
            let rest = Stoppable {
                inner: reader,
                stop: &job.stop,
                failed: &failed,
            };
            self.streaming
                .search_reader(&self.matcher, Cursor::new(bytes).chain(rest), &mut lines)
        };
        let end = match result {
            Ok(()) => End::Searched,
            Err(_) if job.stop.is_set() => End::Searched,
            Err(error) if failed.get() => End::Unreadable(error),
            // The reader is fine, so it is the line buffer that is full.
            Err(_) => End::TooLong,
        };
        if matches!(end, End::Searched) && lines.matches > 0 {
            let Lines {
                lines,
                held,
                matches,
                ..
            } = lines;
            job.post(
                below,
                Found {
                    lines,
                    held,
                    matches,
                },
            );
        }
        end
    }
}

/// A reader that fails when the search is stopped, and remembers that it did.
struct Stoppable<'a, R> {
    inner: R,
    stop: &'a Stop,
    failed: &'a Cell<bool>,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Err(io::Error::other("stopped"));
        }
        self.inner
            .read(buffer)
            .inspect_err(|_| self.failed.set(true))
    }
}
