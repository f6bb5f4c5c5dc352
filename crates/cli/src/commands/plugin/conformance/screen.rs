//! Shows the conversation while it runs.

use super::report::{Check, counted};
use crate::output::{self, Paint};
use haft::ops::text::decode::visible;

/// Line length without a terminal.
const DEFAULT_WIDTH: usize = 300;

/// Maximum lines of plugin output shown between two of haft's own.
const MAX_LINES: usize = 12;

/// Output of the test as it happens.
pub(super) struct Screen {
    is_shown: bool,
    paint: Paint,
    width: usize,
    /// Lines on stdout and stderr since the last one of haft's.
    received: usize,
    logged: usize,
}

impl Default for Screen {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Screen {
    pub(super) fn new(is_shown: bool) -> Self {
        Self {
            is_shown,
            paint: Paint::for_stdout(),
            width: width(),
            received: 0,
            logged: 0,
        }
    }

    /// Starts a section.
    pub(super) fn section(&mut self, title: &str) {
        self.settle();
        self.print(&format!("\n{}\n", self.paint.bold(title)));
    }

    /// Prints a remark.
    pub(super) fn remark(&mut self, text: &str) {
        self.settle();
        self.print(&format!("  {}\n", self.paint.dim(&visible(text))));
    }

    /// Shows a line sent to the plugin.
    pub(super) fn sent(&mut self, line: &[u8]) {
        self.settle();
        self.line(&self.paint.cyan("→"), &self.fitting(line));
    }

    /// Shows a line from the plugin.
    pub(super) fn received(&mut self, line: &[u8]) {
        self.received += 1;
        if self.received <= MAX_LINES {
            self.line(&self.paint.green("←"), &self.fitting(line));
        }
    }

    /// Shows a line from the plugin's stderr.
    pub(super) fn logged(&mut self, line: &[u8]) {
        self.logged += 1;
        if self.logged <= MAX_LINES {
            let text = self.paint.dim(&self.fitting(line));
            self.line(&self.paint.yellow("!"), &text);
        }
    }

    /// Shows a finding.
    pub(super) fn check(&mut self, check: &Check) {
        self.settle();
        self.print(&format!("{}\n", check.line(self.paint, self.width)));
    }

    fn print(&self, text: &str) {
        if self.is_shown {
            // Nothing can be done if stdout is gone.
            let _ = output::raw(text);
        }
    }

    fn line(&self, sign: &str, text: &str) {
        self.print(&format!("  {sign} {text}\n"));
    }

    fn fitting(&self, line: &[u8]) -> String {
        shortened(line, self.width.saturating_sub(5))
    }

    /// Prints how many lines were not shown.
    fn settle(&mut self) {
        for (count, sign, which) in [
            (self.received, self.paint.green("←"), "stdout"),
            (self.logged, self.paint.yellow("!"), "stderr"),
        ] {
            if count > MAX_LINES {
                let more = counted(count - MAX_LINES, "more line");
                self.line(&sign, &self.paint.dim(&format!("… {more} on {which}")));
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
    let head = line.get(..room.saturating_mul(4)).unwrap_or(line);
    let text = visible(&String::from_utf8_lossy(head)).replace('\t', "\\t");
    if head.len() == line.len() && text.chars().count() <= room {
        return text;
    }
    let suffix = format!("… ({} bytes)", line.len());
    let rest = room.saturating_sub(suffix.chars().count());
    text.chars().take(rest).chain(suffix.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_line_is_safe_and_fits() {
        assert_eq!(shortened(b"{\"a\":1}", 40), "{\"a\":1}");
        assert_eq!(shortened(b"{}\r", 40), "{}\\x0d");
        assert_eq!(shortened(b"a\x1b[2J\tb", 40), "a\\x1b[2J\\tb");
        let long = shortened("ä".repeat(500).as_bytes(), 40);
        assert_eq!(long.chars().count(), 40);
        assert!(long.ends_with("… (1000 bytes)"), "{long}");
    }
}
