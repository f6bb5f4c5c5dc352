//! `response_format`: a JSON Schema that the final answer must satisfy.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, Validator};
use serde_json::Value;

/// How often an answer that does not fit goes back to the model.
pub(crate) const REPAIRS: u32 = 3;

/// How many problems the model is told at once.
const NAMED: usize = 10;

/// A JSON Schema that the final answer of an agent must satisfy.
#[derive(Debug)]
pub struct ResponseFormat {
    schema: Value,
    validator: Validator,
}

impl ResponseFormat {
    /// Compiles the schema.
    ///
    /// # Errors
    /// When it is not a valid JSON Schema. The text says why.
    pub fn new(schema: Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("must be a JSON Schema, which is an object".to_owned());
        }
        let compiled = jsonschema::options()
            // These take no longer than linear time, whatever a schema says.
            .with_pattern_options(PatternOptions::regex())
            .offline()
            .build(&schema);
        match compiled {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) => Err(match error.kind() {
                ValidationErrorKind::Referencing(ReferencingError::Unretrievable {
                    uri, ..
                }) => format!(
                    "$ref leads to another document, {uri}, and none is fetched; put that part \
                     below $defs in this schema and refer to it as #/$defs/NAME"
                ),
                _ => format!("not a valid JSON Schema: {error}"),
            }),
        }
    }

    /// What the model is told about it.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "When you are done, your last message must be one JSON value that satisfies the \
             JSON Schema below: nothing before it, nothing after it, no code fence.\n\n{}",
            self.schema
        )
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// When it is not JSON, or does not satisfy the schema: all problems, one per line.
    pub(crate) fn read(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|error| format!("not valid JSON: {}", reason(&error)))?;
        let mut problems: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(NAMED + 1)
            .map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            })
            .collect();
        if problems.is_empty() {
            return Ok(value);
        }
        if problems.len() > NAMED {
            problems.truncate(NAMED);
            problems.push("and more".to_owned());
        }
        Err(problems.join("\n"))
    }
}

/// What is wrong with a text that is not JSON.
#[must_use]
pub(crate) fn reason(error: &serde_json::Error) -> String {
    // Its word for the beginning of `true`, `false` or `null`.
    let text = error.to_string();
    text.replace("expected ident", "expected a JSON value")
}

/// The text without a code fence around all of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inner {
        Some((_, inner)) => inner.trim(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read_with_and_without_a_fence() {
        let schema = json!({
            "type": "object",
            "properties": { "count": { "type": "integer" } },
            "required": ["count"],
        });
        let format = ResponseFormat::new(schema).unwrap();
        for answer in [
            r#"{"count":3}"#,
            " {\"count\": 3}\n",
            "```json\n{\"count\":3}\n```",
            "```\n{\"count\":3}```",
        ] {
            assert_eq!(format.read(answer), Ok(json!({ "count": 3 })), "{answer}");
        }
        for (answer, problem) in [
            ("Three.", "not valid JSON"),
            ("nothing", "expected a JSON value at line 1"),
            ("", "not valid JSON"),
            ("Here: {\"count\":3}", "not valid JSON"),
            ("{}", "\"count\" is a required property"),
            (r#"{"count":"3"}"#, "/count: "),
        ] {
            let problems = format.read(answer).unwrap_err();
            assert!(problems.contains(problem), "{answer}: {problems}");
        }
        assert!(ResponseFormat::new(json!("text")).is_err());
        for elsewhere in ["https://example.com/schema.json", "file:///etc/passwd"] {
            let error = ResponseFormat::new(json!({ "$ref": elsewhere })).unwrap_err();
            assert!(error.contains("none is fetched"), "{error}");
            assert!(error.contains(elsewhere), "{error}");
        }
        let error = ResponseFormat::new(json!({ "type": "nonsense" })).unwrap_err();
        assert!(error.contains("not a valid JSON Schema"), "{error}");
    }
}
