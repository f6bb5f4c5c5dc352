//! Counting the parts of a schema with all references followed: a few lines can stand for
//! more parts than could ever be checked.

use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of parts with all references followed.
const MAX_PARTS: u64 = 100_000;

/// Maximum length of a chain of parts and references.
const MAX_CHAIN: usize = 200;

/// Keywords whose subschemas apply to the same value, not to a part of it.
const IN_PLACE: [&str; 11] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
];

/// Keywords that are only checked where something refers to them, or that are not schemas.
const ASIDE: [&str; 6] = [
    "$defs",
    "definitions",
    "enum",
    "const",
    "default",
    "examples",
];

/// Returns why a schema is too large with its references followed.
pub(super) fn check(schema: &Value) -> Result<(), &'static str> {
    let mut walk = Walk {
        root: schema,
        known: HashMap::new(),
        open: Vec::new(),
    };
    match walk.parts(schema, true)? {
        parts if parts > MAX_PARTS => Err("has too many parts, with its references followed"),
        _ => Ok(()),
    }
}

/// Returns the part of a schema that a reference such as `#/$defs/name` means.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&percent_decode_str(pointer).decode_utf8().ok()?)
}

struct Walk<'a> {
    root: &'a Value,
    known: HashMap<*const Value, u64>,
    /// The path to the current part, and whether each step enters a part of the value.
    open: Vec<(*const Value, bool)>,
}

impl<'a> Walk<'a> {
    fn parts(&mut self, schema: &'a Value, is_inside: bool) -> Result<u64, &'static str> {
        let here = std::ptr::from_ref(schema);
        if let Some(parts) = self.known.get(&here) {
            return Ok(*parts);
        }
        if let Some(at) = self.open.iter().position(|(open, _)| *open == here) {
            let mut since = self.open.iter().skip(at + 1);
            // A tree may refer to itself for a part of the value. For the same value, it
            // never ends.
            return if is_inside || since.any(|(_, is_inside)| *is_inside) {
                Ok(1)
            } else {
                Err("refers to itself without end ($ref)")
            };
        }
        if self.open.len() > MAX_CHAIN {
            return Err("has references that lead too far ($ref)");
        }
        self.open.push((here, is_inside));
        let mut parts: u64 = 1;
        match schema {
            Value::Object(fields) => {
                for (key, value) in fields {
                    parts = parts.saturating_add(self.field(key, value)?);
                }
            }
            Value::Array(items) => {
                for item in items {
                    parts = parts.saturating_add(self.parts(item, false)?);
                }
            }
            _ => {}
        }
        self.open.pop();
        self.known.insert(here, parts);
        Ok(parts)
    }

    fn field(&mut self, key: &str, value: &'a Value) -> Result<u64, &'static str> {
        let is_inside = !IN_PLACE.contains(&key);
        match value {
            Value::String(reference) if key == "$ref" || key == "$dynamicRef" => {
                target(self.root, reference).map_or(Ok(1), |target| self.parts(target, false))
            }
            Value::Object(_) | Value::Array(_) if !ASIDE.contains(&key) => {
                self.parts(value, is_inside)
            }
            _ => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_trees_may_refer_to_themselves() {
        let node = json!({ "type": "object", "properties": { "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } });
        let tree =
            json!({ "properties": { "a": { "$ref": "#/$defs/node" } }, "$defs": { "node": node } });
        assert_eq!(check(&tree), Ok(()));
        let cycle = json!({
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/b" }] }, "b": { "$ref": "#/$defs/a" } },
        });
        assert_eq!(check(&cycle), Err("refers to itself without end ($ref)"));
        let encoded = json!({
            "properties": { "a": { "$ref": "#/%24defs/a" } },
            "$defs": { "a": { "allOf": [{ "$ref": "#/%24defs/a" }] } },
        });
        assert_eq!(check(&encoded), Err("refers to itself without end ($ref)"));
    }

    #[test]
    fn a_small_schema_that_expands_to_many_parts_is_refused() {
        let mut definitions = serde_json::Map::new();
        for at in 0..12 {
            let next = json!({ "$ref": format!("#/$defs/n{}", at + 1) });
            definitions.insert(format!("n{at}"), json!({ "allOf": vec![next; 10] }));
        }
        definitions.insert("n12".into(), json!({ "type": "string" }));
        let bomb = json!({ "properties": { "a": { "$ref": "#/$defs/n0" } }, "$defs": definitions });
        assert_eq!(
            check(&bomb),
            Err("has too many parts, with its references followed")
        );
        let mut chain = serde_json::Map::new();
        for at in 0..5_000 {
            let next = json!({ "$ref": format!("#/$defs/n{}", at + 1) });
            chain.insert(format!("n{at}"), next);
        }
        let chain = json!({ "properties": { "a": { "$ref": "#/$defs/n0" } }, "$defs": chain });
        assert_eq!(
            check(&chain),
            Err("has references that lead too far ($ref)")
        );
    }
}
