//! Keys.

use std::fmt;

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
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
