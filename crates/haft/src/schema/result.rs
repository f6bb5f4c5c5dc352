//! The declared schema of an external tool's structured results.

use super::generate;
use super::work::Work;
use crate::Error;
use crate::external::plugin::clean;
use serde_json::Value;

/// Maximum number of problems reported.
const MAX_PROBLEMS: usize = 5;

/// Maximum length of each problem, in characters.
const MAX_CHARS: usize = 200;

/// The schema of the structured results of an external tool.
#[derive(Debug)]
pub struct ResultSchema {
    schema: Value,
    validator: jsonschema::Validator,
}

/// Result of checking a value against the schema.
#[derive(Debug, PartialEq, Eq)]
pub enum ResultFit {
    /// The value matches.
    Good,
    /// The value does not match, for these reasons.
    Bad(Vec<String>),
    /// The check would take too long, so the value must not be relied on.
    Unchecked,
}

impl ResultSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// When the schema is invalid, or checking against it could take very long.
    pub fn new(tool: &str, schema: &Value) -> Result<Self, Error> {
        generate::check(tool, schema)?;
        let validator = generate::compile(schema).map_err(Error::Fault)?;
        Ok(Self {
            schema: schema.clone(),
            validator,
        })
    }

    /// Checks a result.
    #[must_use]
    pub fn check(&self, value: &Value) -> ResultFit {
        let work = Work::of(&self.schema, value);
        if work == Work::TooLarge {
            return ResultFit::Unchecked;
        }
        if self.validator.is_valid(value) {
            return ResultFit::Good;
        }
        if work == Work::Large {
            let problem = "it does not match; with this many values, haft cannot say where";
            return ResultFit::Bad(vec![problem.to_owned()]);
        }
        let errors = self.validator.iter_errors(value).take(MAX_PROBLEMS);
        let messages = errors.map(|error| {
            // Without the value itself, which may be large.
            let text = match error.instance_path().as_str() {
                "" => error.masked().to_string(),
                place => format!("{place}: {}", error.masked()),
            };
            clean(&text).chars().take(MAX_CHARS).collect()
        });
        ResultFit::Bad(messages.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn problems_with_a_result_are_reported_briefly() {
        let schema = json!({
            "type": "object",
            "properties": { "n": { "type": "integer" }, "kind": { "enum": ["a", "b"] } },
            "required": ["n"],
        });
        let shape = ResultSchema::new("t", &schema).unwrap();
        assert_eq!(
            shape.check(&json!({ "n": 1, "kind": "a" })),
            ResultFit::Good
        );
        for (value, word) in [
            (json!({ "n": "one" }), "/n: "),
            (json!({}), "\"n\""),
            (json!({ "n": 1, "kind": "c" }), "/kind: "),
            (json!([1]), "object"),
        ] {
            let ResultFit::Bad(problems) = shape.check(&value) else {
                panic!("{value} fits")
            };
            assert!(problems[0].contains(word), "{value}: {problems:?}");
        }
        let long = json!({ "n": 1, "kind": "x".repeat(100_000) });
        let ResultFit::Bad(problems) = shape.check(&long) else {
            panic!("it fits")
        };
        assert!(problems.join("").len() < 2_000);
    }

    #[test]
    fn few_problems_are_reported_and_an_expensive_schema_is_refused() {
        let fields: serde_json::Map<String, Value> = (0..1_000)
            .map(|n| (format!("field_{n}"), json!({ "type": "string" })))
            .collect();
        let wrong: serde_json::Map<String, Value> =
            fields.keys().map(|name| (name.clone(), json!(1))).collect();
        let schema = json!({ "type": "object", "properties": fields });
        let shape = ResultSchema::new("t", &schema).unwrap();
        let ResultFit::Bad(problems) = shape.check(&wrong.into()) else {
            panic!("it fits")
        };
        assert_eq!(problems.len(), MAX_PROBLEMS);
        let options: Vec<_> = (0..4_000).map(|n| json!({ "const": n })).collect();
        let schema = json!({ "type": "array", "items": { "anyOf": options } });
        let shape = ResultSchema::new("t", &schema).unwrap();
        let large = |many| shape.check(&json!(vec![-1; many]));
        assert!(matches!(large(100), ResultFit::Bad(problems) if problems.len() == 1));
        assert_eq!(large(50_000), ResultFit::Unchecked);
        for bad in [
            json!({ "type": 5 }),
            json!("text"),
            json!({ "$ref": "https://example.com/schema" }),
        ] {
            assert!(ResultSchema::new("t", &bad).is_err(), "{bad}");
        }
    }
}
