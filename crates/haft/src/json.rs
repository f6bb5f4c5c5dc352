//! JSON that others wrote: what it would cost to read is counted before it is read, and
//! a name that stands twice in an object is noticed while it is.

use haft_ops::text::brief::{NAME, brief};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// No text has more values: each costs many times the bytes that it is written with, a
/// list the double of that and an object five times as much.
pub const MOST_VALUES: usize = 150_000;

/// Nor does one have more others inside each other than can be read.
pub const DEEPEST: usize = 120;

/// What a value costs in memory, at least, in bytes.
const VALUE: usize = 100;

/// What is too much about a text, if something is. It is counted in one pass, and
/// nothing is kept. What is no JSON is counted as far as it looks like it.
#[must_use]
pub fn excess(text: &[u8]) -> Option<&'static str> {
    Shape::of(text).excess()
}

/// How far a text in JSON is from its end, and what it would cost to read.
#[derive(Debug, Default, Clone)]
pub struct Shape {
    depth: usize,
    deepest: usize,
    /// A bit for each of the innermost that are open: whether it is a list.
    lists: u128,
    values: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Shape {
    /// The shape of a text.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let mut shape = Self::default();
        shape.read(text);
        shape
    }

    /// The shape of a text whose beginning is not known and left a string open.
    #[must_use]
    pub fn in_string() -> Self {
        Self {
            in_string: true,
            ..Self::default()
        }
    }

    /// Takes in more of the text.
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

    /// Whether it goes on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.in_string || self.depth > 0
    }

    /// Whether what is open last is a list.
    #[must_use]
    pub fn is_in_list(&self) -> bool {
        !self.in_string && self.depth > 0 && self.lists & 1 == 1
    }

    /// Whether it has more inside each other than can be read.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.deepest > DEEPEST
    }

    /// What of it is too much to be read.
    #[must_use]
    pub fn excess(&self) -> Option<&'static str> {
        if self.is_too_deep() {
            Some("more than 120 levels")
        } else if self.values > MOST_VALUES {
            Some("more than 150,000 values")
        } else {
            None
        }
    }

    /// About how much memory its values take, beside its text, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.values.saturating_mul(VALUE)
    }
}

/// Parses a text, and says whether a name stands twice in an object of it. The last one
/// counts then, as for everybody else.
///
/// # Errors
/// When it is not JSON.
pub fn parse_noting(text: &[u8]) -> serde_json::Result<(Value, bool)> {
    let repeated = Cell::new(false);
    let value = parse(text, Build::Note(&repeated))?;
    Ok((value, repeated.get()))
}

/// Parses a text in which no name may stand twice in one object: the last one would
/// win, and nobody can know that it was meant.
///
/// # Errors
/// When it is not JSON, or when a name stands twice.
pub fn parse_strict(text: &[u8]) -> serde_json::Result<Value> {
    parse(text, Build::Refuse)
}

fn parse(text: &[u8], build: Build<'_>) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = build.deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// Builds a value. Where a name stands twice it either goes on or stops.
#[derive(Clone, Copy)]
enum Build<'a> {
    Note(&'a Cell<bool>),
    Refuse,
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
            let value = entries.next_value_seed(self)?;
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => match self {
                    Self::Note(repeated) => {
                        repeated.set(true);
                        place.insert(value);
                    }
                    Self::Refuse => {
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
    fn a_value_is_the_one_that_the_library_builds() {
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
    fn a_name_that_stands_twice_is_noted_or_refused() {
        for text in [
            r#"{"id":1,"id":2}"#,
            r#"{"a":[{"b":1,"b":1}]}"#,
            r#"{"a":1,"\u0061":2}"#,
        ] {
            let expected: Value = serde_json::from_str(text).expect("it is JSON");
            assert_eq!(parse_noting(text.as_bytes()).ok(), Some((expected, true)));
            let error = parse_strict(text.as_bytes()).expect_err("it is refused");
            assert!(error.to_string().contains("is given twice"), "{error}");
        }
        let long = "x".repeat(1 << 20);
        let text = format!("{{\"{long}\":1,\"{long}\":2}}");
        let error = parse_strict(text.as_bytes()).expect_err("it is refused");
        assert!(error.to_string().len() < 500);
    }

    #[test]
    fn what_costs_too_much_is_known_before_it_is_read() {
        let many = "1,".repeat(MOST_VALUES);
        for text in [
            format!("[{many}1]"),
            format!("{{\"a\":[{}1]}}", "[],".repeat(MOST_VALUES / 2)),
            format!("[{}1]", "{},".repeat(MOST_VALUES / 5)),
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
