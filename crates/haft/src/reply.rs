//! What a call answers: content for the model, details for the host.

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
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// The encoded picture in Base64.
        data: String,
        /// Its media type.
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    /// A sound.
    Audio {
        /// The encoded sound in Base64.
        data: String,
        /// Its media type.
        #[serde(rename = "mimeType")]
        media_type: String,
    },
    /// A thing that has an address, with what is in it.
    Resource {
        /// The thing.
        resource: Embedded,
    },
}

/// What stands at an address, carried within a reply: text, or bytes in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Embedded {
    /// Its address.
    pub uri: String,
    /// Its media type, if it is known.
    #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What it says, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes in Base64, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Content {
    /// How many bytes it has.
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

    /// What it says, if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Resource { resource } => resource.text.as_deref(),
            Self::Image { .. } | Self::Audio { .. } => None,
        }
    }

    /// As text for whoever can show nothing else: what is no text is named with its
    /// size.
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

/// The answer to a call: ordered blocks, whether it is a failure, and details
/// that only the host sees.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub(crate) content: Vec<Content>,
    pub(crate) is_error: bool,
    pub(crate) details: Map<String, Value>,
    /// A last line that no cut takes away.
    pub(crate) footer: Option<String>,
    pub(crate) cutting: Cutting,
    /// Another limit than the toolset's.
    pub(crate) limit: Option<Limit>,
    pub(crate) is_final: bool,
    pub(crate) is_pending: bool,
}

/// Who cuts a reply that is too long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Cutting {
    /// The runtime, as the limit says.
    #[default]
    AsLimited,
    /// The runtime, keeping this part.
    Keeping(Keep),
    /// The tool has done it and said so.
    Done,
    /// Nobody: a part of a document is no document. The tool keeps it short.
    Never,
}

impl Reply {
    /// A text.
    pub fn text_block(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text { text: text.into() }],
            ..Self::default()
        }
    }

    /// A JSON document in one text block. It is never cut, as the rest would be no
    /// JSON: whoever makes it keeps it short.
    #[must_use]
    pub fn json(document: &Value) -> Self {
        Self {
            cutting: Cutting::Never,
            ..Self::text_block(document.to_string())
        }
    }

    /// A picture, from its encoded bytes.
    #[must_use]
    pub fn image(bytes: &[u8], media_type: &str) -> Self {
        Self::default().and_image(bytes, media_type)
    }

    /// A failure, in words for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text_block(text)
        }
    }

    /// The same as a failure.
    #[must_use]
    pub fn as_error(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// A text that also ends the agent's turn.
    pub fn final_answer(text: impl Into<String>) -> Self {
        Self {
            is_final: true,
            ..Self::text_block(text)
        }
    }

    /// With another text block.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(Content::Text { text: text.into() });
        self
    }

    /// With a picture, from its encoded bytes.
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

    /// With any other block.
    #[must_use]
    pub fn and(mut self, block: Content) -> Self {
        self.content.push(block);
        self
    }

    /// With a detail for the host.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// With a line at the end that no cut takes away.
    #[must_use]
    pub fn footer(mut self, line: impl Into<String>) -> Self {
        self.footer = Some(line.into());
        self
    }

    /// When it is too long, this part is kept.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.cutting = Cutting::Keeping(keep);
        self
    }

    /// With another limit than that of the toolset.
    #[must_use]
    pub fn limited(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The tool has cut it already, and the text says so.
    #[must_use]
    pub fn already_cut(mut self) -> Self {
        self.cutting = Cutting::Done;
        self
    }

    /// The blocks, in order.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// The blocks, for whoever passes them on.
    #[must_use]
    pub fn into_content(self) -> Vec<Content> {
        self.content
    }

    /// All text blocks, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Whether it is a failure.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Whether it ends the turn.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Whether the call was not made, because nobody could say yet if it may: it can be
    /// made again with their answer ([`crate::Call::answered`]).
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// What only the host sees.
    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// The reply as the command line and events show it.
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

/// The picture, with a line that says what it is.
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
    fn what_is_no_text_is_named_with_its_size() {
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
