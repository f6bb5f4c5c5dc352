//! Generating schemas for models and MCP: one flat object without references and nulls,
//! with fields in the order of the struct.

use super::references;
use crate::Error;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Maximum size of an external schema, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Maximum nesting depth of an external schema.
const MAX_DEPTH: usize = 64;
/// Maximum number of parts of an external schema.
const MAX_NODES: usize = 20_000;

/// Returns the description and the parameters of an arguments type.
pub(crate) fn of<T: JsonSchema>() -> (String, Value) {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = SchemaGenerator::new(settings)
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    let mut description = String::new();
    let mut parameters = Map::new();
    parameters.insert("type".to_owned(), "object".into());
    if let Value::Object(mut schema) = schema {
        if let Some(Value::String(text)) = schema.remove("description") {
            description = text;
        }
        parameters.insert(
            "properties".to_owned(),
            schema
                .remove("properties")
                .unwrap_or_else(|| Map::new().into()),
        );
        if let Some(required) = schema.remove("required") {
            parameters.insert("required".to_owned(), required);
        }
        // An unknown name is an error that suggests the right one.
        parameters.insert("additionalProperties".to_owned(), false.into());
    }
    (description, Value::Object(parameters))
}

/// Removes parts that a model does not need.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("title");
            fields.remove("format");
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            drop_null(fields);
            if let Some(Value::String(text)) = fields.get_mut("description") {
                // Doc comments are wrapped for editors, not for models.
                *text = unwrapped(text);
            }
            describe_first(fields);
            // OpenAI's strict mode wants this of every object. Repair drops unknown fields.
            if fields.contains_key("properties") {
                let closed = "additionalProperties".to_owned();
                fields.entry(closed).or_insert(Value::Bool(false));
            }
            for (_, value) in fields.iter_mut() {
                tidy(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// Removes "or null" from the schema of an `Option<T>`, because a parameter that is not
/// given is left out.
fn drop_null(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = fields.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            fields.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(options)) = fields.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            fields.remove("anyOf");
            for (name, value) in only {
                fields.entry(name).or_insert(value);
            }
        }
    }
}

/// Moves the description of alternatives into the first one, because some providers refuse
/// anything beside `anyOf`.
fn describe_first(fields: &mut Map<String, Value>) {
    if !fields.contains_key("anyOf") {
        return;
    }
    let description = fields.remove("description");
    let first = fields
        .get_mut("anyOf")
        .and_then(|choices| choices.get_mut(0));
    if let (Some(description), Some(Value::Object(first))) = (description, first) {
        first.insert("description".to_owned(), description);
    }
}

/// Joins the lines of a paragraph; keeps blank lines and lists.
fn unwrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim_end();
        let starts_block = line.is_empty() || line.starts_with("- ") || line.starts_with(' ');
        if !out.is_empty() {
            out.push(if starts_block || out.ends_with('\n') {
                '\n'
            } else {
                ' '
            });
        }
        out.push_str(line);
    }
    out
}

/// Compiles a schema. References cannot leave it, and patterns use the regex engine that
/// does not backtrack.
pub(super) fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.to_string())
}

fn is_text(fields: &Map<String, Value>, name: &str) -> bool {
    fields.get(name).is_some_and(Value::is_string)
}

/// Refuses an external schema that is invalid or would be slow to check.
pub(crate) fn check(name: &str, schema: &Value) -> Result<(), Error> {
    let refuse = |reason: &str| {
        Err(Error::Fault(format!(
            "tool \"{name}\": its schema {reason}"
        )))
    };
    if !schema.is_object() {
        return refuse("is not an object");
    }
    let mut nodes = 0;
    let mut open = vec![(schema, 0)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        if depth > MAX_DEPTH {
            return refuse("is nested too deeply (at most 64 levels)");
        }
        if nodes > MAX_NODES {
            return refuse("has too many parts (at most 20,000)");
        }
        match value {
            Value::Object(fields) => {
                if fields.contains_key("$recursiveRef") || depth > 0 && is_text(fields, "$id") {
                    return refuse("has references that haft cannot follow ($recursiveRef, $id)");
                }
                let mut references = ["$ref", "$dynamicRef"].into_iter();
                if references.any(|name| {
                    let reference = fields.get(name).and_then(Value::as_str);
                    reference.is_some_and(|reference| !reference.starts_with("#/"))
                }) {
                    return refuse(
                        "refers to something outside itself or to itself as a whole ($ref)",
                    );
                }
                open.extend(fields.values().map(|value| (value, depth + 1)));
            }
            Value::Array(items) => open.extend(items.iter().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    if schema.to_string().len() > MAX_BYTES {
        return refuse("is too large (at most 256KB)");
    }
    if let Err(reason) = references::check(schema) {
        return refuse(reason);
    }
    match compile(schema) {
        Ok(_) => Ok(()),
        Err(reason) => refuse(&format!("is not valid: {reason}")),
    }
}
