//! What a structured result has to look like, where whoever sends it has declared that.

use super::generate;
use crate::Error;
use crate::external::plugin::clean;
use serde_json::Value;

/// How many problems are named.
const MOST_PROBLEMS: usize = 5;

/// How long each may be, in characters.
const LONGEST: usize = 200;

/// How much work one check may be: parts of the schema times parts of the value.
const MOST_WORK: usize = 50_000_000;

/// The schema of somebody else's results.
#[derive(Debug)]
pub struct Shape {
    parts: usize,
    validator: jsonschema::Validator,
}

/// What came of a check.
#[derive(Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is what was declared.
    Good,
    /// It is not, for these reasons.
    Bad(Vec<String>),
    /// Nobody knows: the check would take too long. It is not to be relied on.
    Unchecked,
}

impl Shape {
    /// Reads a schema.
    ///
    /// # Errors
    /// When it is not a schema, or checking against it could take very long.
    pub fn new(tool: &str, schema: &Value) -> Result<Self, Error> {
        generate::check(tool, schema)?;
        let validator = generate::compile(schema).map_err(Error::Fault)?;
        Ok(Self {
            parts: parts(schema),
            validator,
        })
    }

    /// Checks a result.
    #[must_use]
    pub fn check(&self, value: &Value) -> Fit {
        if self.parts.saturating_mul(parts(value)) > MOST_WORK {
            return Fit::Unchecked;
        }
        if self.validator.is_valid(value) {
            return Fit::Good;
        }
        let errors = self.validator.iter_errors(value).take(MOST_PROBLEMS);
        let said = errors.map(|error| {
            // Without the value itself, which may be large.
            let text = match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                place => format!("{place}: {}", error.masked()),
            };
            clean(&text).chars().take(LONGEST).collect()
        });
        Fit::Bad(said.collect())
    }
}

/// How many values there are in a value.
fn parts(value: &Value) -> usize {
    let mut open = vec![value];
    let mut many = 0_usize;
    while let Some(value) = open.pop() {
        many += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    many
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_checked_and_what_is_wrong_is_named_briefly() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer" }, "kind": { "enum": ["a", "b"] } },
            "required": ["n"],
        });
        let shape = Shape::new("t", &schema).unwrap();
        assert_eq!(shape.check(&json!({ "n": 1, "kind": "a" })), Fit::Good);
        for (value, word) in [
            (json!({ "n": "one" }), "/n: "),
            (json!({}), "\"n\""),
            (json!({ "n": 1, "kind": "c" }), "/kind: "),
            (json!([1]), "object"),
        ] {
            let Fit::Bad(problems) = shape.check(&value) else {
                panic!("{value} fits")
            };
            assert!(problems[0].contains(word), "{value}: {problems:?}");
        }
        let long = json!({ "n": 1, "kind": "x".repeat(100_000) });
        let Fit::Bad(problems) = shape.check(&long) else {
            panic!("it fits")
        };
        assert!(problems.join("").len() < 2_000);
    }

    #[test]
    fn an_error_names_few_problems_and_a_bomb_is_no_schema() {
        let fields: serde_json::Map<String, Value> = (0..1_000)
            .map(|n| (format!("field_{n}"), json!({ "type": "string" })))
            .collect();
        let wrong: serde_json::Map<String, Value> =
            fields.keys().map(|name| (name.clone(), json!(1))).collect();
        let schema = json!({ "type": "object", "properties": fields });
        let shape = Shape::new("t", &schema).unwrap();
        let Fit::Bad(problems) = shape.check(&wrong.into()) else {
            panic!("it fits")
        };
        assert_eq!(problems.len(), MOST_PROBLEMS);
        let large = Value::Array(vec![Value::Null; 50_000]);
        assert_eq!(shape.check(&json!({ "more": large })), Fit::Unchecked);
        for bad in [
            json!({ "type": 5 }),
            json!("text"),
            json!({ "$ref": "https://example.com/schema" }),
        ] {
            assert!(Shape::new("t", &bad).is_err(), "{bad}");
        }
    }
}
