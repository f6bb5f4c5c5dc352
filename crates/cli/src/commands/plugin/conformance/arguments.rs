//! Generates arguments from a schema: valid ones and wrong ones.

use haft::Definition;
use haft::plugin_protocol::accepts;
use serde_json::{Map, Value, json};

/// Maximum nesting of a schema that is followed.
const MAX_DEPTH: usize = 8;

/// Maximum items of a generated array.
const MAX_ITEMS: u64 = 20;

/// Texts to try for a pattern.
const CANDIDATES: &[&str] = &[
    "example",
    "a",
    "A",
    "1",
    "123",
    "abc123",
    "ABC-123",
    "2024-01-31",
    "12:00",
    "https://example.com",
    "me@example.com",
    "/tmp",
    "1.0.0",
    "#ff0000",
    "123e4567-e89b-12d3-a456-426614174000",
    "abcdef0123456789",
];

/// Parameters to include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Required,
    All,
}

/// Returns arguments that the tool's schema should accept.
pub(super) fn valid(definition: &Definition, which: Which) -> Value {
    let maker = Generator {
        root: &definition.parameters,
        which,
    };
    let mut made = maker.object(&definition.parameters, 0);
    let properties = definition
        .parameters
        .get("properties")
        .and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if schema.get("pattern").is_some() && made.get(name).is_some_and(Value::is_string) {
            fit(definition, name, &mut made);
        }
    }
    Value::Object(made)
}

/// Tries texts until the pattern accepts one, since a match cannot be derived from it.
fn fit(definition: &Definition, name: &str, made: &mut Map<String, Value>) {
    let first = made.get(name).cloned();
    let tried = first
        .iter()
        .cloned()
        .chain(CANDIDATES.iter().map(|text| json!(text)));
    for text in tried.collect::<Vec<_>>() {
        made.insert(name.to_owned(), text);
        let refused = accepts(definition, &Value::Object(made.clone())).err();
        // Only this parameter is checked; others may be invalid too.
        if !refused.is_some_and(|reason| reason.contains(name)) {
            return;
        }
    }
    if let Some(first) = first {
        made.insert(name.to_owned(), first);
    }
}

struct Generator<'a> {
    root: &'a Value,
    which: Which,
}

impl Generator<'_> {
    fn object(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut made = Map::new();
        for (name, schema) in properties.into_iter().flatten() {
            if self.which == Which::All || required.contains(&name.as_str()) {
                made.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        made
    }

    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        let first = |name: &str| schema.get(name).and_then(Value::as_array)?.first().cloned();
        if let Some(given) = schema.get("const").or_else(|| schema.get("default")) {
            return given.clone();
        }
        if let Some(given) = first("examples").or_else(|| schema.get("example").cloned()) {
            return given;
        }
        if let Some(given) = first("enum") {
            return given;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointed = reference
                .strip_prefix('#')
                .and_then(|at| self.root.pointer(at));
            return pointed.map_or(Value::Null, |schema| self.value(schema, depth + 1));
        }
        for several in ["anyOf", "oneOf", "allOf"] {
            let choices = schema.get(several).and_then(Value::as_array);
            let useful = |choice: &&Value| choice.get("type").is_none_or(|kind| kind != "null");
            if let Some(choice) = choices.and_then(|choices| choices.iter().find(useful)) {
                return self.value(choice, depth + 1);
            }
        }
        match kind(schema) {
            "string" => json!(text(schema)),
            "integer" => number(schema, true),
            "number" => number(schema, false),
            "boolean" => json!(false),
            "array" => Value::Array(self.items(schema, depth)),
            "object" => Value::Object(self.object(schema, depth)),
            _ => Value::Null,
        }
    }

    fn items(&self, schema: &Value, depth: usize) -> Vec<Value> {
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let minimum = bound("minItems").unwrap_or(1).max(1);
        let count = minimum
            .min(bound("maxItems").unwrap_or(minimum))
            .min(MAX_ITEMS);
        let Some(item) = schema.get("items") else {
            return (1..=count).map(|number| json!(number)).collect();
        };
        let is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let choices = item.get("enum").and_then(Value::as_array);
        (0..count)
            .map(|at| {
                let place = usize::try_from(at).unwrap_or(0);
                let one = self.value(item, depth + 1);
                match (choices.and_then(|choices| choices.get(place)), one) {
                    (Some(choice), _) if is_unique => choice.clone(),
                    (None, Value::String(text)) if is_unique && at > 0 => {
                        json!(format!("{text}{at}"))
                    }
                    (None, Value::Number(number)) if is_unique => {
                        json!(number.as_i64().unwrap_or(0).saturating_add_unsigned(at))
                    }
                    (_, one) => one,
                }
            })
            .collect()
    }
}

/// Returns the type of a schema, guessed if not given.
fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds
            .iter()
            .filter_map(Value::as_str)
            .find(|kind| *kind != "null"),
        _ => None,
    };
    named.unwrap_or_else(|| {
        if schema.get("properties").is_some() {
            "object"
        } else if schema.get("items").is_some() {
            "array"
        } else if schema.get("minimum").is_some() || schema.get("maximum").is_some() {
            "number"
        } else {
            "string"
        }
    })
}

fn text(schema: &Value) -> String {
    let text = match schema.get("format").and_then(Value::as_str) {
        Some("date") => "2024-01-31",
        Some("date-time") => "2024-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT1M",
        Some("email") => "me@example.com",
        Some("uri" | "url" | "iri") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "example",
    };
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    let size = |bound: Option<u64>| bound.and_then(|bound| usize::try_from(bound).ok());
    let least = size(bound("minLength")).unwrap_or(0).min(100_000);
    let most = size(bound("maxLength")).unwrap_or(usize::MAX);
    let length = text.chars().count().max(least).min(most);
    text.chars()
        .chain(std::iter::repeat('x'))
        .take(length)
        .collect()
}

/// Returns a number within the bounds, 1 if possible.
fn number(schema: &Value, is_whole: bool) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    // For an exclusive bound, step inside by one or by half of the range.
    let least = bound("minimum").or_else(|| {
        bound("exclusiveMinimum").map(|least| {
            match (
                is_whole,
                bound("maximum").or_else(|| bound("exclusiveMaximum")),
            ) {
                (true, _) => least.floor() + 1.0,
                (false, Some(most)) => least + ((most - least) / 2.0).min(1.0),
                (false, None) => least + 1.0,
            }
        })
    });
    let most = bound("maximum")
        .or_else(|| bound("exclusiveMaximum").map(|most| most - if is_whole { 1.0 } else { 0.5 }));
    let mut number = 1.0_f64;
    if let Some(most) = most {
        number = number.min(most);
    }
    if let Some(least) = least {
        number = number.max(least);
    }
    if let Some(step) = step {
        number = (number / step).ceil() * step;
    }
    if is_whole {
        number = number.ceil();
    }
    if number.fract() == 0.0 && number.abs() < 9e15 {
        json!(number as i64)
    } else {
        json!(number)
    }
}

/// Arguments with one error.
pub(super) struct WrongArguments {
    pub(super) id: &'static str,
    pub(super) description: String,
    pub(super) arguments: Value,
    /// Whether accepting them is fine.
    pub(super) is_acceptable: bool,
}

/// Returns variants of valid arguments with one error each.
pub(super) fn wrong(definition: &Definition, right: &Value) -> Vec<WrongArguments> {
    let schema = &definition.parameters;
    let given = right.as_object().cloned().unwrap_or_default();
    let mut all = Vec::new();
    let required = schema.get("required").and_then(Value::as_array);
    let first = required
        .and_then(|names| names.first())
        .and_then(Value::as_str);
    if let Some(name) = first {
        let mut arguments = given.clone();
        arguments.shift_remove(name);
        all.push(WrongArguments {
            id: "missing",
            description: format!("without \"{name}\""),
            arguments: arguments.into(),
            is_acceptable: false,
        });
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.and_then(|properties| {
        first
            .and_then(|name| properties.get_key_value(name))
            .or_else(|| properties.iter().next())
    });
    if let Some((name, property)) = named {
        let other = match kind(property) {
            "string" => json!({ "not": "a string" }),
            _ => json!("not what it should be"),
        };
        let mut arguments = given.clone();
        arguments.insert(name.clone(), other);
        all.push(WrongArguments {
            id: "wrong_type",
            description: format!("with a wrong type for \"{name}\""),
            arguments: arguments.into(),
            // The schema may not restrict the type.
            is_acceptable: property.get("type").is_none(),
        });
    }
    let mut arguments = given;
    arguments.insert("haft_unknown".to_owned(), json!(true));
    all.push(WrongArguments {
        id: "unknown",
        description: "with an unknown parameter".to_owned(),
        arguments: arguments.into(),
        is_acceptable: true,
    });
    all
}

/// Puts a text into valid arguments, in a parameter that accepts it, or else in one
/// called `haft_text`. Returns the arguments and the parameter.
pub(super) fn with_text(definition: &Definition, right: &Value, text: &str) -> (Value, String) {
    let properties = definition
        .parameters
        .get("properties")
        .and_then(Value::as_object);
    for (name, _) in properties
        .into_iter()
        .flatten()
        .filter(|(_, schema)| kind(schema) == "string")
    {
        let mut arguments = right.clone();
        if let Some(fields) = arguments.as_object_mut() {
            fields.insert(name.clone(), json!(text));
        }
        if accepts(definition, &arguments).is_ok() {
            return (arguments, name.clone());
        }
    }
    let mut arguments = right.clone();
    if let Some(fields) = arguments.as_object_mut() {
        fields.insert("haft_text".to_owned(), json!(text));
    }
    (arguments, "haft_text".to_owned())
}
