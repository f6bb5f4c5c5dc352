//! Searching one file.
//!
//! A small file is read completely into a buffer that the thread reuses, so that lines are
//! counted only up to a match and most files cost two reads. A large file streams through
//! ripgrep's line buffer.

use super::lines::Lines;
use super::results::{FileResult, Job};
use super::tree::Stop;
use crate::text::sniff::SAMPLE_BYTES;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Maximum size of a file to search in one piece, in bytes.
const SMALL: usize = 256 << 10;

/// Maximum length of a line to search, in bytes.
const MAX_LINE: usize = 16 << 20;

/// End of the search of a file.
#[derive(Debug)]
pub(super) enum SearchEnd {
    /// At the end of the file, or early because the whole search was stopped.
    Searched,
    /// At a NUL byte near the start.
    Binary,
    /// At a line that is too long.
    TooLong,
    /// At an error of the system.
    Unreadable(io::Error),
}

/// Searches files one after the other. Each thread has its own.
pub(super) struct FileSearcher {
    job: Arc<Job>,
    matcher: RegexMatcher,
    streaming: Searcher,
    whole: Searcher,
    buffer: Vec<u8>,
}

impl FileSearcher {
    pub(super) fn new(job: &Arc<Job>) -> Self {
        let ending = job.matcher.line_terminator().unwrap_or_default();
        let mut builder = SearcherBuilder::new();
        builder
            // The same as in the pattern; otherwise the searcher would match each line
            // separately.
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

    /// Searches the content of `reader` and records its matches under the path `below`.
    pub(super) fn search_file(&mut self, below: &[u8], mut reader: impl Read) -> SearchEnd {
        let end = match self.fill(&mut reader) {
            Ok(size) => self.search(below, size, reader),
            Err(_) if self.job.stop.is_set() => SearchEnd::Searched,
            Err(error) => SearchEnd::Unreadable(error),
        };
        let tally = &self.job.tally;
        match &end {
            // A file that was interrupted does not count as searched.
            SearchEnd::Searched if self.job.stop.is_set() => {}
            SearchEnd::Searched => tally.searched.add(1),
            SearchEnd::Binary => tally.binary.add(1),
            SearchEnd::TooLong => tally.too_long_lines.add(1),
            SearchEnd::Unreadable(_) => tally.unreadable.add(1),
        }
        end
    }

    /// Fills the buffer. If it is not full afterwards, it contains the whole file.
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

    fn search(&mut self, below: &[u8], size: usize, reader: impl Read) -> SearchEnd {
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
        // The same check as in `read`: every file that can be read can be searched.
        if !utf16 && memchr::memchr(0, sample).is_some() {
            return SearchEnd::Binary;
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
            Ok(()) => SearchEnd::Searched,
            Err(_) if job.stop.is_set() => SearchEnd::Searched,
            Err(error) if failed.get() => SearchEnd::Unreadable(error),
            // The reader is fine, so the line buffer must be full.
            Err(_) => SearchEnd::TooLong,
        };
        if matches!(end, SearchEnd::Searched) && lines.matches > 0 {
            let Lines {
                lines,
                shown,
                matches,
                ..
            } = lines;
            job.post(
                below,
                FileResult {
                    lines,
                    shown,
                    matches,
                },
            );
        }
        end
    }
}

/// A reader that fails once the search is stopped, and records that it did.
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
