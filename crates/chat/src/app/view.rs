//! The live region below the finished lines.

use super::App;
use crate::screen::LiveRegion;
use crate::styled_text::{Line, Style};
use crate::transcript::format_count;
use std::io;
use std::time::Instant;

const MAX_COMPLETION_ROWS: usize = 6;

const MAX_QUEUED_ROWS: usize = 3;

impl App {
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
        if let Some(before) = &greeting.last_exchange {
            lines.extend(self.transcript.last_exchange(before));
        }
        self.print(&lines);
    }

    pub(super) fn draw(&mut self) -> io::Result<()> {
        let columns = self.screen.columns();
        self.transcript.resize(columns);
        let height = self.screen.height().saturating_sub(1).max(1);
        let now = Instant::now();

        let mut below = self.completion_rows(columns);
        below.push(self.status_line(columns));
        let (mut entry, mut cursor) = self.input_rows(columns);
        // Of a long text show the part around the cursor.
        let most = (height / 3).max(1);
        if entry.len() > most {
            let first = (cursor.0 + 1).saturating_sub(most).min(entry.len() - most);
            entry = entry.split_off(first);
            entry.truncate(most);
            cursor.0 -= first;
        }
        let mut above: Vec<Line> = Vec::new();
        let waiting = self.queue.iter().rev().take(MAX_QUEUED_ROWS).rev();
        for text in waiting {
            let first = text.lines().next().unwrap_or_default();
            let line = Line::new("  queued: ", Style::YELLOW).and(first, Style::DIM);
            above.push(line.truncated(columns));
        }
        let fixed = above.len() + entry.len() + below.len() + 1;
        let room = height.saturating_sub(fixed);
        let mut rows = self.transcript.live_rows(now, room);
        if rows.len() < room || room == 0 {
            above.push(Line::default());
        }
        rows.append(&mut above);
        cursor.0 += rows.len();
        rows.append(&mut entry);
        rows.append(&mut below);
        self.screen.draw(&LiveRegion { rows, cursor })
    }

    /// The input line, or what replaces it.
    fn input_rows(&mut self, columns: usize) -> (Vec<Line>, (usize, usize)) {
        if let Some(active) = &self.active {
            return active.input_rows(columns);
        }
        if let Some(search) = &self.search {
            let found = self.history.search(&search.text, search.skip);
            let found = found.unwrap_or_default().lines().next().unwrap_or_default();
            let line = Line::new("search: ", Style::DIM).and(&search.text, Style::BOLD);
            let column = line.width();
            let line = line.and(&format!("  {found}"), Style::PLAIN);
            return (vec![line.truncated(columns)], (0, column));
        }
        let prompt = Line::new("› ", Style::CYAN);
        let shown = self.editor.view(&prompt, columns);
        (shown.rows, (shown.row, shown.column))
    }

    fn completion_rows(&self, columns: usize) -> Vec<Line> {
        let Some(completion) = self.completion.as_ref().filter(|_| self.active.is_none()) else {
            return Vec::new();
        };
        let choices = &completion.completions.choices;
        let first = completion.selected.saturating_sub(MAX_COMPLETION_ROWS - 1);
        let shown = choices
            .iter()
            .enumerate()
            .skip(first)
            .take(MAX_COMPLETION_ROWS);
        shown
            .map(|(at, choice)| {
                let (mark, style) = if at == completion.selected {
                    ("  ▸ ", Style::BOLD)
                } else {
                    ("    ", Style::DIM)
                };
                Line::new(mark, Style::CYAN)
                    .and(choice, style)
                    .truncated(columns)
            })
            .collect()
    }

    fn status_line(&self, columns: usize) -> Line {
        if let Some((hint, _)) = &self.hint {
            return Line::new(hint, Style::YELLOW).truncated(columns);
        }
        let usage = self.driver.usage();
        let mut parts = vec![self.driver.model(), self.setup.greeting.sandbox.clone()];
        if usage.total() > 0 {
            parts.push(format!("{} tokens", format_count(usage.total())));
        }
        parts.extend(usage.cost.map(|cost| format!("${cost:.2}")));
        let hints = match (self.work.is_idle(), self.active.is_some()) {
            (_, true) => "",
            (true, false) => "/help",
            (false, false) => "Enter sends now · Ctrl-C stops",
        };
        parts.push(hints.to_owned());
        parts.retain(|part| !part.is_empty());
        // Parts that do not fit are left out; earlier parts have priority.
        let mut line = Line::default();
        for part in parts {
            let between = if line.is_empty() { "" } else { " · " };
            let more = Line::new(&format!("{between}{part}"), Style::DIM);
            if line.is_empty() || line.width() + more.width() <= columns {
                line.append(more);
            }
        }
        line.truncated(columns)
    }
}
