//! Converts tools and replies to the protocol's types.

use haft::{Content, Effect, Embedded, Reply, Runtime};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::Value;
use std::borrow::Cow;

/// Returns the tools in the runtime's order.
pub(crate) fn tools(runtime: &Runtime) -> Vec<Tool> {
    runtime
        .definitions()
        .into_iter()
        .map(|definition| {
            let effect = runtime
                .tools()
                .get(&definition.name)
                .map(|tool| tool.effect());
            let schema = match definition.parameters {
                Value::Object(schema) => schema,
                _ => JsonObject::new(),
            };
            let description =
                Some(Cow::from(definition.description)).filter(|text| !text.is_empty());
            let tool = Tool::new_with_raw(definition.name, description, schema);
            match effect {
                Some(effect) => tool.with_annotations(annotations(effect)),
                None => tool,
            }
        })
        .collect()
}

fn annotations(effect: Effect) -> ToolAnnotations {
    match effect {
        Effect::Read | Effect::Pure => ToolAnnotations::new().read_only(true),
        // A tool that is not known to be harmless may do anything.
        _ => ToolAnnotations::new().read_only(false).destructive(true),
    }
}

/// Converts a reply of the runtime.
pub(crate) fn result(reply: Reply) -> CallToolResult {
    let is_error = reply.is_error();
    let structured = match reply.document() {
        Some(document) => Some(document.clone()).filter(Value::is_object),
        None => structured(reply.content()),
    };
    let content = reply.into_content().into_iter().filter_map(block).collect();
    let mut result = if is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = structured;
    result
}

fn block(content: Content) -> Option<ContentBlock> {
    match content {
        Content::Text { text } => Some(ContentBlock::text(text)),
        Content::Image { data, media_type } => Some(ContentBlock::image(data, media_type)),
        Content::Audio { data, media_type } => Some(ContentBlock::audio(data, media_type)),
        Content::Resource { resource } => Some(ContentBlock::resource(embedded(resource))),
        _ => None,
    }
}

fn embedded(resource: Embedded) -> ResourceContents {
    let Embedded {
        uri,
        media_type: mime_type,
        text,
        blob,
    } = resource;
    match (text, blob) {
        (None, Some(blob)) => ResourceContents::BlobResourceContents {
            uri,
            mime_type,
            blob,
            meta: None,
        },
        (text, _) => ResourceContents::TextResourceContents {
            uri,
            mime_type,
            text: text.unwrap_or_default(),
            meta: None,
        },
    }
}

/// Returns the JSON object that the text of a reply consists of, if it is exactly one
/// object.
fn structured(content: &[Content]) -> Option<Value> {
    let [Content::Text { text }] = content else {
        return None;
    };
    let text = text.trim();
    // Most replies are not JSON; two characters are enough to tell.
    if !(text.starts_with('{') && text.ends_with('}')) {
        return None;
    }
    serde_json::from_str::<JsonObject>(text)
        .ok()
        .map(Value::Object)
}

/// Maximum number of tools that an error lists.
const MAX_LISTED: usize = 60;

/// Returns the error for a tool that does not exist. This is a protocol error and not a
/// tool result, because no tool ran.
pub(crate) fn unknown_tool(runtime: &Runtime, name: &str) -> ErrorData {
    let known = runtime.tools().names();
    let similar = haft::ops::text::spelling::closest(name, known.iter().cloned(), 3);
    let shown: String = name.chars().take(100).collect();
    let hint = if similar.is_empty() {
        format!("there are: {}", haft::ops::text::few(&known, MAX_LISTED))
    } else {
        format!("did you mean {}?", similar.join(" or "))
    };
    ErrorData::invalid_params(format!("unknown tool: {shown}; {hint}"), None)
}
