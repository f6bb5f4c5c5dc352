//! Settings of the chat. Only the user can set them.

use super::Notes;
use super::file::Themes;
use super::setting::{OneOf, Setting};
use super::sources::Sources;
use super::{Origin, joined};
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

/// Settings of the chat.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatEntry {
    /// Colours: auto, dark, light, contrast or terminal.
    pub(crate) theme: Option<Setting<OneOf<Themes>>>,
}

/// Effective settings of the chat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chat {
    /// Name of the theme, if one is chosen.
    pub theme: Option<String>,
}

/// Reads the settings.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Chat, Failure> {
    let mut chat = Chat::default();
    let mut shown = Map::new();
    let mut from: Vec<Origin> = Vec::new();
    if let Some(given) = sources.first(|file| &file.chat.theme)? {
        chat.theme = Some(given.value.0.clone());
        shown.insert("theme".to_owned(), given.written);
        from.push(given.from);
    }
    notes.show_value("chat", shown.into(), joined(&from));
    Ok(chat)
}
