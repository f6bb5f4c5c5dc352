//! Parsing JSON from other programs: estimates the cost before parsing, and detects
//! duplicate names in objects.

use haft_ops::text::brief::{NAME, brief};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Maximum number of values in a text. In memory, each value takes many times its length in
/// the text: a list twice as much, an object five times.
pub const MAX_VALUES: usize = 150_000;

/// Maximum nesting depth.
pub const MAX_DEPTH: usize = 120;

/// Minimum size of a value in memory, in bytes.
const VALUE: usize = 100;

/// Returns which limit a text exceeds, if any. Counts in one pass without allocating. Text
/// that is not JSON is counted as far as it looks like JSON.
#[must_use]
pub fn excess(text: &[u8]) -> Option<&'static str> {
    Shape::of(text).excess()
}

/// Open brackets of a JSON text and the cost of parsing it.
#[derive(Debug, Default, Clone)]
pub struct Shape {
    depth: usize,
    deepest: usize,
    /// One bit for each of the innermost open brackets: whether it is a list.
    lists: u128,
    values: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Shape {
    /// Returns the shape of a text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut shape = Self::default();
        shape.read(text);
        shape
    }

    /// Returns the shape of a text that starts within a string.
    #[must_use]
    pub fn in_string() -> Self {
        Self {
            in_string: true,
            ..Self::default()
        }
    }

    /// Adds more of the text.
    pub fn read(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {
                        let plain = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                        rest = rest.get(plain..).unwrap_or_default();
                    }
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    let is_list = *byte == b'[';
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                    self.lists = (self.lists << 1) | u128::from(is_list);
                    self.values += if is_list { 2 } else { 5 };
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.lists >>= 1;
                }
                b',' => self.values += 1,
                _ => {}
            }
        }
    }

    /// Whether the text is incomplete.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.in_string || self.depth > 0
    }

    /// Whether the innermost open bracket is a list.
    #[must_use]
    pub fn is_in_list(&self) -> bool {
        !self.in_string && self.depth > 0 && self.lists & 1 == 1
    }

    /// Returns the number of values, weighted by their size in memory.
    #[must_use]
    pub fn values(&self) -> usize {
        self.values
    }

    /// Whether it is nested too deeply.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.deepest > MAX_DEPTH
    }

    /// Returns which limit the text exceeds, if any.
    #[must_use]
    pub fn excess(&self) -> Option<&'static str> {
        if self.is_too_deep() {
            Some("more than 120 levels")
        } else if self.values > MAX_VALUES {
            Some("more than 150,000 values")
        } else {
            None
        }
    }

    /// Returns the approximate memory of its values in bytes, without strings.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.values.saturating_mul(VALUE)
    }
}

/// Parses a text, and returns whether an object contains a name twice. The last value
/// counts then, as in other parsers.
///
/// # Errors
/// When it is not JSON.
pub fn parse_noting(text: &[u8]) -> serde_json::Result<(Value, bool)> {
    let repeated = Cell::new(false);
    let value = parse(text, Build::Note(&repeated))?;
    Ok((value, repeated.get()))
}

/// Parses a text in which no object may contain a name twice: the last value would win, and
/// it is unknown which one was meant.
///
/// # Errors
/// When it is not JSON, or an object contains a name twice.
pub fn parse_strict(text: &[u8]) -> serde_json::Result<Value> {
    parse(text, Build::Refuse)
}

/// Like [`parse_strict`], but accepts any value under one of `names`. Such a value stays
/// text if a name occurs twice within it, so that the caller can report it later.
///
/// # Errors
/// When it is not JSON, or when a name occurs twice elsewhere.
pub fn parse_strict_but(text: &[u8], names: &[&str]) -> serde_json::Result<Value> {
    parse(text, Build::RefuseBut(names))
}

fn parse(text: &[u8], build: Build<'_>) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = build.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Builds a value, and either notes or refuses duplicate names.
#[derive(Clone, Copy)]
enum Build<'a> {
    Note(&'a Cell<bool>),
    Refuse,
    /// Refuses, but keeps values under these names as text.
    RefuseBut(&'a [&'a str]),
}

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = match self {
                Self::RefuseBut(names) if names.contains(&name.as_str()) => {
                    let raw = entries.next_value::<Box<RawValue>>()?;
                    let strict = parse_strict(raw.get().as_bytes());
                    strict.unwrap_or_else(|_| raw.get().into())
                }
                _ => entries.next_value_seed(self)?,
            };
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => match self {
                    Self::Note(repeated) => {
                        repeated.set(true);
                        place.insert(value);
                    }
                    Self::Refuse | Self::RefuseBut(_) => {
                        let name = brief(place.key(), NAME);
                        return Err(A::Error::custom(format!("\"{name}\" is given twice")));
                    }
                },
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: &[&str] = &[
        "null",
        "[1, -2, 3.5, 1e400, 18446744073709551615, true, \"a\\u00e9\"]",
        "{\"a\":{\"b\":[{}]},\"c\":\"\"}",
        "{\"a\":1} x",
        "{\"a\"",
    ];

    #[test]
    fn values_are_the_same_as_from_the_library() {
        for text in TEXTS {
            let expected: Option<Value> = serde_json::from_str(text).ok();
            let noted = parse_noting(text.as_bytes()).ok();
            assert_eq!(
                noted,
                expected.clone().map(|value| (value, false)),
                "{text}"
            );
            assert_eq!(parse_strict(text.as_bytes()).ok(), expected, "{text}");
        }
    }

    #[test]
    fn duplicate_names_are_noted_or_refused() {
        for text in [
            r#"{"id":1,"id":2}"#,
            r#"{"a":[{"b":1,"b":1}]}"#,
            r#"{"a":1,"\u0061":2}"#,
        ] {
            let expected: Value = serde_json::from_str(text).expect("it is JSON");
            assert_eq!(parse_noting(text.as_bytes()).ok(), Some((expected, true)));
            let error = parse_strict(text.as_bytes()).expect_err("duplicate names must be refused");
            assert!(error.to_string().contains("is given twice"), "{error}");
        }
        let long = "x".repeat(1 << 20);
        let text = format!("{{\"{long}\":1,\"{long}\":2}}");
        let error = parse_strict(text.as_bytes()).expect_err("duplicate names must be refused");
        assert!(error.to_string().len() < 500);
    }

    #[test]
    fn a_value_under_a_listed_name_stays_text_if_a_name_is_given_twice() {
        let parse = |text: &str| parse_strict_but(text.as_bytes(), &["args"]);
        let value = parse(r#"{"call":{"args":{"a":1}}}"#).expect("it is JSON");
        assert_eq!(value["call"]["args"]["a"], 1);
        for twice in [r#"{"a":1,"a":2}"#, r#"{"b":[{"a":1,"\u0061":2}]}"#] {
            let value = parse(&format!(r#"{{"call":[{{"args":{twice}}}]}}"#));
            assert_eq!(value.expect("it is JSON")["call"][0]["args"], twice);
        }
        for text in [
            r#"{"args":1,"args":2}"#,
            r#"{"args":1,"\u0061rgs":2}"#,
            r#"{"args":{},"b":{"c":1,"c":2}}"#,
        ] {
            let error = parse(text).expect_err("it is refused");
            assert!(error.to_string().contains("is given twice"), "{error}");
        }
    }

    #[test]
    fn excessive_cost_is_known_before_parsing() {
        let many = "1,".repeat(MAX_VALUES);
        for text in [
            format!("[{many}1]"),
            format!("{{\"a\":[{}1]}}", "[],".repeat(MAX_VALUES / 2)),
            format!("[{}1]", "{},".repeat(MAX_VALUES / 5)),
            format!("{}{}", "[".repeat(200), "]".repeat(200)),
        ] {
            assert!(excess(text.as_bytes()).is_some());
        }
        // In a string they are text, whatever is escaped before it.
        for text in [
            Value::from(many.clone()).to_string(),
            format!("{{\"a\\\\\":\"\\\"{many}\"}}"),
        ] {
            assert_eq!(excess(text.as_bytes()), None);
        }
    }
}
