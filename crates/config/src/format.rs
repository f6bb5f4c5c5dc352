//! `response_format`: the JSON Schema that a final answer must satisfy.

use super::read::{self, Links};
use crate::failure::Failure;
use haft_agent::ResponseFormat;
use serde_json::Value;
use std::path::Path;

/// Reads a schema from a file.
pub fn read(path: &Path) -> Result<Value, Failure> {
    let shown = path.to_string_lossy();
    let text = read::read(path, &shown, Links::Followed)?
        .ok_or_else(|| Failure::at(&shown, "response format not found: no such file"))?;
    let schema: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::at(&shown, &format!("not valid JSON: {}", json_error(&error))))?;
    compile(&schema, &shown)?;
    Ok(schema)
}

/// Describes a JSON error without the parser's jargon.
fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.replace("expected ident", "expected a JSON value")
}

/// Compiles a schema. `place` names its origin in messages.
pub fn compile(schema: &Value, place: &str) -> Result<ResponseFormat, Failure> {
    ResponseFormat::new(schema.clone())
        .map_err(|reason| Failure::at(place, &format!("response_format: {reason}")))
}

/// Returns the schema in a configuration, which is either inline or the name of a file. A
/// project's file cannot name a file, because its content is sent to the model.
pub(super) fn schema(
    given: &Value,
    folder: &Path,
    is_project: bool,
    place: &str,
) -> Result<Value, Failure> {
    match given {
        Value::String(_) if is_project => Err(Failure::at(
            place,
            "response_format must be the schema itself in a project's file; only your own \
             haft.yaml may name a file",
        )),
        Value::String(name) => read(&folder.join(name)),
        given => {
            compile(given, place)?;
            Ok(given.clone())
        }
    }
}
