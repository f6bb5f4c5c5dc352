//! What is seen below the finished lines.

use super::App;
use crate::chat::ink::{Line, Style};
use crate::chat::screen::Live;
use crate::chat::transcript::counted;
use std::io;
use std::time::Instant;

/// Rows of completions.
const OFFERED: usize = 6;

/// Rows of what waits to be sent.
const QUEUED: usize = 3;

impl App {
    /// The first lines.
    pub(super) fn greet(&mut self) {
        let greeting = &self.setup.greeting;
        let mut line = Line::new(&format!("haft {}", greeting.version), Style::BOLD);
        for part in [&greeting.model, &greeting.folder, &greeting.sandbox] {
            if !part.is_empty() {
                line.push(" · ", Style::DIM);
                line.push(part, Style::PLAIN);
            }
        }
        let mut lines = vec![line];
        let notes = greeting.notes.iter();
        lines.extend(notes.map(|note| Line::new(note, Style::YELLOW).hanging(2)));
        if let Some(before) = &greeting.before {
            lines.extend(self.transcript.recalled(before));
        }
        self.print(&lines);
    }

    /// Draws the live region.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        let columns = self.screen.columns();
        self.transcript.resize(columns);
        let height = self.screen.height().saturating_sub(1).max(1);
        let now = Instant::now();

        let mut below = self.offers(columns);
        below.push(self.status(columns));
        let (mut entry, mut cursor) = self.entry(columns);
        // A long text shows the part around the cursor.
        let most = (height / 3).max(1);
        if entry.len() > most {
            let first = (cursor.0 + 1).saturating_sub(most).min(entry.len() - most);
            entry = entry.split_off(first);
            entry.truncate(most);
            cursor.0 -= first;
        }
        let mut above: Vec<Line> = Vec::new();
        let waiting = self.queue.iter().rev().take(QUEUED).rev();
        for text in waiting {
            let first = text.lines().next().unwrap_or_default();
            let line = Line::new("  queued: ", Style::YELLOW).and(first, Style::DIM);
            above.push(line.cut(columns));
        }
        let fixed = above.len() + entry.len() + below.len() + 1;
        let room = height.saturating_sub(fixed);
        let mut rows = self.transcript.live(now, room);
        if rows.len() < room || room == 0 {
            above.push(Line::default());
        }
        rows.append(&mut above);
        cursor.0 += rows.len();
        rows.append(&mut entry);
        rows.append(&mut below);
        self.screen.draw(&Live { rows, cursor })
    }

    /// Where the person types, or answers.
    fn entry(&mut self, columns: usize) -> (Vec<Line>, (usize, usize)) {
        if let Some(asking) = &self.asking {
            return asking.entry(columns, self.screen.columns());
        }
        if let Some(searching) = &self.searching {
            let found = self.history.search(&searching.text, searching.skip);
            let found = found.unwrap_or_default().lines().next().unwrap_or_default();
            let line = Line::new("search: ", Style::DIM).and(&searching.text, Style::BOLD);
            let column = line.width();
            let line = line.and(&format!("  {found}"), Style::PLAIN);
            return (vec![line.cut(columns)], (0, column));
        }
        let prompt = Line::new("› ", Style::CYAN);
        let shown = self.editor.shown(&prompt, columns);
        (shown.rows, (shown.row, shown.column))
    }

    fn offers(&self, columns: usize) -> Vec<Line> {
        let Some(choosing) = self.choosing.as_ref().filter(|_| self.asking.is_none()) else {
            return Vec::new();
        };
        let choices = &choosing.offer.choices;
        let first = choosing.at.saturating_sub(OFFERED - 1);
        let shown = choices.iter().enumerate().skip(first).take(OFFERED);
        shown
            .map(|(at, choice)| {
                let (mark, style) = if at == choosing.at {
                    ("  ▸ ", Style::BOLD)
                } else {
                    ("    ", Style::DIM)
                };
                Line::new(mark, Style::CYAN).and(choice, style).cut(columns)
            })
            .collect()
    }

    fn status(&self, columns: usize) -> Line {
        if let Some((hint, _)) = &self.hint {
            return Line::new(hint, Style::YELLOW).cut(columns);
        }
        let usage = self.driver.usage();
        let mut parts = vec![self.driver.model(), self.setup.greeting.sandbox.clone()];
        if usage.total() > 0 {
            parts.push(format!("{} tokens", counted(usage.total())));
        }
        parts.extend(usage.cost.map(|cost| format!("${cost:.2}")));
        let hints = match (self.work.is_idle(), self.asking.is_some()) {
            (_, true) => "",
            (true, false) => "/help",
            (false, false) => "Enter says it now · Ctrl-C stops",
        };
        parts.push(hints.to_owned());
        parts.retain(|part| !part.is_empty());
        // What does not fit is left out, the first things last.
        let mut line = Line::default();
        for part in parts {
            let between = if line.is_empty() { "" } else { " · " };
            let more = Line::new(&format!("{between}{part}"), Style::DIM);
            if line.is_empty() || line.width() + more.width() <= columns {
                line.append(more);
            }
        }
        line.cut(columns)
    }
}
