//! Pages as text that a model can use: headings, lists, tables, code with its
//! indentation, links with whole addresses; what the page is about first, and the
//! frame around it apart.

mod code;
mod content;
mod listing;
mod render;
mod table;
mod tag;
#[cfg(test)]
mod tests;
mod tree;
mod writer;

pub(crate) use tag::Tag;
pub(crate) use tree::{Name, Tree};
pub(crate) use writer::is_unseen;

use render::{LONGEST_LINK, Renderer};
use std::sync::atomic::AtomicBool;
use url::Url;

/// The longest title, in characters.
const LONGEST_TITLE: usize = 300;

/// A page in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// What the page calls itself.
    pub title: Option<String>,
    /// What it is about.
    pub main: String,
    /// What stands around that: navigation, header, footer.
    pub rest: String,
    /// Whether there is more on the page than was read: it is all tags.
    pub is_cut: bool,
}

/// A page, before it is put into words.
pub(crate) struct Page {
    tree: Tree,
    address: Url,
    /// What links are read against. A very long one would be copied for every link.
    base: Option<Url>,
}

impl Page {
    pub(crate) fn parse(html: &str, address: &Url) -> Self {
        let tree = Tree::parse(html);
        let own = tree
            .elements(Tag::Base)
            .find_map(|node| tree.attribute(node, Name::Href))
            .and_then(|href| address.join(href.trim()).ok())
            .filter(|base| !base.cannot_be_a_base());
        let mut base = own.unwrap_or_else(|| address.clone());
        if base.as_str().len() > LONGEST_LINK {
            base.set_fragment(None);
            base.set_query(None);
        }
        Self {
            base: Some(base).filter(|base| base.as_str().len() <= LONGEST_LINK),
            address: address.clone(),
            tree,
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The address that links are resolved against.
    pub(crate) fn base(&self) -> &Url {
        self.base.as_ref().unwrap_or(&self.address)
    }

    pub(crate) fn title(&self) -> Option<String> {
        let title = self.tree.elements(Tag::Title).next()?;
        let title: String = self.tree.plain_text(title);
        let title: String = title
            .chars()
            .filter(|c| !is_unseen(*c))
            .take(LONGEST_TITLE)
            .collect();
        Some(title).filter(|title| !title.is_empty())
    }

    /// Where the page sends whoever reads it, in place of something to read.
    pub(crate) fn forwards_to(&self) -> Option<Url> {
        self.tree.elements(Tag::Meta).find_map(|node| {
            let kind = self.tree.attribute(node, Name::HttpEquiv)?;
            if !kind.trim().eq_ignore_ascii_case("refresh") {
                return None;
            }
            let (_, to) = self
                .tree
                .attribute(node, Name::Content)?
                .split_once([';', ','])?;
            let (key, to) = to.split_once('=')?;
            if !key.trim().eq_ignore_ascii_case("url") {
                return None;
            }
            let to = self.base().join(to.trim().trim_matches(['"', '\''])).ok()?;
            // What only a browser can do is nowhere to go.
            matches!(to.scheme(), "http" | "https").then_some(to)
        })
    }

    /// All of it, or how it begins once `stop` is set.
    pub(crate) fn text(&self, stop: &AtomicBool) -> Text {
        let tree = &self.tree;
        let found = content::find(tree);
        let mut main = Renderer::new(tree, self.base.as_ref(), &found.left_out, stop);
        main.node(found.main);
        let mut main = main.finish();
        let title = self.title();
        let has_heading = main.starts_with("# ") || main.contains("\n# ");
        if let Some(title) = title.as_ref().filter(|_| !has_heading && !main.is_empty()) {
            main.insert_str(0, &format!("# {title}\n\n"));
        }
        let mut around = found.hidden;
        if let Some(around) = around.get_mut(found.main) {
            *around = true;
        }
        let body = tree.elements(Tag::Body).next().unwrap_or(0);
        let mut rest = Renderer::new(tree, self.base.as_ref(), &around, stop);
        if found.main != body {
            rest.node(body);
        }
        for frame in found.frames {
            rest.node(frame);
        }
        Text {
            title,
            main,
            rest: rest.finish(),
            is_cut: tree.is_cut(),
        }
    }
}

/// Puts a page into words. Links are resolved against `address`, or what the page
/// itself names as its base.
#[must_use]
pub fn text(html: &str, address: &Url) -> Text {
    Page::parse(html, address).text(&AtomicBool::new(false))
}
