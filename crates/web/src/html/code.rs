//! Finds out about code from the markup around it.

use super::tag::Tag;
use super::tree::Tree;

/// Longest name accepted as a language.
const MAX_LANGUAGE: usize = 20;

/// Returns the language that a class of the block, its ancestors or its `<code>` element names.
pub(super) fn language(tree: &Tree, node: usize) -> Option<String> {
    let inner = tree
        .descendants(node)
        .find(|inner| tree.tag(*inner) == Some(Tag::Code));
    let parent = tree.parent(node);
    let above = tree.parent(parent);
    let mut classes = [Some(node), inner, Some(parent), Some(above)]
        .into_iter()
        .flatten()
        .flat_map(|node| tree.classes(node));
    let mut name = "";
    while let Some(class) = classes.next() {
        let prefixes = ["language-", "lang-", "highlight-source-", "highlight-"];
        if class == "brush:" {
            name = classes.next().unwrap_or_default();
        } else if let Some(rest) = prefixes.iter().find_map(|front| class.strip_prefix(front)) {
            name = rest;
        } else {
            continue;
        }
        break;
    }
    let name = name.trim_end_matches(';');
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '#' | '-' | '_');
    let is_name = name.len() <= MAX_LANGUAGE
        && name.chars().all(fits)
        && !matches!(name, "" | "default" | "none" | "plaintext");
    is_name.then(|| name.to_owned())
}

pub(super) fn is_line_number(class: &str) -> bool {
    matches!(
        class,
        "linenos"
            | "linenodiv"
            | "lineno"
            | "line-number"
            | "line-numbers-rows"
            | "gutter"
            | "blob-num"
    )
}

pub(super) fn longest_backtick_run(code: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in code.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}
