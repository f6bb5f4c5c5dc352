//! What a person sees of the conversation while it goes on.

use super::report::{Check, Level, counted};
use crate::output::{self, Paint};
use haft::ops::text::decode::visible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a line may be where no terminal says how wide it is.
const WIDE: usize = 300;

/// How many lines of one kind are shown between two of ours.
const MOST: usize = 12;

/// The screen, which the readers of both streams share.
#[derive(Clone)]
pub(super) struct Screen {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    is_shown: bool,
    paint: Paint,
    width: usize,
    /// Lines since the last one of ours, on stdout and on stderr.
    heard: usize,
    logged: usize,
}

/// Whose line it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Answer,
    Log,
}

impl Screen {
    pub(super) fn new(is_shown: bool) -> Self {
        let inner = Inner {
            is_shown,
            paint: Paint::for_stdout(),
            width: width(),
            heard: 0,
            logged: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new part begins.
    pub(super) fn section(&self, title: &str) {
        let mut inner = self.lock();
        inner.settle();
        let title = inner.paint.bold(title);
        inner.print(&format!("\n{title}\n"));
    }

    /// A remark of ours inside of a part.
    pub(super) fn remark(&self, text: &str) {
        let mut inner = self.lock();
        inner.settle();
        let text = inner.paint.dim(&visible(text));
        inner.print(&format!("  {text}\n"));
    }

    /// A line to the plugin.
    pub(super) fn said(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.settle();
        inner.line(Side::Ours, line);
    }

    /// A line of the plugin.
    pub(super) fn heard(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.heard += 1;
        if inner.heard <= MOST {
            inner.line(Side::Answer, line);
        }
    }

    /// A line of the plugin's log.
    pub(super) fn logged(&self, line: &[u8]) {
        let mut inner = self.lock();
        inner.logged += 1;
        if inner.logged <= MOST {
            inner.line(Side::Log, line);
        }
    }

    /// What was found.
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
            // Nobody is left to be told that stdout is gone.
            let _ = output::raw(text);
        }
    }

    fn line(&self, side: Side, line: &[u8]) {
        let (sign, room) = match side {
            Side::Ours => (self.paint.cyan("→"), self.width),
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

    /// Says how many lines were not shown.
    fn settle(&mut self) {
        for (count, sign, which) in [
            (self.heard, self.paint.green("←"), "stdout"),
            (self.logged, self.paint.yellow("!"), "stderr"),
        ] {
            if let Some(more) = count.checked_sub(MOST).filter(|more| *more > 0) {
                let text = format!("… {} on {which}", counted(more, "more line"));
                self.print(&format!("  {sign} {}\n", self.paint.dim(&text)));
            }
        }
        (self.heard, self.logged) = (0, 0);
    }
}

/// How long a line may be.
pub(super) fn width() -> usize {
    output::width().map_or(WIDE, |width| width.max(40))
}

/// A line as it can be shown: harmless, and no longer than there is room.
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
    let told = format!("… ({} bytes)", line.len());
    let kept = room.saturating_sub(told.chars().count());
    text.chars().take(kept).chain(told.chars()).collect()
}

/// The sign of a finding, in its colour.
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
    fn a_line_is_harmless_and_fits() {
        assert_eq!(shortened(b"{\"a\":1}\n", 40), "{\"a\":1}");
        assert_eq!(shortened(b"\n", 40), "(an empty line)");
        assert_eq!(shortened(b"{}\r\n", 40), "{}\\x0d");
        assert_eq!(shortened(b"a\x1b[2J\tb", 40), "a\\x1b[2J\\tb");
        let long = shortened("ä".repeat(500).as_bytes(), 40);
        assert_eq!(long.chars().count(), 40);
        assert!(long.ends_with("… (1000 bytes)"), "{long}");
    }
}
