//! The section of a prompt that tells a model about its tools.

use crate::{Definition, Toolset};

/// `Tools: a, b.`, a line for each, then the guidance of those that have some,
/// then that of the toolset, as far as it speaks of tools that are there.
pub(crate) fn section(definitions: &[Definition], toolset: &Toolset) -> String {
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
    for definition in definitions {
        if let Some(guidance) = definition
            .guidance
            .as_deref()
            .map(str::trim)
            .filter(|guidance| !guidance.is_empty())
        {
            text.push_str(&format!("\n## {}\n{guidance}\n", definition.name));
        }
    }
    let advice = advice(definitions, toolset);
    if !advice.is_empty() {
        text.push_str(&format!("\n## {}\n{advice}\n", toolset.name));
    }
    text
}

/// What a toolset says about its tools together, as far as they are there.
pub(crate) fn advice(definitions: &[Definition], toolset: &Toolset) -> String {
    let is_there = |tool: &str| definitions.iter().any(|definition| definition.name == tool);
    let advice: Vec<&str> = toolset
        .guidance
        .iter()
        .filter(|advice| advice.tools.iter().all(|tool| is_there(tool)))
        .map(|advice| advice.text.trim())
        .collect();
    advice.join("\n")
}
