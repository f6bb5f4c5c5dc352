//! Checks headers that repeat parts of a message for proxies that route it without parsing
//! it. From 2026-07-28 on they are required, and must match the message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft::AnyTool;
use http::HeaderMap;
use serde_json::Value;
use std::sync::Arc;

/// Prefix of headers that repeat parameters.
const PARAMETER: &str = "mcp-param-";

/// Compares the headers with the message.
///
/// # Errors
/// With a description of the mismatch.
pub(super) fn check(
    headers: &HeaderMap,
    message: &Value,
    tool: impl FnOnce(&str) -> Option<Arc<dyn AnyTool>>,
) -> Result<(), String> {
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return Ok(());
    };
    match single(headers, "mcp-method")? {
        None => return Err("the header Mcp-Method is missing".to_owned()),
        Some(given) if given != method => {
            return Err("the header Mcp-Method differs from the method of the message".to_owned());
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
    let given = single(headers, "mcp-name")?.ok_or("the header Mcp-Name is missing")?;
    if decoded(given).as_deref() != Some(name) {
        return Err("the header Mcp-Name differs from the name in the message".to_owned());
    }
    if method != "tools/call" {
        return Ok(());
    }
    let Some(tool) = tool(name) else {
        return Ok(());
    };
    let mut repeated = Vec::new();
    collect_annotated(
        &tool.definition().parameters,
        &mut Vec::new(),
        &mut repeated,
    );
    let arguments = params.and_then(|params| params.get("arguments"));
    repeated
        .iter()
        .try_for_each(|(path, header)| check_parameter(headers, arguments, path, header))
}

fn check_parameter(
    headers: &HeaderMap,
    arguments: Option<&Value>,
    path: &[&str],
    header: &str,
) -> Result<(), String> {
    let full = format!("{PARAMETER}{}", header.to_ascii_lowercase());
    let argument = arguments.and_then(|all| path.iter().try_fold(all, |value, key| value.get(key)));
    let expected = match argument {
        Some(Value::String(text)) => Some(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
        _ => None,
    };
    match (single(headers, &full)?, expected) {
        (None, None) => Ok(()),
        (Some(given), Some(expected)) if decoded(given).as_deref() == Some(&expected) => Ok(()),
        _ => Err(format!(
            "the header {full} differs from the argument {} of the call",
            path.join(".")
        )),
    }
}

/// Collects the parameters of a tool that must be repeated, with the names of their
/// headers.
fn collect_annotated<'a>(
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
        collect_annotated(property, path, found);
        path.pop();
    }
}

/// Returns the value of a header that may occur at most once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("the header {name} occurs twice"));
    }
    let text = value.to_str();
    text.map(Some)
        .map_err(|_| format!("the header {name} is not valid text"))
}

/// Decodes a value that was encoded to fit into a header.
fn decoded(value: &str) -> Option<String> {
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|value| value.strip_suffix("?="));
    match inner {
        None => Some(value.to_owned()),
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
    }
}
