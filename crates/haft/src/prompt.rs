//! The section of a prompt that tells a model about its tools.

use crate::{Definition, Toolset};

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
        let description = definition
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        text.push_str(&format!("{}: {description}\n", definition.name));
    }
    let guidance = guidance(definitions, toolset, layout);
    if !guidance.is_empty() {
        text.push_str(&format!("\n{guidance}\n"));
    }
    text
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
