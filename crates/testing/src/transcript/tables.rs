//! Parameter tables in a page, generated from the schemas of the tools.

use haft::Definition;
use serde_json::Value;
use std::fmt::Write as _;

/// Returns the page with its parameter tables regenerated.
#[must_use]
pub fn with_tables(page: &str, definitions: &[Definition]) -> String {
    let mut out = String::new();
    let mut skipping = false;
    for line in page.lines() {
        if line.trim() == "<!-- end -->" {
            skipping = false;
        }
        if skipping {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let Some(tool) = line
            .trim()
            .strip_prefix("<!-- parameters ")
            .and_then(|rest| rest.strip_suffix(" -->"))
        else {
            continue;
        };
        let definition = definitions
            .iter()
            .find(|definition| definition.name == tool)
            .unwrap_or_else(|| panic!("no tool {tool}"));
        out.push_str(&table(definition));
        skipping = true;
    }
    out
}

fn table(definition: &Definition) -> String {
    let mut out = format!("\n{}\n\n", definition.description);
    let empty = serde_json::Map::new();
    let properties = definition.parameters["properties"]
        .as_object()
        .unwrap_or(&empty);
    if properties.is_empty() {
        return out + "It has no parameters.\n\n";
    }
    out.push_str("| parameter | type | required | description |\n|---|---|---|---|\n");
    for (name, schema) in properties {
        let required = definition.parameters["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|required| required == name));
        let choices = schema["anyOf"].as_array();
        let kind = match choices {
            Some(choices) => {
                let kinds: Vec<String> = choices.iter().map(|one| kind(&one["type"])).collect();
                kinds.join(" or ")
            }
            None => kind(&schema["type"]),
        };
        let described = choices
            .and_then(|choices| choices.first())
            .unwrap_or(schema);
        let mut notes = described["description"]
            .as_str()
            .unwrap_or_default()
            .replace('|', "\\|");
        if let Some(choices) = schema["enum"].as_array() {
            let choices: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
            let _ = write!(notes, " One of {}.", choices.join(", "));
        }
        if let Some(default) = schema.get("default") {
            let _ = write!(notes, " Default: `{default}`.");
        }
        match (schema.get("minimum"), schema.get("maximum")) {
            (Some(least), Some(most)) => drop(write!(notes, " {least} to {most}.")),
            (Some(least), None) => drop(write!(notes, " At least {least}.")),
            (None, Some(most)) => drop(write!(notes, " At most {most}.")),
            (None, None) => {}
        }
        let _ = writeln!(
            out,
            "| `{name}` | {kind} | {} | {notes} |",
            if required { "yes" } else { "" }
        );
    }
    out.push('\n');
    out
}

fn kind(kind: &Value) -> String {
    match kind {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" or ")
        }
        _ => "any".to_owned(),
    }
}
