//! A page as a flat list of nodes in the order of the document. What is in an
//! element follows it without a gap, so walking is counting, and however deep
//! elements nest, nothing calls itself.

use super::tag::Tag;
use html5gum::emitters::callback::{Callback, CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use std::convert::Infallible;
use std::ops::Range;

/// Elements within elements beyond that are taken for neighbours, as browsers do.
const DEEPEST: usize = 400;

/// A page of the size that is fetched has less than that. One that is all tags could
/// have many more.
const MOST_NODES: usize = 500_000;

/// Attributes of one element beyond that are not kept.
const MOST_ATTRIBUTES: usize = 64;

/// The attributes that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
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

impl Name {
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

/// A piece of the tree's text.
type Piece = Range<u32>;

/// One node.
#[derive(Debug)]
pub(crate) struct Node {
    /// The element it is in; itself for the first.
    parent: u32,
    /// The number of the first node that is not in it.
    end: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// An element, and which attributes are its own.
    Element(Tag, Range<u32>),
    Text(Piece),
}

/// A page.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    attributes: Vec<(Name, Piece)>,
    /// All text and all values of attributes.
    text: String,
    /// Whether there was more than is kept of a page.
    is_cut: bool,
}

impl Tree {
    /// Reads a page. Every text is one, whatever is wrong with it.
    pub(crate) fn parse(html: &str) -> Self {
        let mut builder = Builder::default();
        builder.open(Tag::Other);
        let mut emitter = CallbackEmitter::new(builder_of(&mut builder));
        emitter.naively_switch_states(true);
        for _ in Tokenizer::new_with_emitter(html, emitter) {}
        builder.finish()
    }

    pub(crate) fn tag(&self, node: usize) -> Option<Tag> {
        match self.nodes.get(node)?.kind {
            Kind::Element(tag, _) => Some(tag),
            Kind::Text(_) => None,
        }
    }

    /// How many nodes there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it is only the beginning of the page.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The element that a node is in.
    pub(crate) fn parent(&self, node: usize) -> usize {
        self.nodes.get(node).map_or(0, |node| node.parent as usize)
    }

    /// The nodes within one, itself not among them.
    pub(crate) fn within(&self, node: usize) -> Range<usize> {
        let end = self.nodes.get(node).map_or(node, |node| node.end as usize);
        (node + 1)..end.max(node + 1)
    }

    /// The text of a node that is text.
    pub(crate) fn text_of(&self, node: usize) -> Option<&str> {
        match &self.nodes.get(node)?.kind {
            Kind::Text(piece) => self.piece(piece),
            Kind::Element(..) => None,
        }
    }

    /// An attribute of an element.
    pub(crate) fn attribute(&self, node: usize, name: Name) -> Option<&str> {
        let Kind::Element(_, own) = &self.nodes.get(node)?.kind else {
            return None;
        };
        let own = self.attributes.get(own.start as usize..own.end as usize)?;
        let (_, piece) = own.iter().find(|(known, _)| *known == name)?;
        self.piece(piece)
    }

    /// The words of its class.
    pub(crate) fn classes(&self, node: usize) -> impl Iterator<Item = &str> {
        let class = self.attribute(node, Name::Class).unwrap_or_default();
        class.split_ascii_whitespace()
    }

    pub(crate) fn has_class(&self, node: usize, name: &str) -> bool {
        self.classes(node).any(|class| class == name)
    }

    /// Everything that is text within a node, as it is written.
    pub(crate) fn all_text(&self, node: usize) -> String {
        self.within(node)
            .filter_map(|inner| self.text_of(inner))
            .collect()
    }

    /// The same with all blanks as one.
    pub(crate) fn plain_text(&self, node: usize) -> String {
        let all = self.all_text(node);
        all.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The same of a node that has no more text than that, in bytes; nothing of others,
    /// which are not read to their end.
    pub(crate) fn short_text(&self, node: usize, most: usize) -> Option<String> {
        let mut all = String::new();
        let mut is_apart = false;
        for text in self.within(node).filter_map(|inner| self.text_of(inner)) {
            is_apart |= text.starts_with(char::is_whitespace);
            for word in text.split_whitespace() {
                if is_apart && !all.is_empty() {
                    all.push(' ');
                }
                if all.len() + word.len() > most {
                    return None;
                }
                all.push_str(word);
                is_apart = true;
            }
            let is_blank = text.trim_start().is_empty();
            is_apart = is_apart && is_blank || text.ends_with(char::is_whitespace);
        }
        Some(all)
    }

    /// The first character within a node that is not blank.
    pub(crate) fn first_character(&self, node: usize) -> Option<char> {
        self.within(node)
            .filter_map(|inner| self.text_of(inner))
            .find_map(|text| text.trim_start().chars().next())
    }

    /// The elements of a kind, in order.
    pub(crate) fn elements(&self, wanted: Tag) -> impl Iterator<Item = usize> {
        (0..self.count()).filter(move |node| self.tag(*node) == Some(wanted))
    }

    fn piece(&self, piece: &Piece) -> Option<&str> {
        self.text.get(piece.start as usize..piece.end as usize)
    }

    fn keep(&mut self, bytes: &[u8]) -> Piece {
        // The reader hands on what it got, which was text, in whole characters.
        let start = self.text.len();
        self.text.push_str(&String::from_utf8_lossy(bytes));
        number(start)..number(self.text.len())
    }
}

/// Pages are a few megabytes at most.
fn number(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

struct Builder {
    tree: Tree,
    /// The elements that are open, the outermost first.
    open: Vec<(usize, Tag)>,
    /// How many of each kind are open, so that an end without a beginning costs
    /// nothing.
    counts: [u32; Tag::COUNT],
    /// The attribute whose value comes next.
    awaited: Option<Name>,
    /// The attributes of the tag that is being read.
    own: Vec<(Name, Piece)>,
    tag: Tag,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            tree: Tree::default(),
            open: Vec::new(),
            counts: [0; Tag::COUNT],
            awaited: None,
            own: Vec::new(),
            tag: Tag::Other,
        }
    }
}

struct Events<'a>(&'a mut Builder);

fn builder_of(builder: &mut Builder) -> Events<'_> {
    Events(builder)
}

impl Callback<Infallible, ()> for Events<'_> {
    fn handle_event(&mut self, event: CallbackEvent<'_>, _: Span<()>) -> Option<Infallible> {
        let builder = &mut *self.0;
        match event {
            CallbackEvent::OpenStartTag { name } => {
                builder.tag = Tag::of(name);
                builder.own.clear();
                builder.awaited = None;
            }
            CallbackEvent::AttributeName { name } => {
                builder.awaited = Name::of(name);
                if let Some(name) = builder.awaited
                    && builder.own.len() < MOST_ATTRIBUTES
                    && !builder.own.iter().any(|(known, _)| *known == name)
                {
                    builder.own.push((name, 0..0));
                } else {
                    builder.awaited = None;
                }
            }
            CallbackEvent::AttributeValue { value } => {
                if let Some(awaited) = builder.awaited
                    && let Some((name, piece)) = builder.own.last_mut()
                    && *name == awaited
                {
                    let value = builder.tree.keep(value);
                    // A value may come in several pieces.
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
                // Only drawings and what nobody knows end so.
                if self_closing && matches!(tag, Tag::Svg | Tag::Path | Tag::Math | Tag::Other) {
                    builder.close();
                }
            }
            CallbackEvent::EndTag { name } => {
                builder.own.clear();
                builder.awaited = None;
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
            let piece = self.tree.keep(value);
            self.node(Kind::Text(piece));
        }
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.tree.nodes.len() < MOST_NODES;
        self.tree.is_cut |= !has_room;
        has_room
    }

    fn node(&mut self, kind: Kind) -> usize {
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
        let node = self.node(Kind::Element(tag, own));
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
        // A page may hold pages: their frame says nothing.
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
            // What is read begins here, whether the head was closed or not.
            _ if tag.is_block() && self.is_open(Head) => self.close_if_open(&[Head], &[]),
            _ => {}
        }
        if tag.is_block() && tag != Li {
            self.close_if_open(&[P], &[Td, Th, Table, Li, Dd, Tag::Blockquote, Tag::Div]);
        }
        if self.open.len() >= DEEPEST {
            self.close();
        }
        self.open(tag);
    }

    fn is_open(&self, tag: Tag) -> bool {
        self.counts
            .get(tag as usize)
            .is_some_and(|count| *count > 0)
    }

    /// Closes the innermost of these elements with all that is in it, unless one of
    /// the others is between.
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
        // What follows the end of a page still belongs to it.
        if matches!(tag, Html | Body) {
            return;
        }
        let barriers: &[Tag] = match tag {
            Table => &[],
            Li => &[Ul, Ol],
            // A cell holds its own: a stray end in it does not end the table.
            Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot => &[Table],
            Td | Th => &[Table],
            // An end of something inline that was never closed closes no block.
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
