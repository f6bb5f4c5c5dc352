//! Finds the id of a message that is too long to store. The sender waits for an answer, so
//! the id is searched while the message streams past: some clients write it first, some
//! last. Only text that could be the id is stored.

use serde_json::Value;

/// Longest text that can be a name or an id.
const MAX_LENGTH: usize = 1024;

/// Searches for the member `id` of the outermost object.
#[derive(Debug, Default)]
pub(super) struct IdFinder {
    depth: usize,
    string: StringState,
    /// Text since the last `:` or `,` of the outermost object.
    piece: Vec<u8>,
    position: Position,
    found: Option<Value>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StringState {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    #[default]
    Name,
    Value,
    /// The value of the member `id`.
    Id,
}

impl IdFinder {
    /// Processes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match self.string {
                StringState::Outside => self.outside(byte),
                StringState::Escaped => {
                    self.string = StringState::Inside;
                    self.store(&[byte]);
                }
                StringState::Inside => {
                    self.store(&[byte]);
                    match byte {
                        b'"' => self.string = StringState::Outside,
                        b'\\' => self.string = StringState::Escaped,
                        _ => {
                            // A string may be most of the message, so it is skipped
                            // quickly.
                            let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                            let (text, behind) = rest.split_at(plain);
                            self.store(text);
                            rest = behind;
                        }
                    }
                }
            }
        }
    }

    /// Returns the id if it has been found.
    pub(super) fn found(&self) -> Option<&Value> {
        self.found.as_ref()
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = StringState::Inside;
                self.store(b"\"");
            }
            b'{' | b'[' => {
                self.store(&[byte]);
                // Only an object has an id. An array disables the search.
                if self.depth > 0 || byte == b'{' {
                    self.depth += 1;
                } else {
                    self.depth = usize::MAX / 2;
                }
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end_member();
                }
                self.depth = self.depth.saturating_sub(1);
                self.store(&[byte]);
            }
            b':' if self.depth == 1 => {
                let name = serde_json::from_slice::<String>(&self.piece);
                self.position = match name.as_deref() {
                    Ok("id") => Position::Id,
                    _ => Position::Value,
                };
                self.piece.clear();
            }
            b',' if self.depth == 1 => self.end_member(),
            _ => self.store(&[byte]),
        }
    }

    /// Ends a member of the outermost object.
    fn end_member(&mut self) {
        if self.position == Position::Id
            && let Ok(id @ (Value::String(_) | Value::Number(_))) =
                serde_json::from_slice(&self.piece)
        {
            self.found = Some(id);
        }
        self.position = Position::Name;
        self.piece.clear();
    }

    /// Stores text that could be a name or an id. One byte beyond the maximum is stored
    /// too, which makes the text invalid.
    fn store(&mut self, bytes: &[u8]) {
        if self.depth == 1 {
            let room = (MAX_LENGTH + 1)
                .saturating_sub(self.piece.len())
                .min(bytes.len());
            self.piece
                .extend_from_slice(bytes.get(..room).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id(text: &str) -> Option<Value> {
        let mut whole = IdFinder::default();
        whole.feed(text.as_bytes());
        // The result must not depend on the chunks.
        for size in [1, 2, 3, 7] {
            let mut pieces = IdFinder::default();
            text.as_bytes()
                .chunks(size)
                .for_each(|piece| pieces.feed(piece));
            assert_eq!(pieces.found(), whole.found(), "{text}");
        }
        whole.found().cloned()
    }

    #[test]
    fn the_id_of_the_outermost_object_is_found_anywhere() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"x""#, Some(json!(1))),
            (
                r#" {"params":{"id":2,"a":[{"id":3}]} , "id" : "x\"y" }"#,
                Some(json!("x\"y")),
            ),
            (
                r#"{"params":{"text":"\"id\":7,{[\\"},"\u0069d":-8}"#,
                Some(json!(-8)),
            ),
            (r#"{"params":"}","id":1}"#, Some(json!(1))),
            (r#"{"id":1"#, None),
            (r#"{"id":null,"a":1}"#, None),
            (r#"{"id":{"id":1}}"#, None),
            (r#"{"id":[1,2]}"#, None),
            (r#"{"params":{"id":1}}"#, None),
            (r#"[{"id":1}]"#, None),
            (r#"{"a":"id","b":1}"#, None),
            ("\"id\":1}", None),
            ("", None),
        ] {
            assert_eq!(id(text), expected, "{text}");
        }
    }

    #[test]
    fn long_text_is_not_stored() {
        let text = format!(r#"{{"{0}":1,"id":"{0}","x":"{0}"}}"#, "a".repeat(100_000));
        let mut seeker = IdFinder::default();
        seeker.feed(text.as_bytes());
        assert_eq!(seeker.found(), None);
        assert!(seeker.piece.capacity() <= 4 * MAX_LENGTH);
    }
}
