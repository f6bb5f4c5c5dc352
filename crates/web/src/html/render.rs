//! From elements to text, in the order of the document.

use super::code::{self, is_line_number, longest_run};
use super::listing;
use super::table::{self, Table};
use super::tag::Tag;
use super::tree::{Name, Tree};
use super::writer::{MOST, Mark, Writer, is_unseen};
use std::sync::atomic::{AtomicBool, Ordering};
use url::Url;

/// Addresses longer than that are left out; their text stays.
pub(super) const LONGEST_LINK: usize = 2000;

/// The longest sign by which one links to a heading.
const LONGEST_SIGN: usize = 9;

/// Puts parts of a page into words.
pub(super) struct Renderer<'a> {
    tree: &'a Tree,
    /// What links are read against; nothing where only whole addresses count.
    base: Option<&'a Url>,
    /// Which nodes are left out.
    skip: &'a [bool],
    /// Where text goes: the page, and within it the cell that is being read.
    writers: Vec<Writer>,
    /// The elements that are open, and what to do at their ends.
    open: Vec<(usize, End)>,
    /// Of these the tables and the cells, and whether each is a table: a cell may hold
    /// what looks like a row, and it would be nobody's.
    grids: Vec<bool>,
    lists: Vec<Option<u64>>,
    tables: Vec<Table>,
    /// How many cells tables may still add.
    spare: usize,
    /// Set when nobody waits for the text any more.
    stop: &'a AtomicBool,
}

/// What the end of an element means.
enum End {
    Nothing,
    Line,
    Block,
    /// A block whose lines began with something.
    Prefixed,
    /// An item of a list, or a term.
    Item,
    List,
    Around(Mark, &'static str),
    Before(Mark, &'static str),
    Link(Mark, usize),
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
            spare: table::MOST_ADDED,
            stop,
        }
    }

    /// Adds a node with all that is in it.
    pub(super) fn node(&mut self, node: usize) {
        self.writer().block();
        let end = self.tree.within(node).end;
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

    /// Begins a node, and says where to go on.
    fn enter(&mut self, node: usize) -> usize {
        let end = self.tree.within(node).end;
        let Some(tag) = self.tree.tag(node) else {
            if let Some(text) = self.tree.text_of(node) {
                self.writer().text(text);
            }
            return end;
        };
        let is_skipped = self.skip.get(node).copied().unwrap_or_default();
        if is_skipped || tag.is_silent() || self.tree.classes(node).any(is_line_number) {
            return end;
        }
        let what = match tag {
            Tag::Br => {
                self.writer().line();
                return end;
            }
            Tag::Hr => {
                self.writer().block();
                self.writer().exact("---");
                self.writer().block();
                return end;
            }
            Tag::Img => {
                self.image(node);
                return end;
            }
            Tag::Math => match self.tree.attribute(node, Name::Alttext) {
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
            Tag::Strong | Tag::B => End::Around(self.writer().mark(), "**"),
            Tag::Em | Tag::I => End::Around(self.writer().mark(), "*"),
            Tag::Del | Tag::S | Tag::Strike => End::Around(self.writer().mark(), "~~"),
            Tag::Q => End::Around(self.writer().mark(), "\""),
            Tag::Rt => {
                let text = self.seen_words(node);
                let text: String = text.chars().filter(|c| !is_unseen(*c)).collect();
                self.writer().exact(&format!("({text})"));
                return end;
            }
            Tag::Sup => {
                let first = self.tree.first_character(node);
                let mark = match first.is_some_and(char::is_alphanumeric) {
                    true => "^",
                    false => "",
                };
                End::Before(self.writer().mark(), mark)
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
                let marks = "#".repeat(tag.heading().unwrap_or(1)) + " ";
                self.writer().block();
                self.writer().push(Some(marks), "", 0);
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
            End::Around(mark, around) => {
                if let Some(marked) = self.writer().marked(mark)
                    && !marked.text().contains('\n')
                {
                    marked.surround(around, around);
                }
            }
            End::Before(mark, before) => {
                if let Some(marked) = self.writer().marked(mark) {
                    marked.surround(before, "");
                }
            }
            End::Link(mark, node) => self.end_of_link(mark, node),
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
        let alt = self.tree.attribute(node, Name::Alt).unwrap_or_default();
        let alt = match alt.trim() {
            "" => self.tree.attribute(node, Name::Title).unwrap_or_default(),
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
        let first = self.tree.attribute(node, Name::Start);
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

    /// The text within a node as it is written, but for what is left out.
    fn seen_text(&self, node: usize) -> String {
        self.seen_text_and(node, |_| None)
    }

    /// The same with something beside each link.
    fn seen_text_and(&self, node: usize, beside: impl Fn(usize) -> Option<String>) -> String {
        let mut text = String::new();
        let mut pending: Option<(usize, String)> = None;
        let mut at = node + 1;
        let end = self.tree.within(node).end;
        while at < end {
            if let Some((_, words)) = pending.take_if(|(end, _)| *end <= at) {
                text.push_str(&words);
            }
            let tag = self.tree.tag(at);
            let is_left_out = self.skip.get(at).copied().unwrap_or_default()
                || tag.is_some_and(Tag::is_silent)
                || self.tree.classes(at).any(is_line_number);
            if is_left_out {
                at = self.tree.within(at).end;
                continue;
            }
            match tag {
                Some(Tag::Br | Tag::Hr) => text.push('\n'),
                Some(Tag::A) => {
                    let inner_end = self.tree.within(at).end;
                    pending = beside(at).map(|words| (inner_end, words)).or(pending);
                }
                _ => {}
            }
            text.push_str(self.tree.text_of(at).unwrap_or_default());
            at += 1;
        }
        text.push_str(&pending.map(|(_, words)| words).unwrap_or_default());
        text
    }

    /// The same on one line.
    fn seen_words(&self, node: usize) -> String {
        let text = self.seen_text(node);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Lines of code, as they are.
    fn code_block(&mut self, node: usize) {
        let code = match listing::is(self.tree, node, |link| self.address(link).is_some()) {
            true => self.seen_text_and(node, |link| {
                let address = self.address(link)?;
                // Links that only sort the list lead nowhere else.
                let is_order = self.tree.attribute(link, Name::Href)?.starts_with('?');
                (!is_order).then(|| format!(" ({address})"))
            }),
            false => self.seen_text(node),
        };
        let code: String = code
            .replace("\r\n", "\n")
            .chars()
            .filter(|c| !is_unseen(*c))
            .map(|c| if c == '\u{a0}' { ' ' } else { c })
            .collect();
        let code = code.trim_end().trim_start_matches('\n');
        if code.is_empty() {
            return;
        }
        let fence = "`".repeat(longest_run(code).max(2) + 1);
        let language = code::language(self.tree, node).unwrap_or_default();
        let writer = self.writer();
        writer.block();
        writer.exact(&format!("{fence}{language}"));
        writer.lines(code);
        writer.lines(&fence);
        writer.block();
    }

    /// Code within a line.
    fn code(&mut self, node: usize) {
        let code = self.seen_words(node);
        let code: String = code.chars().filter(|c| !is_unseen(*c)).collect();
        if code.trim().is_empty() {
            return;
        }
        let text = match longest_run(&code) {
            0 => format!("`{code}`"),
            run => {
                let fence = "`".repeat(run + 1);
                format!("{fence} {code} {fence}")
            }
        };
        // Blanks at its ends are blanks between words.
        let all = self.seen_text(node);
        if all.starts_with(char::is_whitespace) {
            self.writer().text(" ");
        }
        // What all of it leads to is kept.
        let link = self.tree.within(node).find(|inner| {
            self.tree.tag(*inner) == Some(Tag::A) && self.tree.plain_text(*inner) == code
        });
        match link.and_then(|link| self.address(link)) {
            Some(address) => self.writer().exact(&format!("[{text}]({address})")),
            None => self.writer().exact(&text),
        }
        if all.ends_with(char::is_whitespace) {
            self.writer().text(" ");
        }
    }

    fn link(&mut self, node: usize) -> End {
        // The sign beside a heading by which one links to it.
        let is_sign = self
            .tree
            .attribute(node, Name::Href)
            .is_some_and(|href| href.contains('#'))
            && matches!(
                self.tree.short_text(node, LONGEST_SIGN).as_deref(),
                Some("¶" | "#" | "§" | "🔗" | "\u{f0c1}" | "Anchor" | "Permalink")
            );
        if is_sign {
            // Its text is written in a place that nobody reads.
            self.writers.push(Writer::new());
            return End::Cell(usize::MAX);
        }
        match self.address(node) {
            Some(_) => End::Link(self.writer().mark(), node),
            None => End::Nothing,
        }
    }

    /// Where a link leads; nothing for places on the same page and for what is no
    /// address of the web.
    fn address(&self, node: usize) -> Option<Url> {
        let href = self.tree.attribute(node, Name::Href)?.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > LONGEST_LINK {
            return None;
        }
        let url = match self.base {
            Some(base) => base.join(href),
            None => Url::parse(href),
        };
        let url = url.ok().filter(|url| url.as_str().len() <= LONGEST_LINK)?;
        matches!(url.scheme(), "http" | "https" | "mailto").then_some(url)
    }

    fn end_of_link(&mut self, mark: Mark, node: usize) {
        let Some(address) = self.address(node) else {
            return;
        };
        let Some(marked) = self.writer().marked(mark) else {
            return;
        };
        let text = marked.text();
        if is_same(text, &address) {
            marked.replace(address.as_str());
        } else if text.contains('\n') {
            marked.surround("", &format!(" ({address})"));
        } else {
            marked.surround("[", &format!("]({})", in_brackets(&address)));
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
            let given = self.tree.attribute(node, name)?;
            given.trim().parse::<usize>().ok()
        };
        let (columns, rows) = (span(Name::Colspan), span(Name::Rowspan));
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
        let (lines, below) = table.lines(MOST);
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

/// Whether a text says nothing that the address does not.
fn is_same(text: &str, address: &Url) -> bool {
    let bare = |text: &str| {
        let text = text.trim().trim_end_matches('/');
        let text = text.strip_prefix("mailto:").unwrap_or(text);
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        text.strip_prefix("www.").unwrap_or(text).to_owned()
    };
    bare(text) == bare(address.as_str())
}

/// An address within round brackets.
fn in_brackets(address: &Url) -> String {
    address.as_str().replace('(', "%28").replace(')', "%29")
}
