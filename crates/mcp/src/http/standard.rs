//! Headers that repeat what a message says, for those who route it without reading it.
//! From 2026-07-28 on they have to be there, and to be true.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::AnyTool;
use http::HeaderMap;
use serde_json::Value;
use std::sync::Arc;

/// What the headers of parameters begin with.
const PARAMETER: &str = "mcp-param-";

/// Compares the headers with the message.
///
/// # Errors
/// With what is wrong.
pub(super) fn check(
    headers: &HeaderMap,
    message: &Value,
    tool: impl FnOnce(&str) -> Option<Arc<dyn AnyTool>>,
) -> Result<(), String> {
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return Ok(());
    };
    match one(headers, "mcp-method")? {
        None => return Err("the header Mcp-Method is missing".to_owned()),
        Some(given) if given != method => {
            return Err("the header Mcp-Method is not the method of the message".to_owned());
        }
        Some(_) => {}
    }
    let params = message.get("params");
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let name = params.and_then(|params| params.get(key)?.as_str());
    let Some(name) = name else {
        return Ok(());
    };
    let given = one(headers, "mcp-name")?.ok_or("the header Mcp-Name is missing")?;
    if decoded(given).as_deref() != Some(name) {
        return Err("the header Mcp-Name is not the name in the message".to_owned());
    }
    if method != "tools/call" {
        return Ok(());
    }
    let Some(tool) = tool(name) else {
        return Ok(());
    };
    let mut repeated = Vec::new();
    annotated(
        &tool.definition().parameters,
        &mut Vec::new(),
        &mut repeated,
    );
    let arguments = params.and_then(|params| params.get("arguments"));
    repeated
        .iter()
        .try_for_each(|(path, header)| agrees(headers, arguments, path, header))
}

fn agrees(
    headers: &HeaderMap,
    arguments: Option<&Value>,
    path: &[&str],
    header: &str,
) -> Result<(), String> {
    let full = format!("{PARAMETER}{}", header.to_ascii_lowercase());
    let argument = arguments.and_then(|all| path.iter().try_fold(all, |value, key| value.get(key)));
    let said = match argument {
        Some(Value::String(text)) => Some(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
        _ => None,
    };
    match (one(headers, &full)?, said) {
        (None, None) => Ok(()),
        (Some(given), Some(said)) if decoded(given).as_deref() == Some(&said) => Ok(()),
        _ => Err(format!(
            "the header {full} is not the argument {} of the call",
            path.join(".")
        )),
    }
}

/// Parameters of a tool that are repeated, and in which headers.
fn annotated<'a>(
    schema: &'a Value,
    path: &mut Vec<&'a str>,
    found: &mut Vec<(Vec<&'a str>, &'a str)>,
) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    for (name, property) in properties {
        path.push(name);
        if let Some(Value::String(header)) = property.get("x-mcp-header")
            && !header.is_empty()
        {
            found.push((path.clone(), header));
        }
        annotated(property, path, found);
        path.pop();
    }
}

/// A header that there may be once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("the header {name} is there twice"));
    }
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| format!("the header {name} is no text"))
}

/// A value as it was before it was made fit for a header.
fn decoded(value: &str) -> Option<String> {
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="));
    match inner {
        None => Some(value.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}
