//! Keys.

use haft::ops::text::secrets::{Spelled, without_userinfo};
use std::fmt;

/// Stands where a key was.
const MARK: &str = "***";

/// Shorter ones are looked for as they are, and in no other spelling.
const SHORTEST: usize = 6;

/// A key. It cannot be printed by accident: its `Debug` is `***`, and it has no
/// `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a value. White space around it is how files end, never meant.
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().to_owned())
    }

    /// The value itself, for whoever sends it to its owner.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// A text without the value, whoever put it there.
    pub(super) fn redacted(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let text = text.replace(&self.0, MARK);
        // A provider may say it as it stood in what was sent.
        let text = match self.0.len() {
            ..SHORTEST => text,
            _ => Spelled::new(&self.0).cut_from(&text, MARK).unwrap_or(text),
        };
        without_userinfo(&text, MARK).into_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
