//! `response_format`: a JSON Schema that the final answer must satisfy.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, Validator};
use serde_json::Value;

/// Number of times that the model is asked to correct its answer.
pub(crate) const MAX_CORRECTIONS: u32 = 3;

/// Maximum number of problems in one note to the model.
const MAX_PROBLEMS: usize = 10;

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
    /// When it is not a valid JSON Schema, with the reason.
    pub fn new(schema: Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("must be a JSON Schema, which is an object".to_owned());
        }
        let compiled = jsonschema::options()
            // These patterns match in linear time, whatever the schema contains.
            .with_pattern_options(PatternOptions::regex())
            .offline()
            .build(&schema);
        match compiled {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) => Err(match error.kind() {
                ValidationErrorKind::Referencing(ReferencingError::Unretrievable {
                    uri, ..
                }) => format!(
                    "$ref refers to another document, {uri}, which is not fetched; put that part \
                     below $defs in this schema and refer to it as #/$defs/NAME"
                ),
                _ => format!("not a valid JSON Schema: {error}"),
            }),
        }
    }

    /// Returns the instructions for the model.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "When you are done, your last message must be one JSON value that satisfies the \
             JSON Schema below: nothing before it, nothing after it, no code fence.\n\n{}",
            self.schema
        )
    }

    /// Parses and validates an answer.
    ///
    /// # Errors
    /// When it is not JSON, or does not satisfy the schema. Lists the problems, one per line.
    pub(crate) fn read(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|error| format!("not valid JSON: {}", reason(&error)))?;
        let mut problems: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(MAX_PROBLEMS + 1)
            .map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                path => format!("{path}: {error}"),
            })
            .collect();
        if problems.is_empty() {
            return Ok(value);
        }
        if problems.len() > MAX_PROBLEMS {
            problems.truncate(MAX_PROBLEMS);
            problems.push("and more".to_owned());
        }
        Err(problems.join("\n"))
    }
}

/// Describes a syntax error in JSON.
#[must_use]
pub(crate) fn reason(error: &serde_json::Error) -> String {
    // serde_json's term for the start of `true`, `false` or `null`.
    let text = error.to_string();
    text.replace("expected ident", "expected a JSON value")
}

/// Removes a code fence around the whole text.
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
    fn answers_are_parsed_with_and_without_a_code_fence() {
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
            assert!(error.contains("which is not fetched"), "{error}");
            assert!(error.contains(elsewhere), "{error}");
        }
        let error = ResponseFormat::new(json!({ "type": "nonsense" })).unwrap_err();
        assert!(error.contains("not a valid JSON Schema"), "{error}");
    }
}
