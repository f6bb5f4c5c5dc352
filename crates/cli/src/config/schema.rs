//! The JSON Schema of `haft.yaml`, for editors that complete and check it.

use super::keys::{KEYS, Key, Kind, SECTION};
use super::{mcp, policy};
use serde_json::{Map, Value, json};

/// The schema, from the list of keys.
pub(crate) fn schema() -> Value {
    let section = properties(Some(SECTION));
    let mut file = Map::new();
    file.insert(
        SECTION.to_owned(),
        json!({
            "description": "The tools and what they may touch.",
            "type": ["object", "null"],
            "properties": section,
            "additionalProperties": false,
        }),
    );
    file.extend(properties(None));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "haft.yaml",
        "description": "Settings of haft, for a folder or for a person.",
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
        // A name of a variable may stand for any of the words.
        Kind::Choice(names) => {
            property.insert(
                "anyOf".to_owned(),
                json!([{ "enum": names }, { "type": "string", "pattern": "\\$\\{" }, { "type": "null" }]),
            );
            ("", Vec::new())
        }
        Kind::Text => ("string", Vec::new()),
        Kind::Whole(least, most) => ("integer", bounds(least, most)),
        Kind::Number(most) => ("number", bounds(0, most)),
        Kind::Truth => ("boolean", Vec::new()),
        Kind::Texts => ("array", vec![("items", json!({ "type": "string" }))]),
        Kind::List => ("array", Vec::new()),
        Kind::Rules => ("array", vec![("items", policy::schema())]),
        Kind::Map if key.name == "tools.mcp" => {
            ("object", vec![("additionalProperties", mcp::schema())])
        }
        Kind::Map => ("object", Vec::new()),
        Kind::Anything => ("", Vec::new()),
    };
    if !kind.is_empty() {
        property.insert("type".to_owned(), json!([kind, "null"]));
    }
    for (name, value) in more {
        property.insert(name.to_owned(), value);
    }
    let default: Value = match key.kind {
        _ if key.default.is_empty() => return property.into(),
        Kind::Text | Kind::Choice(_) => key.default.into(),
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
