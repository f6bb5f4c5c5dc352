//! Renders data tables as tables. Layout tables are not treated as tables.

use super::tag::Tag;
use super::tree::{Attribute, Tree};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Maximum number of cells in a row.
const MAX_CELLS: usize = 200;

/// Maximum number of cells that row and column spans may add to a page. Otherwise a few kilobytes
/// could expand to any number of cells.
pub(super) const MAX_ADDED_CELLS: usize = 300_000;

/// Maximum column span of a cell.
const MAX_SPAN: usize = 100;

/// In a cell that spans several rows, longer text appears only in the first one.
const MAX_REPEATED: usize = 80;

/// Text longer than this is moved below the table. If at least a quarter of the cells are longer,
/// the table is layout.
const MAX_CELL_TEXT: usize = 4000;

/// Whether a table contains data: at least two rows and two columns, and no block elements inside
/// cells.
pub(super) fn is_data(tree: &Tree, table: usize) -> bool {
    if matches!(
        tree.attribute(table, Attribute::Role),
        Some("presentation" | "none")
    ) {
        return false;
    }
    let (mut rows, mut cells, mut widest) = (0usize, 0usize, 0usize);
    let mut text = 0;
    let (mut all, mut long) = (0usize, 0usize);
    for node in tree.descendants(table) {
        match tree.tag(node) {
            Some(Tag::Table | Tag::Pre | Tag::Blockquote | Tag::Section | Tag::Article) => {
                return false;
            }
            Some(tag) if tag.heading().is_some() => return false,
            Some(Tag::Tr) => {
                rows += 1;
                cells = 0;
            }
            Some(Tag::Td | Tag::Th) => {
                cells += 1;
                all += 1;
                widest = widest.max(cells);
                text = 0;
            }
            Some(_) => {}
            None => {
                let more = tree.text_of(node).map_or(0, |text| text.trim().len());
                long += usize::from(text <= MAX_CELL_TEXT && text + more > MAX_CELL_TEXT);
                text += more;
            }
        }
    }
    rows >= 2 && widest >= 2 && long * 4 < all
}

/// A data table that is being read.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<Rc<str>>>,
    row: Option<Vec<Rc<str>>>,
    /// Cells that span into the current row: by column, their text and the number of rows left.
    spanning: BTreeMap<usize, (Rc<str>, usize)>,
    /// Number of cells that spans may still add.
    spare: usize,
    /// Whether spans were ignored because there were too many.
    ignored_spans: bool,
    /// Whether columns were dropped.
    dropped_columns: bool,
    /// Text that goes below the table because it is too long for a cell.
    below: Vec<String>,
}

impl Table {
    /// Creates a table whose spans may add at most `spare` cells.
    pub(super) fn new(spare: usize) -> Self {
        Self {
            rows: Vec::new(),
            row: None,
            spanning: BTreeMap::new(),
            spare,
            ignored_spans: false,
            dropped_columns: false,
            below: Vec::new(),
        }
    }

    /// Returns how many cells are left for other tables.
    pub(super) fn spare(&self) -> usize {
        self.spare
    }

    pub(super) fn row(&mut self) {
        self.end_row();
        self.row = Some(Vec::new());
    }

    pub(super) fn end_row(&mut self) {
        if let Some(mut row) = self.row.take() {
            self.add_spanning(&mut row);
            if row.iter().any(|cell| !cell.is_empty()) {
                self.rows.push(row);
            }
        }
    }

    /// Inserts the cells that span into this row at the current column.
    fn add_spanning(&mut self, row: &mut Vec<Rc<str>>) {
        while let Some((text, more)) = self.spanning.get_mut(&row.len()) {
            if self.spare == 0 {
                self.spanning.clear();
                self.ignored_spans = true;
                return;
            }
            self.spare -= 1;
            let text = Rc::clone(text);
            *more -= 1;
            if *more == 0 {
                self.spanning.remove(&row.len());
            }
            row.push(text);
        }
    }

    /// Adds a cell.
    pub(super) fn cell(&mut self, text: &str, columns: usize, rows: usize) {
        let mut row = self.row.take().unwrap_or_default();
        self.add_spanning(&mut row);
        let text: Rc<str> = if text.len() > MAX_CELL_TEXT {
            let number = self.below.len() + 1;
            self.below.push(format!("[{number}] {text}"));
            format!("[{number}: below the table]").into()
        } else {
            one_line(text).into()
        };
        let empty: Rc<str> = "".into();
        let mut columns = columns.clamp(1, MAX_SPAN);
        if columns - 1 > self.spare {
            columns = 1;
            self.ignored_spans = true;
        }
        self.spare -= columns - 1;
        for column in 0..columns {
            if row.len() >= MAX_CELLS {
                self.dropped_columns |= column == 0;
                break;
            }
            let text = if column == 0 { &text } else { &empty };
            if rows > 1 {
                let repeated = if text.len() <= MAX_REPEATED {
                    text
                } else {
                    &empty
                };
                let more = (rows - 1).min(MAX_SPAN * 10);
                self.spanning.insert(row.len(), (Rc::clone(repeated), more));
            }
            row.push(Rc::clone(text));
        }
        self.row = Some(row);
    }

    /// Returns the lines of the table and the texts below it.
    pub(super) fn lines(mut self, max: usize) -> (Vec<String>, Vec<String>) {
        self.end_row();
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut lines = Vec::new();
        let mut bytes = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::from("|");
            // Do not pad short rows.
            for cell in row {
                line.push(' ');
                line.push_str(cell);
                line.push_str(" |");
            }
            bytes += line.len();
            if bytes > max {
                break;
            }
            lines.push(line);
            if at == 0 {
                lines.push(format!("|{}", " --- |".repeat(columns.min(MAX_CELLS))));
            }
        }
        if self.dropped_columns {
            lines.push(format!(
                "[The table has more than {MAX_CELLS} columns: the rest is left out]"
            ));
        }
        if self.ignored_spans {
            lines.push("[Too many cells of this table span several rows or columns: later ones appear only once]".to_owned());
        }
        (lines, self.below)
    }
}

/// Puts the text of a cell on one line.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for part in text.lines().map(str::trim).filter(|part| !part.is_empty()) {
        let (part, is_item) = match part.strip_prefix("- ") {
            Some(item) => (item, true),
            None => (part, false),
        };
        if !line.is_empty() {
            line.push_str(if is_item { "; " } else { " " });
        }
        line.push_str(part);
    }
    line.replace('|', "\\|")
}
