//! Values that must never be printed.

use haft_ops::text::secrets::{Spelled, without_userinfo};
use std::fmt;

/// Replaces a secret in a text.
const MARK: &str = "***";

/// Shorter secrets are not searched for in escaped forms, to avoid false matches.
const SHORTEST: usize = 6;

/// A key, a token, a password, or an address that grants access by itself.
///
/// Cannot be printed by accident: `Debug` shows `***`, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value. Trims whitespace, because secret files usually end in a newline.
    pub fn new(value: impl AsRef<str>) -> Self {
        Self(value.as_ref().trim().to_owned())
    }

    /// Returns the value itself, to be sent to the service it belongs to.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Removes the value from a text, also where it is escaped, and user names and passwords
    /// from addresses.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let text = text.replace(&self.0, MARK);
        let text = match self.0.len() {
            ..SHORTEST => text,
            _ => Spelled::new(&self.0).cut_from(&text, MARK).unwrap_or(text),
        };
        without_userinfo(&text, MARK).into_owned()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self::new(value)
    }
}
