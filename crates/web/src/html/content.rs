//! Separates the main content of a page from the boilerplate around it.

use super::tag::Tag;
use super::tree::{Attribute, Tree};

/// The main content has at least this many bytes of text.
const MIN_CONTENT: usize = 140;

/// Classes and ids that mark boilerplate.
const BOILERPLATE: [&str; 26] = [
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

/// The result of the analysis.
pub(super) struct Content {
    /// Element with the main content.
    pub(super) main: usize,
    /// For each node, whether it is hidden from a reader of the page.
    pub(super) hidden: Vec<bool>,
    /// For each node, whether it is left out of the main content: hidden, or boilerplate.
    pub(super) left_out: Vec<bool>,
    /// Boilerplate elements inside the main content.
    pub(super) boilerplate: Vec<usize>,
}

/// Finds the main content of a page.
pub(super) fn find(tree: &Tree) -> Content {
    let hidden: Vec<bool> = (0..tree.count())
        .map(|node| is_hidden(tree, node))
        .collect();
    let weights = Weights::of(tree, &hidden);
    let body = tree.elements(Tag::Body).next().unwrap_or(0);
    let main = weights.main(tree, body);
    let mut left_out = hidden.clone();
    let mut boilerplate = Vec::new();
    let mut at = main + 1;
    while at < tree.descendants(main).end {
        // Preformatted text and code contain no boilerplate.
        let is_one = matches!(
            tree.tag(at),
            Some(Tag::Pre | Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt | Tag::Rt)
        );
        if is_one || left_out.get(at).copied().unwrap_or_default() {
            at = tree.descendants(at).end;
        } else if is_boilerplate(tree, at) && !weights.is_content(at, main) {
            boilerplate.push(at);
            if let Some(left_out) = left_out.get_mut(at) {
                *left_out = true;
            }
            at = tree.descendants(at).end;
        } else {
            at += 1;
        }
    }
    Content {
        main,
        hidden,
        left_out,
        boilerplate,
    }
}

/// Amount of text in each element.
struct Weights {
    /// Bytes of text.
    text: Vec<u32>,
    /// Bytes of text inside links.
    linked: Vec<u32>,
    /// Number of first-level headings.
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
        // Count forwards, then sum backwards: descendants come after their ancestors.
        let mut links_until = 0;
        while at < count {
            let has_no_text = tree.tag(at).is_some_and(Tag::has_no_text);
            if has_no_text || hidden.get(at).copied().unwrap_or_default() {
                at = tree.descendants(at).end.max(at + 1);
                continue;
            }
            match tree.tag(at) {
                Some(Tag::A) => links_until = tree.descendants(at).end,
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

    /// Bytes of text outside links.
    fn prose(&self, node: usize) -> usize {
        self.text(node)
            .saturating_sub(self.linked.get(node).copied().unwrap_or_default() as usize)
    }

    fn titles(&self, node: usize) -> u32 {
        self.titles.get(node).copied().unwrap_or_default()
    }

    /// An element that is named like boilerplate may still be the content.
    fn is_content(&self, node: usize, main: usize) -> bool {
        self.titles(node) > 0 || self.prose(node) * 2 > self.prose(main)
    }

    fn main(&self, tree: &Tree, body: usize) -> usize {
        let named = (0..tree.count())
            .filter(|node| {
                tree.tag(*node) == Some(Tag::Main)
                    || tree.attribute(*node, Attribute::Role) == Some("main")
            })
            .filter(|node| self.text(*node) >= MIN_CONTENT)
            .max_by_key(|node| self.text(*node));
        let start = named
            .or_else(|| self.only_article(tree, body))
            .unwrap_or(body);
        self.narrow(tree, start)
    }

    /// Returns the article if the page has exactly one.
    fn only_article(&self, tree: &Tree, body: usize) -> Option<usize> {
        let mut outermost = Vec::new();
        let mut at = body;
        while at < tree.descendants(body).end {
            if tree.tag(at) == Some(Tag::Article) {
                outermost.push(at);
                at = tree.descendants(at).end;
            } else {
                at += 1;
            }
        }
        match outermost.as_slice() {
            [only]
                if self.text(*only) >= MIN_CONTENT && self.prose(*only) * 2 > self.prose(body) =>
            {
                Some(*only)
            }
            _ => None,
        }
    }

    /// Descends as long as one child contains nearly all the text, and all the top headings.
    fn narrow(&self, tree: &Tree, start: usize) -> usize {
        let mut main = start;
        loop {
            let total = self.prose(main);
            if total < MIN_CONTENT {
                return main;
            }
            let mut next = None;
            let mut at = main + 1;
            let end = tree.descendants(main).end;
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
                if holds && self.prose(at) * 10 >= total * 8 {
                    next = Some(at);
                    break;
                }
                at = tree.descendants(at).end.max(at + 1);
            }
            match next {
                Some(next) if self.titles(next) == self.titles(main) => {
                    // A data table is content, not layout.
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

/// Whether a reader of the page does not see an element.
fn is_hidden(tree: &Tree, node: usize) -> bool {
    let Some(tag) = tree.tag(node) else {
        return false;
    };
    if matches!(tag, Tag::Html | Tag::Body | Tag::Main) {
        // Some pages hide the whole body until their scripts have run.
        return false;
    }
    if tree.attribute(node, Attribute::AriaHidden) == Some("true") {
        return true;
    }
    if let Some(hidden) = tree.attribute(node, Attribute::Hidden) {
        return !hidden.eq_ignore_ascii_case("until-found");
    }
    tree.attribute(node, Attribute::Style).is_some_and(|style| {
        let style: String = style
            .chars()
            .filter(|c| !c.is_whitespace())
            .map(|c| c.to_ascii_lowercase())
            .collect();
        style.contains("display:none") || style.contains("visibility:hidden")
    })
}

fn is_boilerplate(tree: &Tree, node: usize) -> bool {
    let Some(tag) = tree.tag(node) else {
        return false;
    };
    if matches!(
        tag,
        Tag::Nav | Tag::Aside | Tag::Footer | Tag::Dialog | Tag::Search
    ) {
        return true;
    }
    if let Some(role) = tree.attribute(node, Attribute::Role) {
        let roles = [
            "navigation",
            "banner",
            "contentinfo",
            "complementary",
            "search",
            "dialog",
        ];
        if roles.contains(&role) {
            return true;
        }
    }
    if !tag.is_block() {
        return false;
    }
    let id = tree.attribute(node, Attribute::Id).unwrap_or_default();
    let named = |name: &str| {
        BOILERPLATE
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word))
    };
    named(id) || tree.classes(node).any(named)
}
