//! Directory listings of web servers: a preformatted block in which each line starts with a link
//! whose text may be truncated.

use super::tag::Tag;
use super::tree::Tree;

/// Whether most lines of a block start with a link. In code, hardly any do.
pub(super) fn is_listing(tree: &Tree, block: usize, is_link: impl Fn(usize) -> bool) -> bool {
    let (mut lines, mut linked) = (0usize, 0usize);
    let mut is_start = true;
    let mut links_until = 0;
    for node in tree.descendants(block) {
        match tree.tag(node) {
            Some(Tag::A) if is_link(node) => links_until = tree.descendants(node).end,
            Some(Tag::Br | Tag::Hr) => is_start = true,
            _ => {}
        }
        let text = tree.text_of(node).unwrap_or_default();
        for (at, line) in text.split('\n').enumerate() {
            is_start |= at > 0;
            if is_start && !line.trim().is_empty() {
                is_start = false;
                lines += 1;
                linked += usize::from(node < links_until);
            }
        }
    }
    linked >= 2 && linked * 2 > lines
}
