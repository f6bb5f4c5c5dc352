//! Converting the return value of `execute` to result blocks, and blocks of another tool to
//! text.

use mlua::{Lua, Table, Value};

use crate::json;
use crate::protocol::{Block, MAX_LINE};

/// Maximum size of the content, in bytes; the rest of the line needs room too.
const ROOM: usize = MAX_LINE - 4096;

/// Converts the return value to blocks.
pub(crate) fn blocks(
    lua: &Lua,
    result: &Value,
    list: &Table,
) -> Result<Vec<Block<'static>>, String> {
    Ok(vec![match result {
        Value::Nil => Block::text(""),
        Value::Table(table) => match table.raw_get::<Value>("content") {
            Ok(Value::Table(content)) => return each(lua, &content),
            _ => Block::text(json::encode(result, list, ROOM).map_err(|problem| {
                format!("execute returned a table that cannot be converted to JSON: {problem}")
            })?),
        },
        Value::String(_) | Value::Integer(_) | Value::Number(_) | Value::Boolean(_) => {
            Block::text(text(lua, result)?)
        }
        other => {
            let kind = kind(other);
            return Err(format!(
                "execute returned {kind}; it must return a string or a table"
            ));
        }
    }])
}

fn each(lua: &Lua, content: &Table) -> Result<Vec<Block<'static>>, String> {
    let mut blocks = Vec::new();
    let mut size = 0;
    for index in 1..=content.raw_len() {
        let block = content.raw_get::<Value>(index).unwrap_or(Value::Nil);
        let (block, bytes) =
            block_of(lua, &block).map_err(|problem| format!("content[{index}]: {problem}"))?;
        size += bytes + 64;
        if size > ROOM {
            return Err(too_large(size));
        }
        blocks.push(block);
    }
    Ok(blocks)
}

fn block_of(lua: &Lua, block: &Value) -> Result<(Block<'static>, usize), String> {
    let Value::Table(block) = block else {
        return Err("a block is a table like {type = \"text\", text = \"…\"}".to_owned());
    };
    let field = |name: &str| block.raw_get::<Value>(name).unwrap_or(Value::Nil);
    match field("type") {
        Value::String(kind) if kind == "text" => match field("text") {
            Value::Nil => Err("`text` is missing".to_owned()),
            value => {
                let text = text(lua, &value).map_err(|problem| format!("`text`: {problem}"))?;
                let bytes = text.len();
                Ok((Block::text(text), bytes))
            }
        },
        Value::String(kind) if kind == "image" => {
            // Also as `source = {data = …, media_type = …}`.
            let source = match field("source") {
                Value::Table(source) => Some(source),
                _ => None,
            };
            let find = |names: &[&str]| {
                let within = |table: &Table, name: &&str| match table.raw_get::<Value>(*name) {
                    Ok(Value::String(value)) => Some(value),
                    _ => None,
                };
                let tables = std::iter::once(block).chain(&source);
                let mut found = tables
                    .flat_map(|table| names.iter().filter_map(move |name| within(table, name)));
                found.next()
            };
            let Some(data) = find(&["data", "Data"]) else {
                return Err("`data` is missing; it is the image as a string in base64".to_owned());
            };
            let data = text(lua, &Value::String(data))?;
            if data.is_empty()
                || !data
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
            {
                return Err("`data` is not base64".to_owned());
            }
            let mime_type = find(&["mimeType", "mime_type", "media_type", "MIMEType"])
                .map(|value| value.to_string_lossy());
            let mime_type = mime_type.ok_or("`mimeType` is missing, for example \"image/png\"")?;
            let bytes = data.len();
            Ok((Block::Image { data, mime_type }, bytes))
        }
        _ => Err("`type` is \"text\" or \"image\"".to_owned()),
    }
}

/// Converts a value to text. Invalid UTF-8 is replaced.
pub(crate) fn text(lua: &Lua, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => {
            let bytes = text.as_bytes();
            if bytes.len() > ROOM {
                return Err(too_large(bytes.len()));
            }
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        Value::Boolean(value) => Ok(value.to_string()),
        // Formatted by Lua's `tostring`, not by Rust.
        Value::Integer(_) | Value::Number(_) => match lua.coerce_string(value.clone()) {
            Ok(text) => Ok(text.map(|text| text.to_string_lossy()).unwrap_or_default()),
            Err(error) => Err(error.to_string()),
        },
        other => Err(format!("it is {} and not a string", kind(other))),
    }
}

/// Returns the type of a value in the words of the Lua manual.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "a boolean",
        Value::Integer(_) | Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Table(_) => "a table",
        Value::Function(_) => "a function",
        Value::Thread(_) => "a coroutine",
        _ => "a userdata",
    }
}

/// Returns the message for a result that does not fit on a line.
pub(crate) fn too_large(bytes: usize) -> String {
    format!("the result is too large: {bytes} bytes, at most {ROOM} fit")
}

/// Joins the reply of another tool as text. An image is only mentioned.
pub(crate) fn joined(content: &[serde_json::Value]) -> String {
    let mut joined = String::new();
    for block in content {
        if let Some(text) = block.get("text").and_then(serde_json::Value::as_str) {
            joined.push_str(text);
        } else {
            let kind = block
                .get("type")
                .and_then(serde_json::Value::as_str)
                .unwrap_or("unknown");
            joined.push_str(&format!("[{kind}]"));
        }
    }
    joined
}
