//! Converts HTML pages to text for a model: headings, lists, tables, code with its indentation,
//! and links with absolute URLs. The main content is kept apart from navigation and other
//! boilerplate around it.

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
pub(crate) use tree::{Attribute, Tree};
pub(crate) use writer::is_invisible;

use render::{MAX_URL_BYTES, Renderer};
use std::sync::atomic::AtomicBool;
use url::Url;

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 300;

/// A page as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Title that the page declares.
    pub title: Option<String>,
    /// The main content of the page.
    pub main: String,
    /// Everything around the main content: navigation, header, footer.
    pub rest: String,
    /// Whether the page has too many elements, so that only the beginning was read.
    pub is_truncated: bool,
}

/// A parsed page.
pub(crate) struct Page {
    tree: Tree,
    address: Url,
    /// URL that links are resolved against. `None` if it is too long, because it would be copied
    /// into every link.
    base: Option<Url>,
}

impl Page {
    pub(crate) fn parse(html: &str, address: &Url) -> Self {
        let tree = Tree::parse(html);
        let declared = tree
            .elements(Tag::Base)
            .find_map(|node| tree.attribute(node, Attribute::Href))
            .and_then(|href| address.join(href.trim()).ok())
            .filter(|base| !base.cannot_be_a_base());
        let mut base = declared.unwrap_or_else(|| address.clone());
        if base.as_str().len() > MAX_URL_BYTES {
            base.set_fragment(None);
            base.set_query(None);
        }
        Self {
            base: Some(base).filter(|base| base.as_str().len() <= MAX_URL_BYTES),
            address: address.clone(),
            tree,
        }
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the URL that links are resolved against.
    pub(crate) fn base(&self) -> &Url {
        self.base.as_ref().unwrap_or(&self.address)
    }

    pub(crate) fn title(&self) -> Option<String> {
        let title = self.tree.elements(Tag::Title).next()?;
        let title: String = self.tree.plain_text(title);
        let title: String = title
            .chars()
            .filter(|c| !is_invisible(*c))
            .take(MAX_TITLE)
            .collect();
        Some(title).filter(|title| !title.is_empty())
    }

    /// Returns the target if the page redirects with `<meta http-equiv=refresh>`.
    pub(crate) fn meta_redirect(&self) -> Option<Url> {
        self.tree.elements(Tag::Meta).find_map(|node| {
            let kind = self.tree.attribute(node, Attribute::HttpEquiv)?;
            if !kind.trim().eq_ignore_ascii_case("refresh") {
                return None;
            }
            let (_, to) = self
                .tree
                .attribute(node, Attribute::Content)?
                .split_once([';', ','])?;
            let (key, to) = to.split_once('=')?;
            if !key.trim().eq_ignore_ascii_case("url") {
                return None;
            }
            let to = self.base().join(to.trim().trim_matches(['"', '\''])).ok()?;
            // Ignore schemes that only a browser understands, such as `javascript:`.
            matches!(to.scheme(), "http" | "https").then_some(to)
        })
    }

    /// Renders the page as text, or only its beginning once `stop` is set.
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
        for node in found.boilerplate {
            rest.node(node);
        }
        Text {
            title,
            main,
            rest: rest.finish(),
            is_truncated: tree.is_truncated(),
        }
    }
}

/// Renders a page as text. Links are resolved against `address`, unless the page declares its own
/// base URL.
#[must_use]
pub fn text(html: &str, address: &Url) -> Text {
    Page::parse(html, address).text(&AtomicBool::new(false))
}
