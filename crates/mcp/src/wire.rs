//! Tools and replies as the protocol writes them.

use haft::{Content, Effect, Embedded, Reply, Runtime};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::Value;
use std::borrow::Cow;

/// The tools, in the runtime's order.
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
        // What is not known to be harmless may be anything.
        _ => ToolAnnotations::new().read_only(false).destructive(true),
    }
}

/// A reply of the runtime.
pub(crate) fn result(reply: Reply) -> CallToolResult {
    let is_error = reply.is_error();
    let structured = structured(reply.content());
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

/// The JSON object that the reply is, if it is one and nothing else.
fn structured(content: &[Content]) -> Option<Value> {
    let [Content::Text { text }] = content else {
        return None;
    };
    let text = text.trim();
    // Most replies are no JSON; two characters say so.
    if !(text.starts_with('{') && text.ends_with('}')) {
        return None;
    }
    serde_json::from_str::<JsonObject>(text)
        .ok()
        .map(Value::Object)
}

/// How many tools an error names.
const MOST_NAMED: usize = 60;

/// Not a result: the model asked for nothing that the client was offered.
pub(crate) fn unknown_tool(runtime: &Runtime, name: &str) -> ErrorData {
    let known = runtime.tools().names();
    let similar = haft::ops::text::spelling::closest(name, known.iter().cloned(), 3);
    let shown: String = name.chars().take(100).collect();
    let hint = if similar.is_empty() {
        format!("there are: {}", haft::ops::text::few(&known, MOST_NAMED))
    } else {
        format!("did you mean {}?", similar.join(" or "))
    };
    ErrorData::invalid_params(format!("unknown tool: {shown}; {hint}"), None)
}
