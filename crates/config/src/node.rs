//! YAML as a tree in which every key and value has its position. Only this file uses the
//! parser.

use super::variables;
use crate::failure::Failure;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{MessageFormatter, Spanned, UserMessageFormatter};
use std::fmt;

/// A line and a column, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) content: Content,
    /// The text as written, if variables in it were expanded.
    pub(crate) written: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Null, boolean, number or text.
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(Name, Node)>),
}

/// A key and its position.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) at: Position,
    pub(crate) text: String,
}

/// A YAML syntax error.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) at: Option<Position>,
    pub(crate) message: String,
}

impl Malformed {
    /// Creates an error in this file.
    pub(crate) fn failure(&self, shown: &str) -> Failure {
        let place = self
            .at
            .map(|at| format!("{shown}:{}:{}", at.line, at.column));
        Failure::at(place.as_deref().unwrap_or(shown), &self.message)
    }
}

/// Parses a document. An empty document is null.
pub(crate) fn parse(text: &str) -> Result<Node, Malformed> {
    let options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        // `sandbox: off` is text, not a boolean.
        strict_booleans: true,
        with_snippet: false,
        // Deeper than any setting needs, but safe for the stack.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 10_000 },
        budget: serde_saphyr::budget! { max_depth: 24, flow_nesting_limit: 24 },
    };
    let node: Option<Node> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| Malformed {
            at: error.location().map(position),
            message: UserMessageFormatter
                .format_message(error.without_snippet())
                .into_owned(),
        })?;
    let start = Position { line: 1, column: 1 };
    Ok(node.unwrap_or_else(|| Node::new(start, Content::Scalar(Value::Null))))
}

fn position(location: serde_saphyr::Location) -> Position {
    Position {
        line: location.line(),
        column: location.column(),
    }
}

impl Node {
    pub(crate) fn new(at: Position, content: Content) -> Self {
        let written = None;
        Self {
            at,
            content,
            written,
        }
    }

    /// Names the type in messages. Never the value itself, which may be a secret.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Scalar(Value::Null) => "nothing",
            Content::Scalar(Value::Bool(_)) => "true or false",
            Content::Scalar(Value::Number(_)) => "a number",
            Content::Scalar(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.content, Content::Scalar(Value::Null))
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// Creates a value that is in no file.
    pub(crate) fn of(value: &Value) -> Self {
        let at = Position { line: 0, column: 0 };
        let name = |name: &String| Name {
            at,
            text: name.clone(),
        };
        let content = match value {
            Value::Array(items) => Content::List(items.iter().map(Self::of).collect()),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, value)| (name(key), Self::of(value)));
                Content::Map(entries.collect())
            }
            scalar => Content::Scalar(scalar.clone()),
        };
        Self::new(at, content)
    }

    /// Returns the value without positions.
    pub(crate) fn plain(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::plain).collect(),
            Content::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(name, node)| (name.text.clone(), node.plain()))
                    .collect(),
            ),
        }
    }

    /// Returns the texts in the value, each with the key that it belongs to.
    pub(crate) fn texts<'a>(&'a self, key: &'a str) -> Vec<(&'a str, &'a str)> {
        match &self.content {
            Content::Scalar(value) => value.as_str().map(|text| (key, text)).into_iter().collect(),
            Content::List(items) => items.iter().flat_map(|item| item.texts(key)).collect(),
            Content::Map(entries) => entries
                .iter()
                .flat_map(|(name, node)| node.texts(&name.text))
                .collect(),
        }
    }

    /// Returns the names of the variables in the value.
    pub(crate) fn variables(&self) -> Vec<&str> {
        let texts = self.texts("").into_iter();
        texts
            .flat_map(|(_, text)| variables::variables(text))
            .collect()
    }

    /// Returns the value with variables expanded.
    ///
    /// # Errors
    /// Returns the position and the name of a variable that is not set.
    pub(crate) fn expanded(
        &self,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, (Position, String)> {
        let mut node = self.clone();
        match &mut node.content {
            Content::Scalar(Value::String(text)) => {
                let value = variables::expand(text, lookup).map_err(|name| (self.at, name))?;
                let written = std::mem::replace(text, value);
                let has_variables = variables::variables(&written).next().is_some();
                node.written = has_variables.then_some(written);
            }
            Content::Scalar(_) => {}
            Content::List(items) => {
                for item in items {
                    *item = item.expanded(lookup)?;
                }
            }
            Content::Map(entries) => {
                for (_, value) in entries {
                    *value = value.expanded(lookup)?;
                }
            }
        }
        Ok(node)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self::new(position(spanned.referenced), spanned.value))
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self {
            at: position(spanned.referenced),
            text: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Content::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_positions() {
        let node = parse("a: 1\nb:\n  - x\n  - {c: off}\n").unwrap();
        let Content::Map(entries) = node.content else {
            panic!("no map")
        };
        let (name, value) = &entries[1];
        assert_eq!((name.at.line, name.at.column), (2, 1));
        let Content::List(items) = &value.content else {
            panic!("no list")
        };
        assert_eq!((items[0].at.line, items[0].at.column), (3, 5));
        let Content::Map(inner) = &items[1].content else {
            panic!("no map")
        };
        assert_eq!(inner[0].1.text(), Some("off"));
    }

    #[test]
    fn an_empty_document_is_null() {
        for text in ["", "\n\n", "# only words\n", "---\n", "~\n"] {
            assert!(parse(text).unwrap().is_null(), "{text:?}");
        }
    }

    #[test]
    fn syntax_errors_have_positions() {
        for (text, line) in [("a: [1\n", 1), ("a: 1\na: 2\n", 2), ("a: b: c\n", 1)] {
            let malformed = parse(text).unwrap_err();
            assert_eq!(
                malformed.at.map(|at| at.line),
                Some(line),
                "{text:?} {malformed:?}"
            );
        }
    }

    #[test]
    fn alias_bombs_and_deep_nesting_are_refused() {
        let mut bomb = String::from("a0: &a0 [x]\n");
        for n in 1..40 {
            bomb.push_str(&format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1));
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse(&"- ".repeat(10_000)).is_err());
    }
}
