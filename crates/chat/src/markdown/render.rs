//! Renders a finished block of Markdown as lines.

use super::Look;
use super::block;
use super::table::Table;
use crate::styled_text::{Line, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The next number of a list whose items arrive as separate blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbering {
    next: Option<u64>,
}

/// Margin before each row of a list item or quote.
#[derive(Debug)]
struct Margin {
    /// Used before the first row only; `rest` before the others.
    first: Option<Line>,
    rest: Line,
}

/// Renderer of a block.
pub(super) struct BlockRenderer<'a> {
    columns: usize,
    look: Look,
    numbering: &'a mut Numbering,
    lines: Vec<Line>,
    line: Line,
    margins: Vec<Margin>,
    styles: Vec<Style>,
    /// Next number of each enclosing list; `None` for bullets.
    lists: Vec<Option<u64>>,
    links: Vec<(String, String)>,
    code: Option<Code>,
    table: Option<Table>,
    /// Whether an empty line is due before the next paragraph.
    needs_gap: bool,
}

struct Code {
    block: block::Code,
    text: String,
}

impl<'a> BlockRenderer<'a> {
    pub(super) fn new(columns: usize, look: Look, numbering: &'a mut Numbering) -> Self {
        Self {
            columns,
            look,
            numbering,
            lines: Vec::new(),
            line: Line::default(),
            margins: Vec::new(),
            styles: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            needs_gap: false,
        }
    }

    pub(super) fn render(mut self, block: &str) -> Vec<Line> {
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
        let mut is_numbered = false;
        for event in Parser::new_ext(block, options) {
            is_numbered |=
                matches!(event, Event::Start(Tag::List(Some(_)))) && self.lists.is_empty();
            self.event(event);
        }
        self.end_line();
        if !is_numbered {
            *self.numbering = Numbering::default();
        }
        self.lines
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.put(&text, Style::CYAN),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.put(&text, Style::PLAIN),
            Event::FootnoteReference(name) => self.put(&format!("[^{name}]"), Style::PLAIN),
            Event::SoftBreak => self.put(" ", Style::PLAIN),
            Event::HardBreak => self.break_line(),
            Event::Rule => {
                let width = self.room().min(40);
                self.line.push(&"─".repeat(width), Style::DIM);
                self.end_line();
            }
            Event::TaskListMarker(done) => {
                let mark = match (done, self.look) {
                    (true, Look::Plain) => "[x] ",
                    (false, Look::Plain) => "[ ] ",
                    (true, _) => "☑ ",
                    (false, _) => "☐ ",
                };
                self.put(mark, Style::PLAIN);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.push_gap(),
            Tag::Heading { level, .. } => {
                let style = match (self.look, level) {
                    (Look::Plain, _) => {
                        let marks = "#".repeat(heading_depth(level));
                        self.put(&format!("{marks} "), Style::DIM);
                        Style::BOLD
                    }
                    (_, HeadingLevel::H1) => Style::BOLD.and(Style::UNDERLINED).and(Style::CYAN),
                    (_, HeadingLevel::H2) => Style::BOLD.and(Style::CYAN),
                    _ => Style::BOLD,
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.end_line();
                self.push_gap();
                self.margins.push(Margin {
                    first: None,
                    rest: Line::new("│ ", Style::DIM),
                });
            }
            Tag::CodeBlock(kind) => {
                self.end_line();
                self.push_gap();
                let name = match &kind {
                    CodeBlockKind::Fenced(name) => name,
                    CodeBlockKind::Indented => "",
                };
                let block = block::Code::new(name, self.look);
                let fenced = matches!(kind, CodeBlockKind::Fenced(_));
                if fenced && let Some(line) = block.opening(&format!("```{name}")) {
                    self.push_row(line);
                }
                self.code = Some(Code {
                    block,
                    text: if fenced {
                        "\n".to_owned()
                    } else {
                        String::new()
                    },
                });
            }
            Tag::List(start) => {
                self.end_line();
                let start = match (start, self.lists.is_empty()) {
                    (Some(own), true) => Some(self.numbering.next.unwrap_or(own)),
                    (start, _) => start,
                };
                self.lists.push(start);
                self.needs_gap = false;
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.styles.push(Style::ITALIC),
            Tag::Strong => self.styles.push(Style::BOLD),
            Tag::Strikethrough => self.styles.push(Style::STRUCK),
            Tag::Link { dest_url, .. } => {
                self.links.push((dest_url.into_string(), String::new()));
                self.styles.push(Style::UNDERLINED);
            }
            Tag::Image { dest_url, .. } => {
                self.put("[image: ", Style::DIM);
                self.links.push((dest_url.into_string(), String::new()));
                self.styles.push(Style::PLAIN);
            }
            Tag::Table(alignments) => {
                self.end_line();
                self.table = Some(Table::new(alignments));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.end_line();
                self.needs_gap = true;
            }
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
                self.needs_gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.margins.pop();
                self.needs_gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                let next = self.lists.pop().flatten();
                if self.lists.is_empty() {
                    self.numbering.next = next;
                }
            }
            TagEnd::Item => {
                self.end_line();
                self.margins.pop();
                self.needs_gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link => {
                self.styles.pop();
                self.end_link();
            }
            TagEnd::Image => {
                self.styles.pop();
                self.put("]", Style::DIM);
                self.end_link();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room()) {
                        self.line = line;
                        self.end_line();
                    }
                }
            }
            _ => {}
        }
    }

    fn item(&mut self) {
        self.end_line();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number += 1;
                marker
            }
            _ => "• ".to_owned(),
        };
        self.margins.push(Margin {
            rest: Line::plain(&" ".repeat(marker.chars().count())),
            first: Some(Line::new(&marker, Style::DIM)),
        });
        self.needs_gap = false;
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.text.push_str(text);
            return;
        }
        if let Some((_, label)) = self.links.last_mut() {
            label.push_str(text);
        }
        self.put(text, Style::PLAIN);
    }

    fn html(&mut self, text: &str) {
        for (at, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            if at > 0 {
                self.end_line();
            }
            self.put(line, Style::DIM);
        }
        if text.ends_with('\n') {
            self.end_line();
        }
    }

    fn put(&mut self, text: &str, style: Style) {
        let style = self
            .styles
            .iter()
            .fold(Style::PLAIN, |all, one| all.and(*one))
            .and(style);
        self.line.push(text, style);
    }

    fn end_link(&mut self) {
        if let Some((address, label)) = self.links.pop()
            && address != label
            && address.strip_prefix("mailto:") != Some(&label)
        {
            self.line.push(&format!(" ({address})"), Style::DIM);
        }
    }

    fn end_code(&mut self) {
        let Some(Code { mut block, text }) = self.code.take() else {
            return;
        };
        // The text of a fenced block starts with a newline.
        let (fenced, text) = match text.strip_prefix('\n') {
            Some(text) => (true, text),
            None => (false, text.as_str()),
        };
        for line in text.lines() {
            self.push_row(block.line(line));
        }
        if fenced && let Some(line) = block.closing("```") {
            self.push_row(line);
        }
        self.needs_gap = true;
    }

    /// Outputs a row that is not wrapped.
    fn push_row(&mut self, row: Line) {
        let margin = self.with_margins(Line::default());
        self.lines.push(row.with_margin(margin));
    }

    fn push_gap(&mut self) {
        if std::mem::take(&mut self.needs_gap) && !self.lines.is_empty() {
            let row = self.with_margins(Line::default());
            let is_empty = row.text().trim().is_empty();
            self.lines
                .push(if is_empty { Line::default() } else { row });
        }
    }

    fn break_line(&mut self) {
        if self.table.is_some() {
            self.put(" ", Style::PLAIN);
        } else {
            self.end_line();
        }
    }

    /// Columns that the margins leave.
    fn room(&self) -> usize {
        let margins: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        self.columns.saturating_sub(margins).max(8)
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            return;
        }
        let line = std::mem::take(&mut self.line);
        for row in line.rows(self.room()) {
            let row = self.with_margins(row);
            self.lines.push(row);
        }
    }

    /// Puts the margins before a row.
    fn with_margins(&mut self, row: Line) -> Line {
        let mut whole = Line::default();
        for margin in &mut self.margins {
            whole.append(margin.first.take().unwrap_or_else(|| margin.rest.clone()));
        }
        whole.append(row);
        whole
    }
}

fn heading_depth(level: HeadingLevel) -> usize {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
