//! The live region below the finished lines.

use super::App;
use crate::screen::LiveRegion;
use crate::slash::percent;
use crate::styled_text::{Line, Style};
use crate::transcript::format_count;
use std::io;
use std::time::Instant;

/// A smaller screen has no room for a border.
const MIN_BORDERED: (usize, usize) = (30, 16);

/// From this part of the context on, in percent, the status line warns.
const FULL_CONTEXT: u64 = 80;

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
        let conversation = &greeting.conversation;
        lines.extend(self.transcript.recall(conversation, Instant::now()));
        self.print(&lines);
    }

    pub(super) fn draw(&mut self) -> io::Result<()> {
        let columns = self.screen.columns();
        self.transcript.resize(columns);
        let height = self.screen.height().saturating_sub(1).max(1);
        let now = Instant::now();

        let is_bordered = columns >= MIN_BORDERED.0 && height >= MIN_BORDERED.1;
        let inside = if is_bordered { columns - 4 } else { columns };
        let mut below = self.menu_rows(columns, height / 2);
        below.push(self.status_line(columns));
        let border = if is_bordered { 2 } else { 0 };
        let third = (self.screen.height() / 3).saturating_sub(border).max(1);
        let (mut entry, mut cursor) = self.input_rows(inside, third);
        // Of a long text show the part around the cursor.
        let most = match self.active {
            Some(_) => height,
            None => (height / 3).max(1),
        };
        if entry.len() > most {
            let first = (cursor.0 + 1).saturating_sub(most).min(entry.len() - most);
            entry = entry.split_off(first);
            entry.truncate(most);
            cursor.0 -= first;
        }
        if is_bordered {
            let style = match self.active {
                Some(_) => Style::YELLOW,
                None => Style::DIM,
            };
            entry = bordered(entry, columns, style);
            cursor = (cursor.0 + 1, cursor.1 + 2);
        }
        let mut above = match self.active {
            Some(_) => Vec::new(),
            None => self.transcript.todo_rows(columns),
        };
        if !above.is_empty() {
            above.insert(0, Line::default());
        }
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
    fn input_rows(&mut self, columns: usize, most: usize) -> (Vec<Line>, (usize, usize)) {
        if let Some(active) = &self.active {
            return active.input_rows(columns, most, &self.setup.question_context);
        }
        if let Some(menu) = self.menu.as_ref().filter(|menu| menu.purpose.is_picker()) {
            let line = Line::new(menu.purpose.heading(), Style::CYAN)
                .and(" › ", Style::DIM)
                .and(menu.typed(), Style::BOLD);
            let column = line.width();
            let line = match menu.typed() {
                "" => line.and("type to filter · Enter picks · Esc goes back", Style::DIM),
                _ => line,
            };
            return (vec![line.truncated(columns)], (0, column));
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
        if self.editor.is_empty() && self.work.is_idle() && columns > PLACEHOLDER.len() {
            return (vec![prompt.and(PLACEHOLDER, Style::DIM)], (0, 2));
        }
        let shown = self.editor.view(&prompt, columns);
        (shown.rows, (shown.row, shown.column))
    }

    fn menu_rows(&self, columns: usize, room: usize) -> Vec<Line> {
        let menu = self.menu.as_ref().filter(|_| self.active.is_none());
        menu.map_or_else(Vec::new, |menu| menu.rows(columns, room))
    }

    /// Parts of the status line in their order, each with its rank: those with the highest
    /// rank are left out first.
    fn status_parts(&self) -> Vec<(u8, String, Style)> {
        let greeting = &self.setup.greeting;
        let usage = self.driver.usage();
        let provider = match self.driver.provider() {
            provider if provider.is_empty() => provider,
            provider => format!("({provider})"),
        };
        let mut parts = vec![(0, self.driver.model(), Style::DIM)];
        parts.push((6, provider, Style::DIM));
        match self.driver.plan_file() {
            Some(_) => parts.push((1, "plan mode".to_owned(), Style::YELLOW)),
            None => parts.push((1, greeting.sandbox.clone(), Style::DIM)),
        }
        parts.push((5, greeting.network.clone(), Style::DIM));
        let context = self.driver.context().filter(|(used, _)| *used > 0);
        if let Some((used, window)) = context {
            let percent = percent(used, window);
            let style = match percent {
                0..FULL_CONTEXT => Style::DIM,
                _ => Style::YELLOW.and(Style::BOLD),
            };
            parts.push((2, format!("{percent} % context"), style));
        }
        if usage.total() > 0 {
            let tokens = format!("{} tokens", format_count(usage.total()));
            let cost = match usage.cost {
                Some(cost) => format!("${cost:.2}"),
                None => "price unknown".to_owned(),
            };
            parts.push((4, tokens, Style::DIM));
            parts.push((3, cost, Style::DIM));
        }
        parts.push((7, self.branch.clone().unwrap_or_default(), Style::DIM));
        let hints = match (self.work.is_idle(), self.active.is_some()) {
            (_, true) => "",
            (true, false) => "/help",
            (false, false) => "Enter sends now · Ctrl-C stops",
        };
        parts.push((3, hints.to_owned(), Style::DIM));
        parts.retain(|(_, text, _)| !text.is_empty());
        parts
    }

    fn status_line(&self, columns: usize) -> Line {
        if let Some((hint, _)) = &self.hint {
            return Line::new(&format!(" {hint}"), Style::YELLOW).truncated(columns);
        }
        let mut parts = self.status_parts();
        let joined = |parts: &[(u8, String, Style)]| {
            let mut line = Line::new(" ", Style::PLAIN);
            for (at, (_, text, style)) in parts.iter().enumerate() {
                let between = match (at, text.starts_with('(')) {
                    (0, _) => "",
                    (_, true) => " ",
                    (_, false) => " · ",
                };
                line.push(between, Style::DIM);
                line.push(text, *style);
            }
            line
        };
        loop {
            let line = joined(&parts);
            let last = parts.iter().map(|(rank, ..)| *rank).max().unwrap_or(0);
            if line.width() <= columns || last == 0 {
                return line.truncated(columns);
            }
            if let Some(at) = parts.iter().rposition(|(rank, ..)| *rank == last) {
                parts.remove(at);
            }
        }
    }
}

/// Shown in the empty input line.
const PLACEHOLDER: &str = "Ask, or type / for commands, @ for files, ! for the shell";

/// Puts a border around rows, as wide as the screen.
fn bordered(rows: Vec<Line>, columns: usize, style: Style) -> Vec<Line> {
    let line = "─".repeat(columns.saturating_sub(2));
    let mut out = vec![Line::new(&format!("╭{line}╮"), style)];
    for row in rows {
        let gap = columns.saturating_sub(row.width() + 3);
        let mut line = Line::new("│", style).and(" ", Style::PLAIN);
        line.append(row);
        out.push(line.and(&" ".repeat(gap), Style::PLAIN).and("│", style));
    }
    out.push(Line::new(&format!("╰{line}╯"), style));
    out
}
