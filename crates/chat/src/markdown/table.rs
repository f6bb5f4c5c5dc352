//! Tables: in columns, with narrower columns if needed, or as a list of names and values if
//! that does not fit.

use crate::styled_text::{Line, Style};
use pulldown_cmark::Alignment;

const MIN_COLUMN_WIDTH: usize = 6;

/// A table that is filled cell by cell.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, cell: Line) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// Renders the table in at most `room` columns.
    pub(super) fn lines(&self, room: usize) -> Vec<Line> {
        match self.widths(room) {
            Some(widths) => self.in_columns(&widths),
            None => self.as_list(),
        }
    }

    /// Width of each column, or `None` if the table does not fit.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths: Vec<usize> = (0..count)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(Line::width).max().unwrap_or(0).max(1)
            })
            .collect();
        let room = room.checked_sub(3 * count.saturating_sub(1))?;
        while widths.iter().sum::<usize>() > room {
            let widest = widths.iter_mut().max()?;
            if *widest <= MIN_COLUMN_WIDTH {
                return None;
            }
            *widest -= 1;
        }
        Some(widths)
    }

    fn in_columns(&self, widths: &[usize]) -> Vec<Line> {
        let mut out = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Line>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| match row.get(column) {
                    Some(cell) => cell.all_rows(*width),
                    None => Vec::new(),
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for part in 0..height {
                let mut line = Line::default();
                for (column, width) in widths.iter().enumerate() {
                    if column > 0 {
                        line.push(" │ ", Style::DIM);
                    }
                    let empty = Line::default();
                    let cell = cells.get(column).and_then(|rows| rows.get(part));
                    let cell = cell.unwrap_or(&empty);
                    let (before, behind) = self.padding(column, width - cell.width().min(*width));
                    line.push(&" ".repeat(before), Style::PLAIN);
                    line.append(if at == 0 { bold(cell) } else { cell.clone() });
                    if column + 1 < widths.len() {
                        line.push(&" ".repeat(behind), Style::PLAIN);
                    }
                }
                out.push(line);
            }
            if at == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                out.push(Line::new(&rule.join("─┼─"), Style::DIM));
            }
        }
        out
    }

    fn padding(&self, column: usize, spare: usize) -> (usize, usize) {
        match self.alignments.get(column) {
            Some(Alignment::Right) => (spare, 0),
            Some(Alignment::Center) => (spare / 2, spare - spare / 2),
            _ => (0, spare),
        }
    }

    fn as_list(&self) -> Vec<Line> {
        let mut rows = self.rows.iter();
        let names: Vec<String> = rows
            .next()
            .map(|row| row.iter().map(Line::text).collect())
            .unwrap_or_default();
        let mut out = Vec::new();
        for (at, row) in rows.enumerate() {
            if at > 0 {
                out.push(Line::new("─", Style::DIM));
            }
            for (column, cell) in row.iter().enumerate() {
                let name = names.get(column).map(String::as_str).unwrap_or_default();
                let mut line = Line::new(&format!("{name}: "), Style::BOLD);
                line.append(cell.clone());
                out.push(line.hanging(2));
            }
        }
        out
    }
}

fn bold(cell: &Line) -> Line {
    Line::new(&cell.text(), Style::BOLD)
}
