//! What the model thinks before it answers. While it thinks, the last rows are shown; after
//! that, one line stands for all of it.

use crate::card::format_duration;
use crate::styled_text::{Line, Style};
use haft::ops::text::decode::suffix;
use std::time::Instant;

/// Rows to show while the model thinks.
const MAX_ROWS: usize = 2;

/// Only the end of longer reasoning is kept.
const MAX_BYTES: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Reasoning {
    text: String,
    /// Start and end, as far as it is known.
    time: Option<(Instant, Instant)>,
    /// The reasoning that was finished last.
    last: String,
}

impl Reasoning {
    pub(super) fn add(&mut self, delta: &str, now: Instant) {
        self.text.push_str(delta);
        if self.text.len() > 2 * MAX_BYTES {
            self.text = suffix(&self.text, MAX_BYTES).to_owned();
        }
        let (started, _) = self.time.unwrap_or((now, now));
        self.time = Some((started, now));
    }

    /// Ends it. Returns the line that stands for it, if there was any.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let (started, ended) = self.time.take()?;
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return None;
        }
        self.last = text;
        let took = format_duration(ended.saturating_duration_since(started));
        Some(Line::new(&format!("thought for {took}"), Style::DIM))
    }

    /// The last rows, while the model thinks.
    pub(super) fn rows(&self, columns: usize) -> Vec<Line> {
        // Longer reasoning has enough rows in its end.
        let text = suffix(&self.text, 2 << 10);
        let rows: Vec<Line> = lines(text).flat_map(|line| line.rows(columns)).collect();
        let hidden = rows.len().saturating_sub(MAX_ROWS);
        rows.into_iter().skip(hidden).collect()
    }

    /// All of the reasoning that was finished last.
    pub(super) fn last_lines(&self) -> Option<Vec<Line>> {
        let all: Vec<Line> = lines(&self.last).collect();
        (!all.is_empty()).then_some(all)
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line> {
    let style = Style::DIM.and(Style::ITALIC);
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    filled.map(move |line| {
        Line::new(line, style)
            .indented("  ", Style::PLAIN)
            .hanging(2)
    })
}
