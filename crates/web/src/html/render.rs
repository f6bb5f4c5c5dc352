//! Renders elements as text, in document order.

use super::code::{self, is_line_number, longest_backtick_run};
use super::listing;
use super::table::{self, Table};
use super::tag::Tag;
use super::tree::{Attribute, Tree};
use super::writer::{MAX_BYTES, OpenSpan, Writer, is_invisible};
use std::sync::atomic::{AtomicBool, Ordering};
use url::Url;

/// Longer URLs are left out; the text of the link stays.
pub(super) const MAX_URL_BYTES: usize = 2000;

/// Longest text of a heading's permalink.
const MAX_PERMALINK_TEXT: usize = 9;

/// Renders parts of a page as text.
pub(super) struct Renderer<'a> {
    tree: &'a Tree,
    /// URL that links are resolved against. `None` if only absolute links can be used.
    base: Option<&'a Url>,
    /// For each node, whether it is left out.
    skip: &'a [bool],
    /// The text of the page, then the texts of the table cells that are open.
    writers: Vec<Writer>,
    /// Open elements: where each ends, and what to do then.
    open: Vec<(usize, End)>,
    /// Open tables (`true`) and cells (`false`). A row counts only directly inside a table: one
    /// inside a cell belongs to no table.
    grids: Vec<bool>,
    lists: Vec<Option<u64>>,
    tables: Vec<Table>,
    /// Number of cells that spans may still add.
    spare: usize,
    /// Set when the caller is gone and rendering should stop.
    stop: &'a AtomicBool,
}

/// What to do at the end of an element.
enum End {
    Nothing,
    Line,
    Block,
    /// Ends a block whose lines have a prefix.
    Prefixed,
    /// Ends a list item or a definition.
    Item,
    List,
    Around(OpenSpan, &'static str),
    Before(OpenSpan, &'static str),
    Link(OpenSpan, usize),
    Table,
    Row,
    Cell(usize),
    Quote,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        base: Option<&'a Url>,
        skip: &'a [bool],
        stop: &'a AtomicBool,
    ) -> Self {
        Self {
            tree,
            base,
            skip,
            writers: vec![Writer::new()],
            open: Vec::new(),
            grids: Vec::new(),
            lists: Vec::new(),
            tables: Vec::new(),
            spare: table::MAX_ADDED_CELLS,
            stop,
        }
    }

    /// Renders a node with everything inside it.
    pub(super) fn node(&mut self, node: usize) {
        self.writer().block();
        let end = self.tree.descendants(node).end;
        let mut at = node;
        while at < end {
            self.close_before(at);
            at = self.enter(at).max(at + 1);
            let is_full = self.writers.first().is_some_and(Writer::is_full);
            if is_full || self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        self.close_before(usize::MAX);
        self.writer().block();
    }

    pub(super) fn finish(mut self) -> String {
        self.writers.truncate(1);
        self.writers.pop().map(Writer::finish).unwrap_or_default()
    }

    fn writer(&mut self) -> &mut Writer {
        if self.writers.is_empty() {
            self.writers.push(Writer::new());
        }
        let last = self.writers.len() - 1;
        &mut self.writers[last]
    }

    fn close_before(&mut self, at: usize) {
        while let Some((end, _)) = self.open.last()
            && *end <= at
        {
            if let Some((_, what)) = self.open.pop() {
                self.leave(what);
            }
        }
    }

    /// Starts a node and returns where to continue.
    fn enter(&mut self, node: usize) -> usize {
        let end = self.tree.descendants(node).end;
        let Some(tag) = self.tree.tag(node) else {
            if let Some(text) = self.tree.text_of(node) {
                self.writer().text(text);
            }
            return end;
        };
        let is_skipped = self.skip.get(node).copied().unwrap_or_default();
        if is_skipped || tag.has_no_text() || self.tree.classes(node).any(is_line_number) {
            return end;
        }
        let what = match tag {
            Tag::Br => {
                self.writer().line();
                return end;
            }
            Tag::Hr => {
                self.writer().block();
                self.writer().verbatim("---");
                self.writer().block();
                return end;
            }
            Tag::Img => {
                self.image(node);
                return end;
            }
            Tag::Math => match self.tree.attribute(node, Attribute::Alttext) {
                Some(text) => {
                    self.writer().text(text);
                    return end;
                }
                None => End::Nothing,
            },
            Tag::Pre | Tag::Xmp | Tag::Listing | Tag::Plaintext => {
                self.code_block(node);
                return end;
            }
            Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt => {
                self.code(node);
                return end;
            }
            Tag::A => self.link(node),
            Tag::Strong | Tag::B => End::Around(self.writer().open_span(), "**"),
            Tag::Em | Tag::I => End::Around(self.writer().open_span(), "*"),
            Tag::Del | Tag::S | Tag::Strike => End::Around(self.writer().open_span(), "~~"),
            Tag::Q => End::Around(self.writer().open_span(), "\""),
            Tag::Rt => {
                let text = self.visible_line(node);
                let text: String = text.chars().filter(|c| !is_invisible(*c)).collect();
                self.writer().verbatim(&format!("({text})"));
                return end;
            }
            Tag::Sup => {
                let first = self.tree.first_character(node);
                let mark = match first.is_some_and(char::is_alphanumeric) {
                    true => "^",
                    false => "",
                };
                End::Before(self.writer().open_span(), mark)
            }
            Tag::Ul | Tag::Ol | Tag::Menu => self.list(node, tag),
            Tag::Li => self.item(),
            Tag::Dt => {
                self.writer().line();
                End::Line
            }
            Tag::Dd => {
                self.writer().line();
                self.writer().push(Some(": ".to_owned()), " ", 2);
                End::Item
            }
            Tag::Blockquote => {
                self.writer().block();
                self.writer().push(None, "> ", 1);
                End::Quote
            }
            Tag::Table => self.table(node),
            Tag::Tr if self.in_table() => {
                if let Some(table) = self.tables.last_mut() {
                    table.row();
                }
                End::Row
            }
            Tag::Td | Tag::Th if self.in_table() => {
                self.writers.push(Writer::new());
                End::Cell(node)
            }
            _ if tag.heading().is_some() => {
                let marker = "#".repeat(tag.heading().unwrap_or(1)) + " ";
                self.writer().block();
                self.writer().push(Some(marker), "", 0);
                End::Prefixed
            }
            Tag::Tr | Tag::Summary | Tag::Figcaption | Tag::Caption => {
                self.writer().line();
                End::Line
            }
            Tag::Div | Tag::Td | Tag::Th => {
                self.writer().line();
                End::Line
            }
            _ if tag.is_block() => {
                self.writer().block();
                End::Block
            }
            _ => End::Nothing,
        };
        match what {
            End::Table => self.grids.push(true),
            End::Cell(_) => self.grids.push(false),
            _ => {}
        }
        self.open.push((end, what));
        node + 1
    }

    fn leave(&mut self, what: End) {
        match what {
            End::Nothing => {}
            End::Line => self.writer().line(),
            End::Block => self.writer().block(),
            End::Prefixed | End::Quote => {
                self.writer().pop();
                self.writer().block();
            }
            End::Item => {
                self.writer().pop();
                self.writer().line();
            }
            End::List => {
                self.lists.pop();
                if self.lists.is_empty() {
                    self.writer().block();
                } else {
                    self.writer().line();
                }
            }
            End::Around(span, around) => {
                if let Some(span) = self.writer().close_span(span)
                    && !span.text().contains('\n')
                {
                    span.surround(around, around);
                }
            }
            End::Before(span, before) => {
                if let Some(span) = self.writer().close_span(span) {
                    span.surround(before, "");
                }
            }
            End::Link(span, node) => self.end_of_link(span, node),
            End::Row => {
                if let Some(table) = self.tables.last_mut() {
                    table.end_row();
                }
            }
            End::Cell(node) => {
                self.grids.pop();
                self.end_of_cell(node);
            }
            End::Table => {
                self.grids.pop();
                self.end_of_table();
            }
        }
    }

    fn image(&mut self, node: usize) {
        let alt = self
            .tree
            .attribute(node, Attribute::Alt)
            .unwrap_or_default();
        let alt = match alt.trim() {
            "" => self
                .tree
                .attribute(node, Attribute::Title)
                .unwrap_or_default(),
            alt => alt,
        };
        let alt: Vec<&str> = alt.split_whitespace().collect();
        if !alt.is_empty() {
            let text = format!("[Image: {}]", alt.join(" "));
            self.writer().text(&text);
        }
    }

    fn list(&mut self, node: usize, tag: Tag) -> End {
        if self.lists.is_empty() {
            self.writer().block();
        } else {
            self.writer().line();
        }
        let first = self.tree.attribute(node, Attribute::Start);
        let first = first.and_then(|start| start.trim().parse().ok());
        self.lists
            .push((tag == Tag::Ol).then(|| first.unwrap_or(1)));
        End::List
    }

    fn item(&mut self) -> End {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        let width = mark.len();
        self.writer().line();
        self.writer().push(Some(mark), " ", width);
        End::Item
    }

    /// Returns the text inside a node unchanged, without the parts that are left out.
    fn visible_text(&self, node: usize) -> String {
        self.visible_text_with(node, |_| None)
    }

    /// Like `visible_text`, with some text added after each link.
    fn visible_text_with(
        &self,
        node: usize,
        after_link: impl Fn(usize) -> Option<String>,
    ) -> String {
        let mut text = String::new();
        let mut pending: Option<(usize, String)> = None;
        let mut at = node + 1;
        let end = self.tree.descendants(node).end;
        while at < end {
            if let Some((_, suffix)) = pending.take_if(|(end, _)| *end <= at) {
                text.push_str(&suffix);
            }
            let tag = self.tree.tag(at);
            let is_left_out = self.skip.get(at).copied().unwrap_or_default()
                || tag.is_some_and(Tag::has_no_text)
                || self.tree.classes(at).any(is_line_number);
            if is_left_out {
                at = self.tree.descendants(at).end;
                continue;
            }
            match tag {
                Some(Tag::Br | Tag::Hr) => text.push('\n'),
                Some(Tag::A) => {
                    let inner_end = self.tree.descendants(at).end;
                    pending = after_link(at).map(|suffix| (inner_end, suffix)).or(pending);
                }
                _ => {}
            }
            text.push_str(self.tree.text_of(at).unwrap_or_default());
            at += 1;
        }
        text.push_str(&pending.map(|(_, suffix)| suffix).unwrap_or_default());
        text
    }

    /// Like `visible_text`, on one line.
    fn visible_line(&self, node: usize) -> String {
        let text = self.visible_text(node);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Renders a code block.
    fn code_block(&mut self, node: usize) {
        let code = match listing::is_listing(self.tree, node, |link| self.address(link).is_some()) {
            true => self.visible_text_with(node, |link| {
                let address = self.address(link)?;
                // Skip links that only sort the listing.
                let is_order = self.tree.attribute(link, Attribute::Href)?.starts_with('?');
                (!is_order).then(|| format!(" ({address})"))
            }),
            false => self.visible_text(node),
        };
        let code: String = code
            .replace("\r\n", "\n")
            .chars()
            .filter(|c| !is_invisible(*c))
            .map(|c| if c == '\u{a0}' { ' ' } else { c })
            .collect();
        let code = code.trim_end().trim_start_matches('\n');
        if code.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_backtick_run(code).max(2) + 1);
        let language = code::language(self.tree, node).unwrap_or_default();
        let writer = self.writer();
        writer.block();
        writer.verbatim(&format!("{fence}{language}"));
        writer.lines(code);
        writer.lines(&fence);
        writer.block();
    }

    /// Renders inline code.
    fn code(&mut self, node: usize) {
        let code = self.visible_line(node);
        let code: String = code.chars().filter(|c| !is_invisible(*c)).collect();
        if code.trim().is_empty() {
            return;
        }
        let text = match longest_backtick_run(&code) {
            0 => format!("`{code}`"),
            run => {
                let fence = "`".repeat(run + 1);
                format!("{fence} {code} {fence}")
            }
        };
        // Keep whitespace at the ends: it separates words.
        let all = self.visible_text(node);
        if all.starts_with(char::is_whitespace) {
            self.writer().text(" ");
        }
        // Keep a link if it covers all of the code.
        let link = self.tree.descendants(node).find(|inner| {
            self.tree.tag(*inner) == Some(Tag::A) && self.tree.plain_text(*inner) == code
        });
        match link.and_then(|link| self.address(link)) {
            Some(address) => self.writer().verbatim(&format!("[{text}]({address})")),
            None => self.writer().verbatim(&text),
        }
        if all.ends_with(char::is_whitespace) {
            self.writer().text(" ");
        }
    }

    fn link(&mut self, node: usize) -> End {
        // The permalink beside a heading.
        let is_sign = self
            .tree
            .attribute(node, Attribute::Href)
            .is_some_and(|href| href.contains('#'))
            && matches!(
                self.tree.short_text(node, MAX_PERMALINK_TEXT).as_deref(),
                Some("¶" | "#" | "§" | "🔗" | "\u{f0c1}" | "Anchor" | "Permalink")
            );
        if is_sign {
            // Render its text into a writer that is thrown away.
            self.writers.push(Writer::new());
            return End::Cell(usize::MAX);
        }
        match self.address(node) {
            Some(_) => End::Link(self.writer().open_span(), node),
            None => End::Nothing,
        }
    }

    /// Returns the target of a link, unless it is on the same page or not a web or mail address.
    fn address(&self, node: usize) -> Option<Url> {
        let href = self.tree.attribute(node, Attribute::Href)?.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_URL_BYTES {
            return None;
        }
        let url = match self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        let url = url.ok().filter(|url| url.as_str().len() <= MAX_URL_BYTES)?;
        matches!(url.scheme(), "http" | "https" | "mailto").then_some(url)
    }

    fn end_of_link(&mut self, span: OpenSpan, node: usize) {
        let Some(address) = self.address(node) else {
            return;
        };
        let Some(span) = self.writer().close_span(span) else {
            return;
        };
        let text = span.text();
        if is_redundant(text, &address) {
            span.replace(address.as_str());
        } else if text.contains('\n') {
            span.surround("", &format!(" ({address})"));
        } else {
            span.surround("[", &format!("]({})", escape_parentheses(&address)));
        }
    }

    fn in_table(&self) -> bool {
        self.grids.last() == Some(&true)
    }

    fn table(&mut self, node: usize) -> End {
        self.writer().block();
        if !table::is_data(self.tree, node) {
            return End::Block;
        }
        self.tables.push(Table::new(self.spare));
        End::Table
    }

    fn end_of_cell(&mut self, node: usize) {
        if self.writers.len() < 2 {
            return;
        }
        let text = self.writers.pop().map(Writer::finish).unwrap_or_default();
        if node == usize::MAX {
            return;
        }
        let span = |name| {
            let span = self.tree.attribute(node, name)?;
            span.trim().parse::<usize>().ok()
        };
        let (columns, rows) = (span(Attribute::Colspan), span(Attribute::Rowspan));
        if let Some(table) = self.tables.last_mut() {
            table.cell(&text, columns.unwrap_or(1), rows.unwrap_or(1));
        }
    }

    fn end_of_table(&mut self) {
        let Some(table) = self.tables.pop() else {
            return;
        };
        self.spare = table.spare();
        self.writer().block();
        let (lines, below) = table.lines(MAX_BYTES);
        for line in lines {
            self.writer().lines(&line);
        }
        self.writer().block();
        for text in below {
            self.writer().lines(&text);
            self.writer().block();
        }
    }
}

/// Whether a link's text is just its URL.
fn is_redundant(text: &str, address: &Url) -> bool {
    let bare = |text: &str| {
        let text = text.trim().trim_end_matches('/');
        let text = text.strip_prefix("mailto:").unwrap_or(text);
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        text.strip_prefix("www.").unwrap_or(text).to_owned()
    };
    bare(text) == bare(address.as_str())
}

/// Escapes a URL for use in parentheses.
fn escape_parentheses(address: &Url) -> String {
    address.as_str().replace('(', "%28").replace(')', "%29")
}
