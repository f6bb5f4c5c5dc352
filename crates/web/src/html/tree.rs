//! A page as a flat list of nodes in document order. The descendants of an element follow it
//! directly, so walking the tree is a loop without recursion, however deep elements nest.

use super::tag::Tag;
use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use std::convert::Infallible;
use std::ops::Range;

/// Maximum nesting depth. Deeper elements become siblings, as in browsers.
const MAX_DEPTH: usize = 400;

/// Maximum number of nodes. Only a page made up of tags reaches it within the size limit.
const MAX_NODES: usize = 500_000;

/// Maximum number of attributes kept per element.
const MAX_ATTRIBUTES: usize = 64;

/// The attributes that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    Href,
    Alt,
    Title,
    Class,
    Id,
    Role,
    Hidden,
    AriaHidden,
    Style,
    Colspan,
    Rowspan,
    Start,
    Alttext,
    HttpEquiv,
    Content,
    Charset,
    DataRequiresPython,
    DataYanked,
}

impl Attribute {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"href" => Self::Href,
            b"alt" => Self::Alt,
            b"title" => Self::Title,
            b"class" => Self::Class,
            b"id" => Self::Id,
            b"role" => Self::Role,
            b"hidden" => Self::Hidden,
            b"aria-hidden" => Self::AriaHidden,
            b"style" => Self::Style,
            b"colspan" => Self::Colspan,
            b"rowspan" => Self::Rowspan,
            b"start" => Self::Start,
            b"alttext" => Self::Alttext,
            b"http-equiv" => Self::HttpEquiv,
            b"content" => Self::Content,
            b"charset" => Self::Charset,
            b"data-requires-python" => Self::DataRequiresPython,
            b"data-yanked" => Self::DataYanked,
            _ => return None,
        })
    }
}

/// A range of the tree's text.
type Piece = Range<u32>;

/// An element or a piece of text.
#[derive(Debug)]
pub(crate) struct Node {
    /// Index of the containing element; the root contains itself.
    parent: u32,
    /// Index of the first node after its descendants.
    end: u32,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    /// An element, and the range of its attributes.
    Element(Tag, Range<u32>),
    Text(Piece),
}

/// A parsed page.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    attributes: Vec<(Attribute, Piece)>,
    /// All text and attribute values.
    text: String,
    /// Whether the page has more nodes than are kept.
    is_truncated: bool,
}

impl Tree {
    /// Parses a page. Never fails, however malformed the HTML is.
    pub(crate) fn parse(html: &str) -> Self {
        let mut builder = Builder::default();
        builder.open(Tag::Other);
        let mut emitter = CallbackEmitter::new(events(&mut builder));
        emitter.naively_switch_states(true);
        for _ in Tokenizer::new_with_emitter(html, emitter) {}
        builder.finish()
    }

    pub(crate) fn tag(&self, node: usize) -> Option<Tag> {
        match self.nodes.get(node)?.kind {
            NodeKind::Element(tag, _) => Some(tag),
            NodeKind::Text(_) => None,
        }
    }

    /// Number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether only the beginning of the page was read.
    pub(crate) fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the element that contains a node.
    pub(crate) fn parent(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(0, |node| node.parent as usize)
    }

    /// Returns the descendants of a node.
    pub(crate) fn descendants(&self, node: usize) -> Range<usize> {
        let end = self.nodes.get(node).map_or(node, |node| node.end as usize);
        (node + 1)..end.max(node + 1)
    }

    /// Returns the text if the node is text.
    pub(crate) fn text_of(&self, node: usize) -> Option<&str> {
        match &self.nodes.get(node)?.kind {
            NodeKind::Text(piece) => self.piece(piece),
            NodeKind::Element(..) => None,
        }
    }

    /// Returns an attribute of an element.
    pub(crate) fn attribute(&self, node: usize, name: Attribute) -> Option<&str> {
        let NodeKind::Element(_, own) = &self.nodes.get(node)?.kind else {
            return None;
        };
        let own = self.attributes.get(own.start as usize..own.end as usize)?;
        let (_, piece) = own.iter().find(|(known, _)| *known == name)?;
        self.piece(piece)
    }

    /// Returns the classes of an element.
    pub(crate) fn classes(&self, node: usize) -> impl Iterator<Item = &str> {
        let class = self.attribute(node, Attribute::Class).unwrap_or_default();
        class.split_ascii_whitespace()
    }

    pub(crate) fn has_class(&self, node: usize, name: &str) -> bool {
        self.classes(node).any(|class| class == name)
    }

    /// Returns all text inside a node, unchanged.
    pub(crate) fn all_text(&self, node: usize) -> String {
        self.descendants(node)
            .filter_map(|inner| self.text_of(inner))
            .collect()
    }

    /// Returns all text inside a node with whitespace collapsed.
    pub(crate) fn plain_text(&self, node: usize) -> String {
        let all = self.all_text(node);
        all.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Like `plain_text`, but returns `None` as soon as there are more than `max` bytes.
    pub(crate) fn short_text(&self, node: usize, max: usize) -> Option<String> {
        let mut all = String::new();
        let mut needs_space = false;
        for text in self
            .descendants(node)
            .filter_map(|inner| self.text_of(inner))
        {
            needs_space |= text.starts_with(char::is_whitespace);
            for word in text.split_whitespace() {
                if needs_space && !all.is_empty() {
                    all.push(' ');
                }
                if all.len() + word.len() > max {
                    return None;
                }
                all.push_str(word);
                needs_space = true;
            }
            let is_blank = text.trim_start().is_empty();
            needs_space = needs_space && is_blank || text.ends_with(char::is_whitespace);
        }
        Some(all)
    }

    /// Returns the first character inside a node that is not whitespace.
    pub(crate) fn first_character(&self, node: usize) -> Option<char> {
        self.descendants(node)
            .filter_map(|inner| self.text_of(inner))
            .find_map(|text| text.trim_start().chars().next())
    }

    /// Returns the elements with a tag, in document order.
    pub(crate) fn elements(&self, tag: Tag) -> impl Iterator<Item = usize> {
        (0..self.count()).filter(move |node| self.tag(*node) == Some(tag))
    }

    fn piece(&self, piece: &Piece) -> Option<&str> {
        self.text.get(piece.start as usize..piece.end as usize)
    }

    fn store(&mut self, bytes: &[u8]) -> Piece {
        // The tokenizer passes on the input, which was valid UTF-8, in whole characters.
        let start = self.text.len();
        self.text.push_str(&String::from_utf8_lossy(bytes));
        number(start)..number(self.text.len())
    }
}

/// Converts an index. Pages are a few megabytes, so it always fits.
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

struct Builder {
    tree: Tree,
    /// Open elements, outermost first.
    open: Vec<(usize, Tag)>,
    /// Number of open elements per tag, so that a stray end tag costs nothing.
    counts: [u32; Tag::COUNT],
    /// Attribute whose value comes next.
    pending_attribute: Option<Attribute>,
    /// Attributes of the tag that is being read.
    own: Vec<(Attribute, Piece)>,
    tag: Tag,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            tree: Tree::default(),
            open: Vec::new(),
            counts: [0; Tag::COUNT],
            pending_attribute: None,
            own: Vec::new(),
            tag: Tag::Other,
        }
    }
}

struct Events<'a>(&'a mut Builder);

fn events(builder: &mut Builder) -> Events<'_> {
    Events(builder)
}

impl Callback<Infallible, ()> for Events<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        let builder = &mut *self.0;
        match event {
            CallbackEvent::OpenStartTag { name } => {
                builder.tag = Tag::of(name);
                builder.own.clear();
                builder.pending_attribute = None;
            }
            CallbackEvent::AttributeName { name } => {
                builder.pending_attribute = Attribute::of(name);
                if let Some(name) = builder.pending_attribute
                    && builder.own.len() < MAX_ATTRIBUTES
                    && !builder.own.iter().any(|(known, _)| *known == name)
                {
                    builder.own.push((name, 0..0));
                } else {
                    builder.pending_attribute = None;
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(pending_attribute) = builder.pending_attribute
                    && let Some((name, piece)) = builder.own.last_mut()
                    && *name == pending_attribute
                {
                    let value = builder.tree.store(value);
                    // A value may arrive in several chunks.
                    *piece = if piece.end == value.start && piece.start < piece.end {
                        piece.start..value.end
                    } else {
                        value
                    };
                }
            }
            CallbackEvent::CloseStartTag { self_closing } => {
                let tag = builder.tag;
                builder.begin(tag);
                // HTML ignores `/>` except in SVG and MathML; unknown elements may belong to
                // those.
                if self_closing && matches!(tag, Tag::Svg | Tag::Path | Tag::Math | Tag::Other) {
                    builder.close();
                }
            }
            CallbackEvent::EndTag { name } => {
                builder.own.clear();
                builder.pending_attribute = None;
                builder.end(Tag::of(name));
            }
            CallbackEvent::String { value } => builder.text(value),
            CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
        None
    }
}

impl Builder {
    fn text(&mut self, value: &[u8]) {
        if self.has_room() {
            let piece = self.tree.store(value);
            self.node(NodeKind::Text(piece));
        }
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.tree.nodes.len() < MAX_NODES;
        self.tree.is_truncated |= !has_room;
        has_room
    }

    fn node(&mut self, kind: NodeKind) -> usize {
        let at = self.tree.nodes.len();
        self.tree.nodes.push(Node {
            parent: self.open.last().map_or(0, |(parent, _)| number(*parent)),
            end: number(at + 1),
            kind,
        });
        at
    }

    fn open(&mut self, tag: Tag) {
        let start = number(self.tree.attributes.len());
        self.tree.attributes.append(&mut self.own);
        let own = start..number(self.tree.attributes.len());
        let node = self.node(NodeKind::Element(tag, own));
        if !tag.is_void() {
            self.open.push((node, tag));
            if let Some(count) = self.counts.get_mut(tag as usize) {
                *count += 1;
            }
        }
    }

    /// Closes the innermost element.
    fn close(&mut self) {
        if self.open.len() <= 1 {
            return;
        }
        let end = self.tree.nodes.len();
        if let Some((node, tag)) = self.open.pop() {
            if let Some(node) = self.tree.nodes.get_mut(node) {
                node.end = number(end);
            }
            if let Some(count) = self.counts.get_mut(tag as usize) {
                *count = count.saturating_sub(1);
            }
        }
    }

    fn begin(&mut self, tag: Tag) {
        use Tag::{
            Body, Caption, Colgroup, Dd, Dl, Dt, Head, Html, Li, Menu, Ol, Optgroup, Option, P,
            Select, Table, Tbody, Td, Tfoot, Th, Thead, Tr, Ul,
        };
        // A page inside a page: ignore its html and body elements.
        if matches!(tag, Html | Body) && self.is_open(tag) || !self.has_room() {
            return;
        }
        match tag {
            Li => self.close_if_open(&[Li], &[Ul, Ol, Menu]),
            Dt | Dd => self.close_if_open(&[Dt, Dd], &[Dl]),
            Td | Th => self.close_if_open(&[Td, Th], &[Tr, Table]),
            Tr => self.close_if_open(&[Tr], &[Table]),
            Thead | Tbody | Tfoot => {
                self.close_if_open(&[Thead, Tbody, Tfoot, Caption, Colgroup], &[Table]);
            }
            Option => self.close_if_open(&[Option], &[Select, Optgroup]),
            Tag::A => self.close_if_open(&[Tag::A], &[Td, Th, Table]),
            Body => self.close_if_open(&[Head], &[]),
            // Visible content starts here, even if the head was not closed.
            _ if tag.is_block() && self.is_open(Head) => self.close_if_open(&[Head], &[]),
            _ => {}
        }
        if tag.is_block() && tag != Li {
            self.close_if_open(&[P], &[Td, Th, Table, Li, Dd, Tag::Blockquote, Tag::Div]);
        }
        if self.open.len() >= MAX_DEPTH {
            self.close();
        }
        self.open(tag);
    }

    fn is_open(&self, tag: Tag) -> bool {
        self.counts
            .get(tag as usize)
            .is_some_and(|count| *count > 0)
    }

    /// Closes the innermost of these elements with everything inside it, unless one of the
    /// barriers is in between.
    fn close_if_open(&mut self, tags: &[Tag], barriers: &[Tag]) {
        if !tags.iter().any(|tag| self.is_open(*tag)) {
            return;
        }
        let mut found = None;
        for (at, (_, open)) in self.open.iter().enumerate().rev() {
            if tags.contains(open) {
                found = Some(at);
                break;
            }
            if barriers.contains(open) {
                break;
            }
        }
        if let Some(at) = found {
            while self.open.len() > at.max(1) {
                self.close();
            }
        }
    }

    fn end(&mut self, tag: Tag) {
        use Tag::{Body, Div, Html, Li, Ol, P, Table, Td, Th, Ul};
        if tag == P && !self.is_open(P) {
            return;
        }
        // Content after the end of the page still belongs to it.
        if matches!(tag, Html | Body) {
            return;
        }
        let barriers: &[Tag] = match tag {
            Table => &[],
            Li => &[Ul, Ol],
            // A stray end tag inside a cell does not end the table.
            Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot => &[Table],
            Td | Th => &[Table],
            // A stray inline end tag does not close a block.
            tag if !tag.is_block() && tag != Tag::Other => &[Td, Th, Table, Div, Li],
            _ => &[Td, Th, Table],
        };
        self.close_if_open(&[tag], barriers);
    }

    fn finish(mut self) -> Tree {
        let end = self.tree.nodes.len();
        for (node, _) in self.open.drain(..) {
            if let Some(node) = self.tree.nodes.get_mut(node) {
                node.end = number(end);
            }
        }
        self.tree
    }
}
