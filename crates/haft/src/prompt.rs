//! The section of a prompt that tells a model about its tools.

use crate::{Definition, Toolset};

/// Maximum length of the line about a tool, in characters. A model has the whole
/// description beside the parameters.
const LONGEST: usize = 160;

/// `Tools: a, b.`, a line for each, then the guidance of those that have some,
/// then that of the toolset, as far as it speaks of tools that are there: first the
/// lines that say where the files are.
pub(crate) fn section(definitions: &[Definition], toolset: &Toolset, layout: &[String]) -> String {
    if definitions.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = definitions
        .iter()
        .map(|definition| definition.name.as_str())
        .collect();
    let mut text = format!("Tools: {}.\n", names.join(", "));
    for definition in definitions {
        let description = on_one_line(&definition.description);
        text.push_str(&format!("{}: {description}\n", definition.name));
    }
    let guidance = guidance(definitions, toolset, layout);
    if !guidance.is_empty() {
        text.push_str(&format!("\n{guidance}\n"));
    }
    text
}

/// Returns a description on one line. Of a long one the first sentences that fit, or the
/// beginning of the first.
fn on_one_line(description: &str) -> String {
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((past, _)) = text.char_indices().nth(LONGEST) else {
        return text;
    };
    let (beginning, rest) = text.split_at(past);
    // The next sentence starts with a capital letter: `e.g. this` is not an end.
    let ends = beginning.match_indices(". ").filter(|(at, mark)| {
        let next = beginning.get(at + mark.len()..).unwrap_or_default();
        let next = next.chars().next().or_else(|| rest.chars().next());
        next.is_some_and(char::is_uppercase)
    });
    if let Some((end, _)) = ends.last() {
        return format!("{}.", beginning.get(..end).unwrap_or_default());
    }
    match beginning.ends_with('.') && rest.starts_with(' ') {
        true => beginning.to_owned(),
        false => {
            let words = beginning
                .rsplit_once(' ')
                .map_or(beginning, |(words, _)| words);
            format!("{}…", words.trim_end_matches([',', ';', ':']))
        }
    }
}

/// The guidance of the tools that have some, then that of the toolset.
pub(crate) fn guidance(definitions: &[Definition], toolset: &Toolset, layout: &[String]) -> String {
    let mut sections = Vec::new();
    for definition in definitions {
        let guidance = definition.guidance.as_deref().map(str::trim);
        if let Some(guidance) = guidance.filter(|guidance| !guidance.is_empty()) {
            sections.push(format!("## {}\n{guidance}", definition.name));
        }
    }
    let advice = advice(definitions, toolset, layout);
    if !advice.is_empty() {
        sections.push(format!("## {}\n{advice}", toolset.name));
    }
    sections.join("\n\n")
}

/// What a toolset says about its tools together, as far as they are there.
fn advice(definitions: &[Definition], toolset: &Toolset, layout: &[String]) -> String {
    let is_there = |tool: &str| definitions.iter().any(|definition| definition.name == tool);
    let advice = toolset
        .guidance
        .iter()
        .filter(|advice| advice.tools.iter().all(|tool| is_there(tool)))
        .map(|advice| advice.text.trim());
    let layout = layout.iter().map(String::as_str);
    let advice: Vec<&str> = layout.chain(advice).collect();
    advice.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_description_is_cut_after_a_sentence() {
        let short = "Says e.g. one\n  thing. And another.";
        assert_eq!(on_one_line(short), "Says e.g. one thing. And another.");
        let more = "x".repeat(LONGEST);
        assert_eq!(
            on_one_line(&format!("Finds files, e.g. `a`. Then sorts. Then {more}.")),
            "Finds files, e.g. `a`. Then sorts."
        );
        assert_eq!(
            on_one_line(&format!("Finds, e.g. b {more}")),
            "Finds, e.g. b…"
        );
        assert_eq!(on_one_line(&format!("{more} b")), format!("{more}…"));
        let sentence = format!("{}.", "é".repeat(LONGEST - 1));
        assert_eq!(on_one_line(&format!("{sentence} And more.")), sentence);
        assert_eq!(on_one_line(&sentence), sentence);
    }
}
