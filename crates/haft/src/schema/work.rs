//! The work of checking a value against a schema, counted before it is done.
//!
//! A validator cannot be stopped, and it collects an error for each alternative of each
//! value before it returns the first one. A schema of a few lines can name itself twice, so
//! that the work doubles with each level of the value. So the pairs of a subschema and a
//! value that a check would visit are counted first, up to a limit, and so are the bytes of
//! those values: keywords such as `const` read all of a value, and an error copies it.

use super::references;
use serde_json::{Map, Value};

/// Maximum number of pairs that are checked. A validator cannot be interrupted, so this is
/// what it checks in a fraction of a second.
pub(super) const MAX_CHECKED: usize = 1_000_000;

/// Maximum number of bytes in the values of all pairs that are checked.
const MAX_CHECKED_BYTES: usize = 128 << 20;

/// Maximum number of pairs for which the problems are located. Each may become an error in
/// memory.
const MAX_LOCATED: usize = 100_000;

/// Maximum number of bytes in the values of those pairs.
const MAX_LOCATED_BYTES: usize = 64 << 20;

/// Size of a value without its content.
const VALUE_BYTES: usize = 16;

/// Amount of work that a check takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Problems can be located.
    Small,
    /// Only whether there is a problem can be found out.
    Large,
    /// The value cannot be checked.
    TooLarge,
}

impl Work {
    pub(super) fn of(schema: &Value, value: &Value) -> Self {
        let (pairs, bytes) = pairs(schema, value);
        if pairs <= MAX_LOCATED && bytes <= MAX_LOCATED_BYTES {
            Self::Small
        } else if pairs <= MAX_CHECKED && bytes <= MAX_CHECKED_BYTES {
            Self::Large
        } else {
            Self::TooLarge
        }
    }
}

/// Counts the pairs of a subschema and a value that a check may visit, and the bytes of
/// their values. Stops above the limits.
fn pairs(root: &Value, value: &Value) -> (usize, usize) {
    let mut walk = Walk {
        root,
        open: vec![(root, value)],
        count: 0,
    };
    let mut bytes = 0;
    while let Some((schema, value)) = walk.open.pop() {
        walk.count += 1;
        bytes += size(value, MAX_CHECKED_BYTES - bytes);
        if walk.count > MAX_CHECKED || bytes >= MAX_CHECKED_BYTES {
            // More than any limit.
            return (usize::MAX, usize::MAX);
        }
        if let Value::Object(keywords) = schema {
            for (keyword, argument) in keywords {
                walk.visit(keyword, argument, keywords, value);
            }
        }
    }
    (walk.count, bytes)
}

/// Returns the approximate size of a value in bytes, at most `limit`.
fn size(value: &Value, limit: usize) -> usize {
    let mut open = vec![value];
    let mut bytes = 0;
    while let Some(value) = open.pop() {
        bytes += VALUE_BYTES;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                bytes += fields.keys().map(String::len).sum::<usize>();
                open.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if bytes >= limit {
            return limit;
        }
    }
    bytes
}

struct Walk<'a> {
    root: &'a Value,
    open: Vec<(&'a Value, &'a Value)>,
    count: usize,
}

impl<'a> Walk<'a> {
    /// Adds the pairs that one keyword of a subschema leads to.
    fn visit(
        &mut self,
        keyword: &str,
        argument: &'a Value,
        siblings: &'a Map<String, Value>,
        value: &'a Value,
    ) {
        match (keyword, argument, value) {
            ("$ref" | "$dynamicRef", Value::String(reference), _) => {
                let target = references::target(self.root, reference);
                self.open.extend(target.map(|target| (target, value)));
            }
            ("allOf" | "anyOf" | "oneOf" | "then" | "else" | "if" | "not", argument, _) => {
                self.each(argument, value);
            }
            ("dependentSchemas" | "dependencies", Value::Object(schemas), Value::Object(_)) => {
                self.open
                    .extend(schemas.values().map(|schema| (schema, value)));
            }
            ("enum", Value::Array(options), _) => self.count += options.len(),
            ("properties", Value::Object(schemas), Value::Object(fields)) => {
                let known = fields.iter().filter_map(|(name, value)| {
                    let schema = schemas.get(name)?;
                    Some((schema, value))
                });
                self.open.extend(known);
            }
            ("patternProperties", Value::Object(schemas), Value::Object(fields)) => {
                for schema in schemas.values() {
                    self.below(schema, fields.values());
                }
            }
            (
                "additionalProperties" | "unevaluatedProperties",
                schema @ Value::Object(_),
                Value::Object(fields),
            ) => {
                let known = siblings.get("properties").and_then(Value::as_object);
                let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
                let others = fields.iter().filter(|(name, _)| !is_known(name));
                self.below(schema, others.map(|(_, value)| value));
            }
            ("propertyNames", schema, Value::Object(fields)) => {
                // A name is a text, and no text is nested.
                let names = fields.values().map(|_| &Value::Null);
                self.below(schema, names);
            }
            (
                "items" | "contains" | "unevaluatedItems" | "additionalItems",
                schema @ Value::Object(_),
                Value::Array(items),
            ) => self.below(schema, items),
            ("items" | "prefixItems", Value::Array(schemas), Value::Array(items)) => {
                self.open.extend(schemas.iter().zip(items));
            }
            _ => {}
        }
    }

    /// Adds a value with a schema, or with each schema of a list.
    fn each(&mut self, argument: &'a Value, value: &'a Value) {
        match argument {
            Value::Array(schemas) => {
                self.open
                    .extend(schemas.iter().map(|schema| (schema, value)));
            }
            schema => self.open.push((schema, value)),
        }
    }

    /// Adds a schema with each of the values. Without room for them, only the count grows.
    fn below(&mut self, schema: &'a Value, values: impl IntoIterator<Item = &'a Value>) {
        let room = MAX_CHECKED.saturating_sub(self.open.len());
        for (number, value) in values.into_iter().enumerate() {
            if number >= room {
                self.count = MAX_CHECKED;
                return;
            }
            self.open.push((schema, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ordinary_arguments_are_little_work() {
        let schema = json!({
            "type": "object",
            "properties": {
                "edits": { "type": "array", "items": { "$ref": "#/$defs/edit" } },
                "mode": { "enum": ["a", "b"] },
            },
            "additionalProperties": { "type": "string" },
            "$defs": { "edit": { "type": "object", "properties": { "old": {}, "new": {} } } },
        });
        let edits = vec![json!({ "old": "a", "new": "b" }); 100];
        let value = json!({ "edits": edits, "mode": "a", "more": "c" });
        // The arguments, `edits`, `mode` with two options, `more`; per edit the item, what
        // it refers to, and two fields.
        assert_eq!(pairs(&schema, &value).0, 1 + 1 + 3 + 1 + 100 * 4);
        assert_eq!(Work::of(&schema, &value), Work::Small);
    }

    #[test]
    fn every_alternative_counts_for_every_value() {
        let options: Vec<_> = (0..4_000).map(|n| json!({ "const": n })).collect();
        let schema = json!({ "type": "array", "items": { "anyOf": options } });
        let of = |many: usize| Work::of(&schema, &json!(vec![-1; many]));
        assert_eq!(of(10), Work::Small);
        assert_eq!(of(100), Work::Large);
        assert_eq!(of(100_000), Work::TooLarge);
    }

    #[test]
    fn the_size_of_a_value_counts_for_every_alternative() {
        let options: Vec<_> = (0..900).map(|n| json!({ "const": n })).collect();
        let schema = json!({ "anyOf": options });
        let of = |many: usize| Work::of(&schema, &json!(vec![1; many]));
        assert_eq!(of(100), Work::Small);
        assert_eq!(of(8_000), Work::Large);
        assert_eq!(of(100_000), Work::TooLarge);
        let plain = json!({ "type": "array", "items": { "type": "integer" } });
        assert_eq!(Work::of(&plain, &json!(vec![1; 90_000])), Work::Small);
    }

    #[test]
    fn a_schema_that_names_itself_twice_is_not_followed_forever() {
        let list = json!({ "type": "array", "items": { "$ref": "#/$defs/x" } });
        let schema = json!({
            "$ref": "#/$defs/x",
            "$defs": { "x": { "anyOf": [list, list, { "const": 1 }] } },
        });
        let nested = |depth: usize| (0..depth).fold(json!("leaf"), |value, _| json!([value]));
        assert_eq!(Work::of(&schema, &nested(5)), Work::Small);
        assert_eq!(Work::of(&schema, &nested(100)), Work::TooLarge);
    }

    #[test]
    fn each_keyword_that_enters_a_value_counts() {
        let deep = json!({ "anyOf": vec![json!({}); 9] });
        for (schema, value) in [
            (
                json!({ "patternProperties": { "a": deep } }),
                json!({ "a": 1 }),
            ),
            (json!({ "additionalProperties": deep }), json!({ "a": 1 })),
            (json!({ "unevaluatedProperties": deep }), json!({ "a": 1 })),
            (json!({ "propertyNames": deep }), json!({ "a": 1 })),
            (
                json!({ "dependentSchemas": { "a": deep } }),
                json!({ "a": 1 }),
            ),
            (json!({ "items": deep }), json!([1])),
            (json!({ "items": [deep] }), json!([1])),
            (json!({ "prefixItems": [deep] }), json!([1])),
            (json!({ "contains": deep }), json!([1])),
            (json!({ "not": deep }), json!([1])),
            (json!({ "allOf": [deep] }), json!([1])),
        ] {
            assert_eq!(pairs(&schema, &value).0, 11, "{schema}");
        }
    }
}
