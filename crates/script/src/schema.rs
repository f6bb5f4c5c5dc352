//! Fixing schemas from Lua, where an empty list and an empty object are the same table.

use serde_json::{Map, Value};

/// Turns empty objects into lists where the schema requires a list. Only keywords in their
/// place count: a parameter may be called `required` too.
///
/// `items = {}` stays an object: it means "anything" in every version of JSON Schema, while
/// `[]` is not a valid schema in the current one.
pub(crate) fn normalise(schema: &mut Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    let is_list = keywords.get("type").and_then(Value::as_str) == Some("array");
    for (keyword, value) in keywords.iter_mut() {
        match keyword.as_str() {
            "required" | "enum" | "examples" | "type" => list(value),
            "default" | "const" if is_list => list(value),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                list(value);
                each(value);
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                for schema in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                    normalise(schema);
                }
            }
            "dependentRequired" => {
                value
                    .as_object_mut()
                    .into_iter()
                    .flat_map(Map::values_mut)
                    .for_each(list);
            }
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => {
                each(value);
                normalise(value);
            }
            _ => {}
        }
    }
}

fn list(value: &mut Value) {
    if value.as_object().is_some_and(Map::is_empty) {
        *value = Value::Array(Vec::new());
    }
}

fn each(value: &mut Value) {
    value
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(normalise);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::normalise;

    #[test]
    fn keywords_that_require_a_list_become_lists() {
        let mut schema = json!({
            "type": "object", "required": {}, "properties": {
                "required": {}, "enum": {"enum": {}},
                "list": {"type": "array", "items": {"anyOf": {}}, "default": {}, "prefixItems": {}},
                "any": {"items": {}, "default": {}},
            },
            "allOf": [{"oneOf": {}, "not": {"required": {}}}],
            "dependentRequired": {"a": {}},
        });
        normalise(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object", "required": [], "properties": {
                    "required": {}, "enum": {"enum": []},
                    "list": {"type": "array", "items": {"anyOf": []}, "default": [], "prefixItems": []},
                    "any": {"items": {}, "default": {}},
                },
                "allOf": [{"oneOf": [], "not": {"required": []}}],
                "dependentRequired": {"a": []},
            })
        );
    }

    #[test]
    fn empty_properties_stay_an_object() {
        let mut schema = json!({"type": "object", "properties": {}});
        normalise(&mut schema);
        assert_eq!(schema, json!({"type": "object", "properties": {}}));
    }
}
