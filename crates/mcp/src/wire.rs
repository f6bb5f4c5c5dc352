//! Converts tools and replies to the protocol's types.

use haft::{Content, Effect, Embedded, Reply, Runtime};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the tools in the runtime's order, for a client that can ask its user or not.
pub(crate) fn tools(runtime: &Runtime, asks: bool) -> Vec<Tool> {
    runtime
        .definitions_for(asks)
        .into_iter()
        .map(|definition| {
            let known = runtime.tools().get(&definition.name);
            let schema = match definition.parameters {
                Value::Object(schema) => schema,
                _ => JsonObject::new(),
            };
            let hints = hints(&definition.name, known.as_ref().map(|tool| tool.effect()));
            let description =
                Some(Cow::from(definition.description)).filter(|text| !text.is_empty());
            let mut tool = Tool::new_with_raw(definition.name, description, schema);
            tool.annotations = hints;
            tool.meta = Some(shown_in_full());
            // The tool of another server is passed on as that server describes it.
            if let Some(parts) = known.as_ref().and_then(|tool| tool.foreign_parts()) {
                let hints = parts.annotations.clone();
                let hints = hints.and_then(|hints| serde_json::from_value(hints).ok());
                tool.annotations = hints.or(tool.annotations);
                tool.title.clone_from(&parts.title);
                tool.output_schema = match &parts.output_schema {
                    Some(Value::Object(schema)) => Some(Arc::new(schema.clone())),
                    _ => None,
                };
            }
            tool
        })
        .collect()
}

/// Asks clients that shorten results to show these in full: haft has shortened them already,
/// and says where the rest is.
fn shown_in_full() -> MetaObject {
    /// Number of characters, above every limit of haft's.
    const MOST: u32 = 200_000;
    let mut meta = MetaObject::new();
    let name = "anthropic/maxResultSizeChars".to_owned();
    meta.insert(name, MOST.into());
    meta
}

/// Tools that only read, but not only on this machine.
const WEB: [&str; 2] = ["web_search", "web_fetch"];

fn hints(name: &str, effect: Option<Effect>) -> Option<ToolAnnotations> {
    Some(match effect? {
        Effect::Read | Effect::Pure => ToolAnnotations::new().read_only(true),
        Effect::Network if WEB.contains(&name) => {
            ToolAnnotations::new().read_only(true).open_world(true)
        }
        // A tool that is not known to be harmless may do anything.
        _ => ToolAnnotations::new().read_only(false).destructive(true),
    })
}

/// Converts a reply of the runtime.
pub(crate) fn result(reply: Reply) -> CallToolResult {
    let is_error = reply.is_error();
    // The structured result of another server is passed on, even if its text was truncated.
    let foreign = reply
        .details()
        .get("structured")
        .filter(|value| value.is_object());
    let structured = match (foreign, reply.document()) {
        (Some(foreign), _) => Some(foreign.clone()),
        (None, Some(document)) => Some(document.clone()).filter(Value::is_object),
        (None, None) => structured(reply.content()),
    };
    let links = links(&reply);
    let content = reply.into_content().into_iter().filter_map(block);
    let content = content.chain(links).collect();
    let mut result = if is_error {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    result.structured_content = structured;
    result
}

/// Returns the links in the result of another server.
fn links(reply: &Reply) -> Vec<ContentBlock> {
    let links = reply.details().get("resource_links");
    let links = links.and_then(Value::as_array).into_iter().flatten();
    links
        .filter_map(|link| serde_json::from_value(link.clone()).ok())
        .collect()
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
