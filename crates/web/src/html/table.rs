//! Tables of data stay tables; those that only arrange a page do not.

use super::tag::Tag;
use super::tree::{Name, Tree};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A row has no more cells than that.
const MOST_CELLS: usize = 200;

/// How many cells those that count for several columns or rows may add to a page. A
/// few kilobytes that repeat themselves could ask for any number.
pub(super) const MOST_ADDED: usize = 300_000;

/// A cell that counts for several columns or rows counts for no more.
const MOST_SPAN: usize = 100;

/// Longer texts of a cell that counts for several rows stand in the first alone.
const MOST_REPEATED: usize = 80;

/// A cell with more text than that stands below its table; and a table of which every
/// fourth has so much arranges a page.
const MOST_TEXT: usize = 4000;

/// Whether a table holds data: at least two rows and two columns, and nothing in a
/// cell that needs lines of its own.
pub(super) fn is_data(tree: &Tree, table: usize) -> bool {
    if matches!(
        tree.attribute(table, Name::Role),
        Some("presentation" | "none")
    ) {
        return false;
    }
    let (mut rows, mut cells, mut widest) = (0usize, 0usize, 0usize);
    let mut text = 0;
    let (mut all, mut long) = (0usize, 0usize);
    for node in tree.within(table) {
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
                long += usize::from(text <= MOST_TEXT && text + more > MOST_TEXT);
                text += more;
            }
        }
    }
    rows >= 2 && widest >= 2 && long * 4 < all
}

/// A table of data as it is read.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<Rc<str>>>,
    row: Option<Vec<Rc<str>>>,
    /// Cells of earlier rows that count for this one and others: by column, what
    /// they say and for how many rows more.
    hanging: BTreeMap<usize, (Rc<str>, usize)>,
    /// How many cells may be added to those that are written.
    spare: usize,
    /// Whether there would have been more of them.
    is_plain: bool,
    /// Whether there were more columns than are kept.
    is_narrowed: bool,
    /// What stands below it: the cells with too much text for a line.
    below: Vec<String>,
}

impl Table {
    /// A table that may grow by so many cells.
    pub(super) fn new(spare: usize) -> Self {
        Self {
            rows: Vec::new(),
            row: None,
            hanging: BTreeMap::new(),
            spare,
            is_plain: false,
            is_narrowed: false,
            below: Vec::new(),
        }
    }

    /// How many cells are left for other tables.
    pub(super) fn spare(&self) -> usize {
        self.spare
    }

    pub(super) fn row(&mut self) {
        self.end_row();
        self.row = Some(Vec::new());
    }

    pub(super) fn end_row(&mut self) {
        if let Some(mut row) = self.row.take() {
            self.hang(&mut row);
            if row.iter().any(|cell| !cell.is_empty()) {
                self.rows.push(row);
            }
        }
    }

    /// Puts in the cells from above that come next.
    fn hang(&mut self, row: &mut Vec<Rc<str>>) {
        while let Some((text, more)) = self.hanging.get_mut(&row.len()) {
            if self.spare == 0 {
                self.hanging.clear();
                self.is_plain = true;
                return;
            }
            self.spare -= 1;
            let text = Rc::clone(text);
            *more -= 1;
            if *more == 0 {
                self.hanging.remove(&row.len());
            }
            row.push(text);
        }
    }

    /// Adds a cell with its text.
    pub(super) fn cell(&mut self, text: &str, columns: usize, rows: usize) {
        let mut row = self.row.take().unwrap_or_default();
        self.hang(&mut row);
        let text: Rc<str> = if text.len() > MOST_TEXT {
            let number = self.below.len() + 1;
            self.below.push(format!("[{number}] {text}"));
            format!("[{number}: below the table]").into()
        } else {
            one_line(text).into()
        };
        let empty: Rc<str> = "".into();
        let mut columns = columns.clamp(1, MOST_SPAN);
        if columns - 1 > self.spare {
            columns = 1;
            self.is_plain = true;
        }
        self.spare -= columns - 1;
        for column in 0..columns {
            if row.len() >= MOST_CELLS {
                self.is_narrowed |= column == 0;
                break;
            }
            let text = if column == 0 { &text } else { &empty };
            if rows > 1 {
                let repeated = if text.len() <= MOST_REPEATED {
                    text
                } else {
                    &empty
                };
                let more = (rows - 1).min(MOST_SPAN * 10);
                self.hanging.insert(row.len(), (Rc::clone(repeated), more));
            }
            row.push(Rc::clone(text));
        }
        self.row = Some(row);
    }

    /// Its lines, and what stands below them.
    pub(super) fn lines(mut self, most: usize) -> (Vec<String>, Vec<String>) {
        self.end_row();
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut lines = Vec::new();
        let mut bytes = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::from("|");
            // What is missing at the end of a row is not worth a column.
            for cell in row {
                line.push(' ');
                line.push_str(cell);
                line.push_str(" |");
            }
            bytes += line.len();
            if bytes > most {
                break;
            }
            lines.push(line);
            if at == 0 {
                lines.push(format!("|{}", " --- |".repeat(columns.min(MOST_CELLS))));
            }
        }
        if self.is_narrowed {
            lines.push(format!(
                "[The table has more than {MOST_CELLS} columns: the others are left out]"
            ));
        }
        if self.is_plain {
            lines.push("[Too many cells of this table count for several rows or columns: the later ones stand once]".to_owned());
        }
        (lines, self.below)
    }
}

/// What a cell says, on one line.
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
