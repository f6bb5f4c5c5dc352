//! JSON Schema of `haft.yaml`, for editors that complete and check it.

use super::keys::{KEYS, Key, SECTION, ValueKind};
use super::{mcp, policy};
use serde_json::{Map, Value, json};

/// Builds the schema from the list of keys.
pub(crate) fn schema() -> Value {
    let section = properties(Some(SECTION));
    let mut file = Map::new();
    file.insert(
        SECTION.to_owned(),
        json!({
            "description": "Tools and their permissions.",
            "type": ["object", "null"],
            "properties": section,
            "additionalProperties": false,
        }),
    );
    file.extend(properties(None));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "haft.yaml",
        "description": "Settings of haft, for one folder or for the user.",
        "type": ["object", "null"],
        "properties": file,
        "additionalProperties": false,
    })
}

fn properties(section: Option<&str>) -> Map<String, Value> {
    KEYS.iter()
        .filter(|key| key.parts().0 == section)
        .map(|key| (key.parts().1.to_owned(), property(key)))
        .collect()
}

fn property(key: &Key) -> Value {
    let mut property = Map::new();
    let about = capitalised(key.about);
    property.insert("description".to_owned(), about.into());
    let (kind, more): (&str, Vec<(&str, Value)>) = match key.kind {
        // A variable may be used instead of a listed value.
        ValueKind::Choice(names) => {
            property.insert(
                "anyOf".to_owned(),
                json!([{ "enum": names }, { "type": "string", "pattern": "\\$\\{" }, { "type": "null" }]),
            );
            ("", Vec::new())
        }
        ValueKind::Text => ("string", Vec::new()),
        ValueKind::Whole(least, most) => ("integer", bounds(least, most)),
        ValueKind::Number(most) => ("number", bounds(0, most)),
        ValueKind::Truth => ("boolean", Vec::new()),
        ValueKind::Texts => ("array", vec![("items", json!({ "type": "string" }))]),
        ValueKind::List => ("array", Vec::new()),
        ValueKind::Rules => ("array", vec![("items", policy::schema())]),
        ValueKind::Map if key.name == "tools.mcp" => {
            ("object", vec![("additionalProperties", mcp::schema())])
        }
        ValueKind::Map => ("object", Vec::new()),
        ValueKind::Anything => ("", Vec::new()),
    };
    if !kind.is_empty() {
        property.insert("type".to_owned(), json!([kind, "null"]));
    }
    for (name, value) in more {
        property.insert(name.to_owned(), value);
    }
    let default: Value = match key.kind {
        _ if key.default.is_empty() => return property.into(),
        ValueKind::Text | ValueKind::Choice(_) => key.default.into(),
        _ => serde_json::from_str(key.default).unwrap_or_default(),
    };
    property.insert("default".to_owned(), default);
    property.into()
}

fn bounds(least: u64, most: u64) -> Vec<(&'static str, Value)> {
    let mut bounds = vec![("minimum", least.into())];
    if most < u64::MAX {
        bounds.push(("maximum", most.into()));
    }
    bounds
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| format!("{}{}", first.to_uppercase(), chars.as_str()))
        .unwrap_or_default()
}
