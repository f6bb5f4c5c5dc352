//! `response_format`: the JSON Schema that a final answer must satisfy.

use super::file::{self, Links};
use crate::exit::Failure;
use haft_agent::ResponseFormat;
use serde_json::Value;
use std::path::Path;

/// The schema that a file holds.
pub(crate) fn read(path: &Path) -> Result<Value, Failure> {
    let shown = path.to_string_lossy();
    let text = file::read(path, &shown, Links::Followed)?
        .ok_or_else(|| Failure::at(&shown, "response format not found: no such file"))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::at(&shown, &format!("not valid JSON: {}", json_trouble(&error)))
    })?;
    compile(&schema, &shown)?;
    Ok(schema)
}

/// What is wrong with a text that is not JSON, in words for a person.
fn json_trouble(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.replace("expected ident", "expected a JSON value")
}

/// The format that a schema makes. `place` is where it comes from.
pub(crate) fn compile(schema: &Value, place: &str) -> Result<ResponseFormat, Failure> {
    ResponseFormat::new(schema.clone())
        .map_err(|reason| Failure::at(place, &format!("response_format: {reason}")))
}

/// The schema that a configuration gives: itself, or the name of a file. A project's file
/// may not name one: what is in it is sent to the model.
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
