//! The reply to a call: content for the model, details for the front end.

use haft_ops::picture::Picture;
use haft_ops::text::limit::{Keep, Limit};
use haft_ops::text::size::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One block of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image.
    Image {
        /// The encoded image in Base64.
        data: String,
        /// Media type, such as `image/png`.
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    /// An audio clip.
    Audio {
        /// The encoded audio in Base64.
        data: String,
        /// Media type, such as `audio/wav`.
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    /// An embedded resource with a URI.
    Resource {
        /// The resource and its content.
        resource: Embedded,
    },
}

/// A resource embedded in a reply: text, or bytes in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Embedded {
    /// URI of the resource.
    pub uri: String,
    /// Media type, if known.
    #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Content in Base64, if it is binary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Content {
    /// Returns the size of the block in bytes, as encoded.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let length = match self {
            Self::Text { text } => text.len(),
            Self::Image { data, .. } | Self::Audio { data, .. } => data.len(),
            Self::Resource { resource } => {
                let length = |part: &Option<String>| part.as_ref().map_or(0, String::len);
                length(&resource.text) + length(&resource.blob)
            }
        };
        length as u64
    }

    /// Returns the text of a text block or text resource.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Resource { resource } => resource.text.as_deref(),
            Self::Image { .. } | Self::Audio { .. } => None,
        }
    }

    /// Returns the block as text, for front ends that can only show text. Other content is
    /// described by type and size.
    #[must_use]
    pub fn in_words(&self) -> Cow<'_, str> {
        let named = |what: &str, media_type: &str, data: &str| {
            let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
            let bytes = (data.len() / 4 * 3).saturating_sub(padding);
            Cow::Owned(format!("[{what} {media_type}, {}]", size(bytes as u64)))
        };
        match self {
            Self::Text { text } => Cow::Borrowed(text),
            Self::Image { data, media_type } => named("image", media_type, data),
            Self::Audio { data, media_type } => named("audio", media_type, data),
            Self::Resource { resource } => match (&resource.text, &resource.blob) {
                (Some(text), _) => Cow::Borrowed(text),
                (None, blob) => {
                    let media_type = resource.media_type.as_deref().unwrap_or("of some type");
                    let what = format!("resource {}", resource.uri);
                    named(&what, media_type, blob.as_deref().unwrap_or_default())
                }
            },
        }
    }
}

/// The result of a call: ordered blocks, whether it is an error, and details that only the
/// front end sees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub(crate) content: Vec<Content>,
    pub(crate) is_error: bool,
    pub(crate) details: Map<String, Value>,
    /// Last line, which truncation never removes.
    pub(crate) footer: Option<String>,
    pub(crate) cutting: Cutting,
    /// Limit that replaces the toolset's.
    pub(crate) limit: Option<Limit>,
    pub(crate) is_final: bool,
    pub(crate) is_pending: bool,
    /// The reply of a call that has run, while the user decides about its changes.
    pub(crate) held: Option<Box<Reply>>,
    /// The JSON document that the first block consists of, if the reply was created from
    /// one.
    pub(crate) document: Option<Value>,
}

/// Truncation of a reply that is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cutting {
    /// By the runtime, as the limit says.
    #[default]
    AsLimited,
    /// By the runtime, keeping this part.
    Keeping(Keep),
    /// The tool has already truncated it and noted so in the text.
    Done,
    /// Never: part of a JSON document is useless. The tool keeps it short.
    Never,
}

impl Reply {
    /// Creates a reply with one text block.
    pub fn text_block(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text { text: text.into() }],
            ..Self::default()
        }
    }

    /// Creates a reply with a JSON document in one text block. It is never truncated, since
    /// part of a document is not valid JSON, so the caller must keep it short.
    #[must_use]
    pub fn json(document: Value) -> Self {
        let text = document.to_string();
        Self {
            cutting: Cutting::Never,
            document: Some(document),
            ..Self::text_block(text)
        }
    }

    /// Creates a reply with an image, given its encoded bytes.
    #[must_use]
    pub fn image(bytes: &[u8], media_type: &str) -> Self {
        Self::default().and_image(bytes, media_type)
    }

    /// Creates an error reply with a message for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text_block(text)
        }
    }

    /// Marks the reply as an error.
    #[must_use]
    pub fn as_error(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Creates a text reply that also ends the agent's turn.
    pub fn final_answer(text: impl Into<String>) -> Self {
        Self {
            is_final: true,
            ..Self::text_block(text)
        }
    }

    /// Appends a text block.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(Content::Text { text: text.into() });
        self
    }

    /// Appends an image, given its encoded bytes.
    #[must_use]
    pub fn and_image(mut self, bytes: &[u8], media_type: &str) -> Self {
        use base64::Engine;
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.content.push(Content::Image {
            data,
            media_type: media_type.to_owned(),
        });
        self
    }

    /// Appends any block.
    #[must_use]
    pub fn and(mut self, block: Content) -> Self {
        self.content.push(block);
        self
    }

    /// Adds a detail for the front end; the model does not see it.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a list for the host only, unless it is empty.
    #[must_use]
    pub(crate) fn detail_if(self, name: &str, list: Vec<String>) -> Self {
        if list.is_empty() {
            return self;
        }
        self.detail(name, list)
    }

    /// Sets a last line that truncation never removes.
    #[must_use]
    pub fn footer(mut self, line: impl Into<String>) -> Self {
        self.footer = Some(line.into());
        self
    }

    /// Adds a line above the last one.
    #[must_use]
    pub(crate) fn above_footer(mut self, line: &str) -> Self {
        self.footer = Some(match self.footer.take() {
            Some(last) => format!("{line}\n{last}"),
            None => line.to_owned(),
        });
        self
    }

    /// Tells the model which of its parameters the tool does not have.
    pub(crate) fn ignored(self, names: &[&str]) -> Self {
        if names.is_empty() {
            return self;
        }
        let line = format!("[ignored unknown parameters: {}]", names.join(", "));
        self.told("ignored_parameters", names.into(), &line)
    }

    /// Adds a fact for the model: as a field of a JSON object, otherwise as a line.
    pub(crate) fn told(self, field: &str, value: Value, line: &str) -> Self {
        match self.document {
            Some(Value::Object(mut fields)) => {
                fields.insert(field.to_owned(), value);
                let Self {
                    document,
                    mut content,
                    ..
                } = Self::json(Value::Object(fields));
                content.extend(self.content.into_iter().skip(1));
                Self {
                    document,
                    content,
                    ..self
                }
            }
            document => Self { document, ..self }.above_footer(line),
        }
    }

    /// Sets which part is kept if the reply is too long.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.cutting = Cutting::Keeping(keep);
        self
    }

    /// Sets a limit that replaces the toolset's.
    #[must_use]
    pub fn limited(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Declares that the tool has already truncated the text and noted so in it.
    #[must_use]
    pub fn already_cut(mut self) -> Self {
        self.cutting = Cutting::Done;
        self
    }

    /// Returns the blocks, in order.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// Returns the blocks by value.
    #[must_use]
    pub fn into_content(self) -> Vec<Content> {
        self.content
    }

    /// Returns the JSON document that the reply consists of, if it was created from one and
    /// nothing was added to it.
    #[must_use]
    pub fn document(&self) -> Option<&Value> {
        let is_whole = self.content.len() == 1 && self.cutting == Cutting::Never;
        self.document.as_ref().filter(|_| is_whole)
    }

    /// Returns all text blocks, joined with newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Whether the call failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Whether this reply ends the agent's turn.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Whether the call was not made because it waits for approval. Make it again with the
    /// user's answer ([`crate::Call::answered`]).
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Returns the reply of a call that has run, if this reply is pending because the user
    /// decides about the call's changes. [`crate::Runtime::settle`] takes it.
    #[must_use]
    pub fn held(&self) -> Option<&Self> {
        self.held.as_deref()
    }

    /// Returns a reply from its JSON form; `None` if it is not one.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Self> {
        Some(Self {
            content: serde_json::from_value(json.get("content")?.clone()).ok()?,
            is_error: json.get("is_error")?.as_bool()?,
            details: json.get("details")?.as_object()?.clone(),
            ..Self::default()
        })
    }

    /// Returns the details that only the front end sees.
    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// Returns the reply as JSON, as in events and on the command line.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::json!({ "content": self.content, "is_error": self.is_error, "details": self.details })
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text_block(text)
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::text_block(text)
    }
}

/// The image, preceded by a line with its type and size.
impl From<&Picture> for Reply {
    fn from(picture: &Picture) -> Self {
        let (width, height) = picture.original;
        let scaled = if picture.size == picture.original {
            String::new()
        } else {
            format!(", scaled to {}×{}", picture.size.0, picture.size.1)
        };
        Self::from(format!(
            "[Image {}, {width}×{height}{scaled}]",
            picture.media_type
        ))
        .and_image(&picture.bytes, picture.media_type)
        .detail("media_type", picture.media_type)
        .detail("width", picture.size.0)
        .detail("height", picture.size.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_other_than_text_is_described_by_type_and_size() {
        let audio = Content::Audio {
            data: "AAAA".repeat(512) + "AA==",
            media_type: "audio/wav".to_owned(),
        };
        assert_eq!(audio.in_words(), "[audio audio/wav, 1.5KB]");
        let resource = |text: Option<&str>, blob: Option<&str>| Content::Resource {
            resource: Embedded {
                uri: "test://x".to_owned(),
                media_type: None,
                text: text.map(str::to_owned),
                blob: blob.map(str::to_owned),
            },
        };
        assert_eq!(resource(Some("words"), None).in_words(), "words");
        let binary = resource(None, Some("AAAA"));
        assert_eq!(binary.in_words(), "[resource test://x of some type, 3B]");
        let written = serde_json::to_value(&binary).unwrap();
        let expected = serde_json::json!({ "type": "resource", "resource": { "uri": "test://x", "blob": "AAAA" } });
        assert_eq!(written, expected);
    }
}
