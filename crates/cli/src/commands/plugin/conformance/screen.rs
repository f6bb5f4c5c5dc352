//! Shows the conversation while it runs.

use super::report::{Check, Level, counted};
use crate::output::{self, Paint};
use haft::ops::text::decode::visible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Line length without a terminal.
const DEFAULT_WIDTH: usize = 300;

/// Maximum lines of plugin output shown between two of haft's own.
const MAX_LINES: usize = 12;

/// The screen, shared by the readers of stdout and stderr.
#[derive(Clone)]
pub(super) struct Screen {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    is_shown: bool,
    paint: Paint,
    width: usize,
    /// Lines since the last one of haft's, on stdout and stderr.
    received: usize,
    logged: usize,
}

/// Origin of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Host,
    Answer,
    Log,
}

impl Screen {
    pub(super) fn new(is_shown: bool) -> Self {
        let inner = Inner {
            is_shown,
            paint: Paint::for_stdout(),
            width: width(),
            received: 0,
            logged: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a section.
    pub(super) fn section(&self, title: &str) {
        let mut inner = self.lock();
        inner.settle();
        let title = inner.paint.bold(title);
        inner.print(&format!("\n{title}\n"));
    }

    /// Prints a remark.
    pub(super) fn remark(&self, text: &str) {
        let mut inner = self.lock();
        inner.settle();
        let text = inner.paint.dim(&visible(text));
        inner.print(&format!("  {text}\n"));
    }

    /// Shows a line sent to the plugin.
    pub(super) fn sent(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.settle();
        inner.line(Side::Host, line);
    }

    /// Shows a line from the plugin.
    pub(super) fn received(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.received += 1;
        if inner.received <= MAX_LINES {
            inner.line(Side::Answer, line);
        }
    }

    /// Shows a line from the plugin's stderr.
    pub(super) fn logged(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.logged += 1;
        if inner.logged <= MAX_LINES {
            inner.line(Side::Log, line);
        }
    }

    /// Shows a finding.
    pub(super) fn check(&self, check: &Check) {
        let mut inner = self.lock();
        inner.settle();
        let line = check.line(inner.paint, inner.width);
        inner.print(&format!("{line}\n"));
    }
}

impl Inner {
    fn print(&self, text: &str) {
        if self.is_shown {
            // Nothing can be done if stdout is gone.
            let _ = output::raw(text);
        }
    }

    fn line(&self, side: Side, line: &[u8]) {
        let (sign, room) = match side {
            Side::Host => (self.paint.cyan("→"), self.width),
            Side::Answer => (self.paint.green("←"), self.width),
            Side::Log => (self.paint.yellow("!"), self.width),
        };
        let text = shortened(line, room.saturating_sub(5));
        let text = if side == Side::Log {
            self.paint.dim(&text)
        } else {
            text
        };
        self.print(&format!("  {sign} {text}\n"));
    }

    /// Prints how many lines were not shown.
    fn settle(&mut self) {
        for (count, sign, which) in [
            (self.received, self.paint.green("←"), "stdout"),
            (self.logged, self.paint.yellow("!"), "stderr"),
        ] {
            if let Some(more) = count.checked_sub(MAX_LINES).filter(|more| *more > 0) {
                let text = format!("… {} on {which}", counted(more, "more line"));
                self.print(&format!("  {sign} {}\n", self.paint.dim(&text)));
            }
        }
        (self.received, self.logged) = (0, 0);
    }
}

/// Returns the maximum line length.
pub(super) fn width() -> usize {
    output::width().map_or(DEFAULT_WIDTH, |width| width.max(40))
}

/// Returns a line that is safe to show and fits.
pub(super) fn shortened(line: &[u8], room: usize) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    if line.is_empty() {
        return "(an empty line)".to_owned();
    }
    let head = line.get(..room.saturating_mul(4)).unwrap_or(line);
    let text = visible(&String::from_utf8_lossy(head)).replace('\t', "\\t");
    if head.len() == line.len() && text.chars().count() <= room {
        return text;
    }
    let suffix = format!("… ({} bytes)", line.len());
    let rest = room.saturating_sub(suffix.chars().count());
    text.chars().take(rest).chain(suffix.chars()).collect()
}

/// Returns the symbol of a result, in its colour.
pub(super) fn sign(level: Level, paint: Paint) -> String {
    match level {
        Level::Passed => paint.green("✓"),
        Level::Warned => paint.yellow("⚠"),
        Level::Failed => paint.red("✗"),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_line_is_safe_and_fits() {
        assert_eq!(shortened(b"{\"a\":1}\n", 40), "{\"a\":1}");
        assert_eq!(shortened(b"\n", 40), "(an empty line)");
        assert_eq!(shortened(b"{}\r\n", 40), "{}\\x0d");
        assert_eq!(shortened(b"a\x1b[2J\tb", 40), "a\\x1b[2J\\tb");
        let long = shortened("ä".repeat(500).as_bytes(), 40);
        assert_eq!(long.chars().count(), 40);
        assert!(long.ends_with("… (1000 bytes)"), "{long}");
    }
}
