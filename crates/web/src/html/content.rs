//! Which part of a page is what it is about, and which is the frame around it.

use super::tag::Tag;
use super::tree::{Name, Tree};

/// A part with less text than that is not what a page is about.
const LEAST: usize = 140;

/// Words of classes and ids that name a part of the frame.
const FRAME: [&str; 26] = [
    "sidebar",
    "side-bar",
    "sidenav",
    "breadcrumb",
    "breadcrumbs",
    "navbar",
    "navigation",
    "nav",
    "menu",
    "toc",
    "table-of-contents",
    "footer",
    "cookie-banner",
    "cookie-notice",
    "cookie-consent",
    "newsletter",
    "social-share",
    "share-buttons",
    "related",
    "related-posts",
    "related-articles",
    "skip-link",
    "pagination",
    "advertisement",
    "ad-banner",
    "promo",
];

/// What was found.
pub(super) struct Found {
    /// The element that is read first.
    pub(super) main: usize,
    /// Which nodes are hidden from whoever looks at the page.
    pub(super) hidden: Vec<bool>,
    /// The parts of the frame within the main part, and all that is hidden.
    pub(super) left_out: Vec<bool>,
    /// Where the parts of the frame within the main part are.
    pub(super) frames: Vec<usize>,
}

/// Weighs a page.
pub(super) fn find(tree: &Tree) -> Found {
    let hidden: Vec<bool> = (0..tree.count())
        .map(|node| is_hidden(tree, node))
        .collect();
    let weights = Weights::of(tree, &hidden);
    let body = tree.elements(Tag::Body).next().unwrap_or(0);
    let main = weights.main(tree, body);
    let mut left_out = hidden.clone();
    let mut frames = Vec::new();
    let mut at = main + 1;
    while at < tree.within(main).end {
        // What is written as one piece has no frame in it.
        let is_one = matches!(
            tree.tag(at),
            Some(Tag::Pre | Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt | Tag::Rt)
        );
        if is_one || left_out.get(at).copied().unwrap_or_default() {
            at = tree.within(at).end;
        } else if is_frame(tree, at) && !weights.is_content(at, main) {
            frames.push(at);
            if let Some(left_out) = left_out.get_mut(at) {
                *left_out = true;
            }
            at = tree.within(at).end;
        } else {
            at += 1;
        }
    }
    Found {
        main,
        hidden,
        left_out,
        frames,
    }
}

/// How much there is to read in each element.
struct Weights {
    /// Bytes of text.
    text: Vec<u32>,
    /// Those of them that are links.
    linked: Vec<u32>,
    /// How many headings of the first order.
    titles: Vec<u32>,
}

impl Weights {
    fn of(tree: &Tree, hidden: &[bool]) -> Self {
        let count = tree.count();
        let mut weights = Self {
            text: vec![0; count],
            linked: vec![0; count],
            titles: vec![0; count],
        };
        let mut at = 0;
        // Down, for what counts; then up, for the sums: who is within another comes
        // after it.
        let mut links_until = 0;
        while at < count {
            let is_silent = tree.tag(at).is_some_and(Tag::is_silent);
            if is_silent || hidden.get(at).copied().unwrap_or_default() {
                at = tree.within(at).end.max(at + 1);
                continue;
            }
            match tree.tag(at) {
                Some(Tag::A) => links_until = tree.within(at).end,
                Some(Tag::H1) => add(&mut weights.titles, at, 1),
                _ => {}
            }
            if let Some(text) = tree.text_of(at) {
                let length = u32::try_from(text.trim().len()).unwrap_or(u32::MAX);
                add(&mut weights.text, at, length);
                if at < links_until {
                    add(&mut weights.linked, at, length);
                }
            }
            at += 1;
        }
        for at in (1..count).rev() {
            let parent = tree.parent(at);
            for all in [&mut weights.text, &mut weights.linked, &mut weights.titles] {
                let own = all.get(at).copied().unwrap_or_default();
                add(all, parent, own);
            }
        }
        weights
    }

    fn text(&self, node: usize) -> usize {
        self.text.get(node).copied().unwrap_or_default() as usize
    }

    /// Text that leads nowhere else.
    fn prose(&self, node: usize) -> usize {
        self.text(node)
            .saturating_sub(self.linked.get(node).copied().unwrap_or_default() as usize)
    }

    fn titles(&self, node: usize) -> u32 {
        self.titles.get(node).copied().unwrap_or_default()
    }

    /// What is named like a part of the frame may be the page all the same.
    fn is_content(&self, node: usize, main: usize) -> bool {
        self.titles(node) > 0 || self.prose(node) * 2 > self.prose(main)
    }

    fn main(&self, tree: &Tree, body: usize) -> usize {
        let named = (0..tree.count())
            .filter(|node| {
                tree.tag(*node) == Some(Tag::Main)
                    || tree.attribute(*node, Name::Role) == Some("main")
            })
            .filter(|node| self.text(*node) >= LEAST)
            .max_by_key(|node| self.text(*node));
        let start = named
            .or_else(|| self.only_article(tree, body))
            .unwrap_or(body);
        self.narrowed(tree, start)
    }

    /// The one article of a page that has one.
    fn only_article(&self, tree: &Tree, body: usize) -> Option<usize> {
        let mut outermost = Vec::new();
        let mut at = body;
        while at < tree.within(body).end {
            if tree.tag(at) == Some(Tag::Article) {
                outermost.push(at);
                at = tree.within(at).end;
            } else {
                at += 1;
            }
        }
        match outermost.as_slice() {
            [only] if self.text(*only) >= LEAST && self.prose(*only) * 2 > self.prose(body) => {
                Some(*only)
            }
            _ => None,
        }
    }

    /// Goes inward for as long as one element has nearly all that is to be read, and
    /// the title with it.
    fn narrowed(&self, tree: &Tree, start: usize) -> usize {
        let mut main = start;
        loop {
            let whole = self.prose(main);
            if whole < LEAST {
                return main;
            }
            let mut next = None;
            let mut at = main + 1;
            let end = tree.within(main).end;
            while at < end {
                let holds = matches!(
                    tree.tag(at),
                    Some(
                        Tag::Div
                            | Tag::Section
                            | Tag::Article
                            | Tag::Main
                            | Tag::Td
                            | Tag::Tr
                            | Tag::Tbody
                            | Tag::Table
                            | Tag::Center
                            | Tag::Form
                            | Tag::Other
                    )
                );
                if holds && self.prose(at) * 10 >= whole * 8 {
                    next = Some(at);
                    break;
                }
                at = tree.within(at).end.max(at + 1);
            }
            match next {
                Some(next) if self.titles(next) == self.titles(main) => {
                    // A table of data is not a frame to look into.
                    if tree.tag(next) == Some(Tag::Table) && super::table::is_data(tree, next) {
                        return main;
                    }
                    main = next;
                }
                _ => return main,
            }
        }
    }
}

fn add(all: &mut [u32], at: usize, more: u32) {
    if let Some(own) = all.get_mut(at) {
        *own = own.saturating_add(more);
    }
}

/// Whether nobody who looks at the page sees it.
fn is_hidden(tree: &Tree, node: usize) -> bool {
    let Some(tag) = tree.tag(node) else {
        return false;
    };
    if matches!(tag, Tag::Html | Tag::Body | Tag::Main) {
        // Pages hide themselves until their scripts have run.
        return false;
    }
    if tree.attribute(node, Name::AriaHidden) == Some("true") {
        return true;
    }
    if let Some(hidden) = tree.attribute(node, Name::Hidden) {
        return !hidden.eq_ignore_ascii_case("until-found");
    }
    tree.attribute(node, Name::Style).is_some_and(|style| {
        let style: String = style
            .chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_ascii_lowercase())
            .collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    })
}

fn is_frame(tree: &Tree, node: usize) -> bool {
    let Some(tag) = tree.tag(node) else {
        return false;
    };
    if matches!(
        tag,
        Tag::Nav | Tag::Aside | Tag::Footer | Tag::Dialog | Tag::Search
    ) {
        return true;
    }
    if let Some(role) = tree.attribute(node, Name::Role) {
        let of_frame = [
            "navigation",
            "banner",
            "contentinfo",
            "complementary",
            "search",
            "dialog",
        ];
        if of_frame.contains(&role) {
            return true;
        }
    }
    if !tag.is_block() {
        return false;
    }
    let id = tree.attribute(node, Name::Id).unwrap_or_default();
    let named = |name: &str| FRAME.iter().any(|frame| name.eq_ignore_ascii_case(frame));
    named(id) || tree.classes(node).any(named)
}
