//! Example arguments: derived from a schema, for a call that should succeed.

use super::{Checker, Ranges};
use crate::Definition;
use serde_json::{Map, Value, json};

/// Maximum nesting of a schema that is followed.
const MAX_DEPTH: usize = 8;

/// Maximum length of a generated text, in characters.
const MAX_TEXT: u64 = 100_000;

/// Maximum items of a generated array.
const MAX_ITEMS: u64 = 20;

/// Texts to try for a pattern, since a match cannot be derived from it.
const TEXTS: [&str; 16] = [
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

/// Parameters to include in an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleParameters {
    /// Those that the schema requires.
    Required,
    /// All of them.
    All,
}

impl Definition {
    /// Returns arguments that the schema should accept. Some schemas have conditions that an
    /// example cannot be derived from.
    #[must_use]
    pub fn example(&self, which: ExampleParameters) -> Value {
        let example = Example {
            root: &self.parameters,
            which,
        };
        let mut arguments = example.object(&self.parameters, 0);
        for (name, schema) in properties(&self.parameters) {
            if schema.get("pattern").is_some() && arguments.get(name).is_some_and(Value::is_string)
            {
                self.fit(name, &mut arguments);
            }
        }
        Value::Object(arguments)
    }

    /// Puts a text into arguments, in the first parameter that accepts it, or in an
    /// additional one. Returns `None` if the schema does not allow that.
    #[must_use]
    pub fn example_with(&self, arguments: &Value, text: &str) -> Option<Value> {
        let texts = properties(&self.parameters).filter(|(_, schema)| kind(schema) == "string");
        let names = texts.map(|(name, _)| name.as_str());
        names.chain(["haft_text"]).find_map(|name| {
            let mut arguments = arguments.clone();
            arguments
                .as_object_mut()?
                .insert(name.to_owned(), json!(text));
            self.refusal(&arguments).is_none().then_some(arguments)
        })
    }

    /// Tries texts until the pattern of a parameter accepts one.
    fn fit(&self, name: &str, arguments: &mut Map<String, Value>) {
        let first = arguments.get(name).cloned();
        let texts = TEXTS.iter().map(|text| json!(text));
        for text in first.clone().into_iter().chain(texts) {
            arguments.insert(name.to_owned(), text);
            let refusal = self.refusal(&Value::Object(arguments.clone()));
            // Only this parameter is checked; others may be invalid too.
            if !refusal.is_some_and(|reason| reason.contains(name)) {
                return;
            }
        }
        arguments.insert(name.to_owned(), first.unwrap_or_default());
    }

    /// Returns the reason why arguments do not match the schema.
    fn refusal(&self, arguments: &Value) -> Option<String> {
        let checker = Checker::new(&self.parameters, Ranges::Refuse);
        let prepared = checker.prepare(arguments.clone());
        prepared.err().map(|error| error.to_string())
    }
}

struct Example<'a> {
    root: &'a Value,
    which: ExampleParameters,
}

impl Example<'_> {
    fn object(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        properties(schema)
            .filter(|(name, _)| self.which == ExampleParameters::All || is_required(name))
            .map(|(name, schema)| (name.clone(), self.value(schema, depth + 1)))
            .collect()
    }

    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        let first = |name: &str| schema.get(name).and_then(Value::as_array)?.first();
        let given = ["const", "default", "example"]
            .iter()
            .find_map(|name| schema.get(name));
        if let Some(given) = given
            .or_else(|| first("examples"))
            .or_else(|| first("enum"))
        {
            return given.clone();
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(place) = reference.and_then(|reference| reference.strip_prefix('#')) {
            let schema = self.root.pointer(place);
            return schema.map_or(Value::Null, |schema| self.value(schema, depth + 1));
        }
        let choices = ["anyOf", "oneOf", "allOf"]
            .iter()
            .filter_map(|name| schema.get(name)?.as_array());
        let useful = |choice: &&Value| choice.get("type").is_none_or(|kind| kind != "null");
        if let Some(choice) = choices.flatten().find(useful) {
            return self.value(choice, depth + 1);
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
        let least = bound("minItems").unwrap_or(1).max(1);
        let count = least.min(bound("maxItems").unwrap_or(least)).min(MAX_ITEMS);
        let Some(item) = schema.get("items") else {
            return (1..=count).map(|number| json!(number)).collect();
        };
        let is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let choices = item.get("enum").and_then(Value::as_array);
        let different = |at: u64, value: Value| {
            let choice = choices.and_then(|choices| choices.get(usize::try_from(at).ok()?));
            match (choice, value) {
                (Some(choice), _) => choice.clone(),
                (None, Value::String(text)) if at > 0 => json!(format!("{text}{at}")),
                (None, Value::Number(number)) => {
                    json!(number.as_i64().unwrap_or(0).saturating_add_unsigned(at))
                }
                (None, value) => value,
            }
        };
        let values = (0..count).map(|at| (at, self.value(item, depth + 1)));
        let values = values.map(|(at, value)| match is_unique {
            true => different(at, value),
            false => value,
        });
        values.collect()
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten()
}

/// Returns the type of a schema, guessed if not given.
fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null")
        }
        _ => None,
    };
    let guesses = [
        ("properties", "object"),
        ("items", "array"),
        ("minimum", "number"),
        ("maximum", "number"),
    ];
    let guess = guesses.iter().find(|(name, _)| schema.get(name).is_some());
    named.unwrap_or_else(|| guess.map_or("string", |(_, kind)| kind))
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
    let bound = |name: &str, otherwise: u64| {
        let bound = schema.get(name).and_then(Value::as_u64);
        usize::try_from(bound.unwrap_or(otherwise).min(MAX_TEXT)).unwrap_or(0)
    };
    let length = text.chars().count().max(bound("minLength", 0));
    text.chars()
        .chain(std::iter::repeat('x'))
        .take(length.min(bound("maxLength", MAX_TEXT)))
        .collect()
}

/// Returns a number within the bounds, 1 if possible.
fn number(schema: &Value, is_whole: bool) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    // An exclusive bound is left by one, or by half of the range.
    let step = match (above, below.or(bound("maximum"))) {
        (Some(least), Some(most)) if !is_whole => ((most - least) / 2.0).min(1.0),
        _ => 1.0,
    };
    let least = bound("minimum").or(above.map(|least| least + step));
    let most = bound("maximum").or(below.map(|most| most - step));
    let mut number = most.map_or(1.0, |most| most.min(1.0));
    number = least.map_or(number, |least| number.max(least));
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        number = (number / step).ceil() * step;
    }
    if is_whole {
        number = number.ceil();
    }
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(parameters: Value) -> Definition {
        Definition {
            name: "a".to_owned(),
            description: String::new(),
            parameters,
            guidance: None,
        }
    }

    #[test]
    fn an_example_matches_its_schema() {
        let definition = definition(json!({
            "type": "object",
            "required": ["count"],
            "additionalProperties": false,
            "$defs": { "day": { "type": "string", "format": "date" } },
            "properties": {
                "count": { "type": "integer", "minimum": 5, "maximum": 9 },
                "even": { "type": "integer", "multipleOf": 2 },
                "half": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5 },
                "less": { "type": "integer", "exclusiveMaximum": 0 },
                "unit": { "enum": ["metre", "mile"] },
                "list": { "type": "array", "minItems": 3, "uniqueItems": true, "items": { "type": "string" } },
                "word": { "type": "string", "pattern": "^[0-9]{3}$" },
                "name": { "type": ["null", "string"], "minLength": 9, "maxLength": 12 },
                "day": { "$ref": "#/$defs/day" },
                "either": { "anyOf": [{ "type": "null" }, { "type": "boolean" }] },
                "inner": { "properties": { "a": {} } },
            },
        }));
        let required = definition.example(ExampleParameters::Required);
        assert_eq!(required, json!({ "count": 5 }));
        let all = definition.example(ExampleParameters::All);
        assert_eq!(definition.refusal(&all), None, "{all}");
        assert_eq!(all.as_object().unwrap().len(), 11, "{all}");
    }

    #[test]
    fn a_text_goes_into_a_parameter_that_accepts_it() {
        let property = json!({ "type": "string" });
        let number = json!({ "type": "integer" });
        let short = json!({ "type": "string", "maxLength": 2 });
        let closed = definition(json!({
            "type": "object", "properties": { "n": number, "short": short, "text": property },
            "additionalProperties": false,
        }));
        let with = |definition: &Definition| definition.example_with(&json!({ "n": 1 }), "long");
        assert_eq!(with(&closed), Some(json!({ "n": 1, "text": "long" })));
        let none = definition(json!({
            "type": "object", "properties": { "n": number }, "additionalProperties": false,
        }));
        assert_eq!(with(&none), None);
        let open = definition(json!({ "type": "object", "properties": {} }));
        assert_eq!(with(&open), Some(json!({ "n": 1, "haft_text": "long" })));
    }
}
