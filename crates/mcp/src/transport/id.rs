//! The id of a message that is too long to be kept. Somebody waits for an answer to
//! it, so it is looked for while the message goes by: some clients write it first, some
//! last. Nothing is kept but what may be the id.

use serde_json::Value;

/// The longest text that is taken for a name or an id.
const MOST: usize = 1024;

/// Looks for the member `id` of the outermost object.
#[derive(Debug, Default)]
pub(super) struct Seeker {
    depth: usize,
    string: Text,
    /// What stands between two marks of the outermost object.
    piece: Vec<u8>,
    side: Side,
    found: Option<Value>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Side {
    #[default]
    Name,
    Value,
    /// The value of what is called `id`.
    Id,
}

impl Seeker {
    /// Looks at the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match self.string {
                Text::Outside => self.outside(byte),
                Text::Escaped => {
                    self.string = Text::Inside;
                    self.take(&[byte]);
                }
                Text::Inside => {
                    self.take(&[byte]);
                    match byte {
                        b'"' => self.string = Text::Outside,
                        b'\\' => self.string = Text::Escaped,
                        _ => {
                            // A text may be most of the message.
                            let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                            let (text, behind) = rest.split_at(plain);
                            self.take(text);
                            rest = behind;
                        }
                    }
                }
            }
        }
    }

    /// The id, if it has been seen.
    pub(super) fn found(&self) -> Option<&Value> {
        self.found.as_ref()
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.string = Text::Inside;
                self.take(b"\"");
            }
            b'{' | b'[' => {
                self.take(&[byte]);
                // What is no object has no id.
                if self.depth > 0 || byte == b'{' {
                    self.depth += 1;
                } else {
                    self.depth = usize::MAX / 2;
                }
            }
            b'}' | b']' => {
                if self.depth == 1 {
                    self.end();
                }
                self.depth = self.depth.saturating_sub(1);
                self.take(&[byte]);
            }
            b':' if self.depth == 1 => {
                let name = serde_json::from_slice::<String>(&self.piece);
                self.side = match name.as_deref() {
                    Ok("id") => Side::Id,
                    _ => Side::Value,
                };
                self.piece.clear();
            }
            b',' if self.depth == 1 => self.end(),
            _ => self.take(&[byte]),
        }
    }

    /// A member is over.
    fn end(&mut self) {
        if self.side == Side::Id
            && let Ok(id @ (Value::String(_) | Value::Number(_))) =
                serde_json::from_slice(&self.piece)
        {
            self.found = Some(id);
        }
        self.side = Side::Name;
        self.piece.clear();
    }

    /// Keeps what may be a name or an id; one byte more than the longest says that it
    /// is none.
    fn take(&mut self, bytes: &[u8]) {
        if self.depth == 1 {
            let room = (MOST + 1).saturating_sub(self.piece.len()).min(bytes.len());
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
        let mut whole = Seeker::default();
        whole.feed(text.as_bytes());
        // However it comes.
        for size in [1, 2, 3, 7] {
            let mut pieces = Seeker::default();
            text.as_bytes()
                .chunks(size)
                .for_each(|piece| pieces.feed(piece));
            assert_eq!(pieces.found(), whole.found(), "{text}");
        }
        whole.found().cloned()
    }

    #[test]
    fn the_id_of_the_outermost_object_is_found_wherever_it_is() {
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
    fn what_is_long_is_not_kept() {
        let text = format!(r#"{{"{0}":1,"id":"{0}","x":"{0}"}}"#, "a".repeat(100_000));
        let mut seeker = Seeker::default();
        seeker.feed(text.as_bytes());
        assert_eq!(seeker.found(), None);
        assert!(seeker.piece.capacity() <= 4 * MOST);
    }
}
