//! The section of the system prompt about the tools.

use crate::{Definition, Toolset};

/// Maximum length of the line about a tool, in characters. The model gets the full
/// description with the parameters.
const MAX_LINE_CHARS: usize = 160;

/// Returns the section: `Tools: a, b.`, one line per tool, the guidance of the tools, and
/// the guidance of the toolset about tools that exist, starting with the lines about where
/// files are.
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

/// Returns a description on one line. A long one is cut after the last sentence that fits,
/// or within its first sentence.
fn on_one_line(description: &str) -> String {
    let text = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((past, _)) = text.char_indices().nth(MAX_LINE_CHARS) else {
        return text;
    };
    let (beginning, rest) = text.split_at(past);
    // Only a capital letter starts a sentence: `e.g. this` is not a sentence end.
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

/// Returns the guidance of the tools, then that of the toolset.
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

/// Returns the toolset's advice about the tools that exist.
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
        let more = "x".repeat(MAX_LINE_CHARS);
        assert_eq!(
            on_one_line(&format!("Finds files, e.g. `a`. Then sorts. Then {more}.")),
            "Finds files, e.g. `a`. Then sorts."
        );
        assert_eq!(
            on_one_line(&format!("Finds, e.g. b {more}")),
            "Finds, e.g. b…"
        );
        assert_eq!(on_one_line(&format!("{more} b")), format!("{more}…"));
        let sentence = format!("{}.", "é".repeat(MAX_LINE_CHARS - 1));
        assert_eq!(on_one_line(&format!("{sentence} And more.")), sentence);
        assert_eq!(on_one_line(&sentence), sentence);
    }
}
