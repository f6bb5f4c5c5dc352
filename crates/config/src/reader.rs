//! Reads derived structs from a tree of nodes. Unknown keys, wrong types and misspelled
//! names are reported here, for all settings alike, with their positions.
//!
//! Conventions of `haft.yaml` that serde does not have by itself:
//! - A key of a struct without a value counts as unset: its value was commented out.
//! - An enum is a name, or a map with a `kind`. A map without one is the variant that a key
//!   of it names, such as `{ ssh: HOST }`.
//! - The types in [`setting`](super::setting) ask for what serde has no word for by the
//!   names below.

#[cfg(test)]
mod tests;

use super::keys;
use super::node::{Content, Name, Node, Position};
use super::sources::Readable;
use super::variables;
use haft::ops::text::decode::visible;
use haft::ops::text::{brief, spelling};
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer, U64Deserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde_json::Value;
use std::cell::RefCell;
use std::fmt;

/// Name under which a type asks for the number of its value in [`Values`], and then for
/// the value itself unless its variables have to be expanded first.
pub(crate) const SETTING: &str = "haft::Setting";

/// Name under which a type asks for a text, or else for the value as it is.
pub(crate) const TEXT_OR: &str = "haft::TextOr";

/// Key that names the variant of an enum.
const KIND: &str = "kind";

/// The settings of a file, in its order.
pub(crate) type Values = RefCell<Vec<FoundValue>>;

/// A value and where it was found.
#[derive(Debug)]
pub(crate) struct FoundValue {
    /// Path from the top of the file, such as `tools.mcp.NAME`.
    pub(crate) path: String,
    pub(crate) node: Node,
}

/// Reads a value. `path` is its path from the top of the file.
pub(crate) fn read<T: Readable>(node: &Node, path: &str, values: &Values) -> Result<T, Problem> {
    let reader = Reader {
        node,
        path: path.to_owned(),
        values,
        kind: None,
    };
    reader.located(T::deserialize(reader.clone()))
}

/// A mistake and its position.
#[derive(Debug)]
pub(crate) struct Problem {
    /// `None` until the reader of the value adds it, with the path.
    pub(crate) at: Option<Position>,
    path: String,
    mistake: Mistake,
    /// End of the message: the value that was found, or a hint. `None` to name its type.
    end: Option<String>,
    /// Whether the value contains variables, so that it may be right once they are expanded.
    is_unexpanded: bool,
}

#[derive(Debug)]
enum Mistake {
    /// Description of the expected value.
    Expected(String),
    UnknownKey(String),
    /// Another problem with the value.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        let end = self.end.as_deref().unwrap_or_default();
        match &self.mistake {
            Mistake::Expected(expected) => write!(f, "{path} must be {expected}{end}"),
            Mistake::UnknownKey(name) => {
                let within = if path.is_empty() { "" } else { " in " };
                write!(f, "unknown key \"{}\"{within}{path}{end}", short(name))
            }
            Mistake::Other(other) => write!(f, "{path} {other}"),
        }
    }
}

impl std::error::Error for Problem {}

impl Problem {
    fn new(mistake: Mistake, end: Option<String>) -> Self {
        Self {
            at: None,
            path: String::new(),
            mistake,
            end,
            is_unexpanded: false,
        }
    }

    /// Returns the path of the value.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Describes the expected value, if the value is of another kind.
    pub(crate) fn expected(&self) -> Option<&str> {
        match &self.mistake {
            Mistake::Expected(expected) => Some(expected),
            Mistake::UnknownKey(_) | Mistake::Other(_) => None,
        }
    }
}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Mistake::Other(message.to_string()), None)
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(Mistake::Expected(expected.to_string()), None)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        // Texts are not repeated, because they may be secret.
        let got = match found {
            Unexpected::Other(found) => format!(", got {found}"),
            _ => String::new(),
        };
        Self::new(Mistake::Expected(expected.to_string()), Some(got))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = spelling::hint(variant, expected);
        let got = format!(", got \"{}\"{hint}", short(variant));
        Self::new(Mistake::Expected(any_of(expected)), Some(got))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let mut hint = spelling::hint(field, expected);
        if hint.is_empty() && (1..=12).contains(&expected.len()) {
            hint = format!("; known keys: {}", expected.join(", "));
        }
        Self::new(Mistake::UnknownKey(field.to_owned()), Some(hint))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("needs {field}"))
    }
}

/// Returns a name from a file as a message may contain it.
fn short(name: &str) -> String {
    visible(&brief(name, 100))
}

/// `a, b or c`
pub(crate) fn any_of(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.concat(),
    }
}

/// A node to read, and where it is.
#[derive(Clone)]
struct Reader<'a> {
    node: &'a Node,
    path: String,
    values: &'a Values,
    /// Variant of an enum that this is the content of, if it is known.
    kind: Option<&'a str>,
}

impl<'a> Reader<'a> {
    /// Adds the position and the path to an error about this value.
    fn located<T>(&self, result: Result<T, Problem>) -> Result<T, Problem> {
        result.map_err(|mut problem| {
            if problem.at.is_none() {
                problem.at = Some(self.node.at);
                problem.path.clone_from(&self.path);
                let text = self.node.text().unwrap_or_default();
                problem.is_unexpanded = variables::variables(text).next().is_some();
                if let Mistake::Expected(_) = problem.mistake {
                    // The value of a variable is not shown: it may be secret.
                    let end = match &self.node.written {
                        Some(text) => Some(format!(", but \"{text}\" expands to something else")),
                        None => problem.end,
                    };
                    let got = || format!(", got {}", self.node.kind());
                    problem.end = Some(end.unwrap_or_else(got));
                }
            }
            problem
        })
    }

    fn expected<T>(&self, expected: &str) -> Result<T, Problem> {
        self.located(Err(de::Error::invalid_type(Unexpected::Unit, &expected)))
    }

    fn entries(&self) -> &'a [(Name, Node)] {
        match &self.node.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    fn below(&self, node: &'a Node, step: &str) -> Self {
        Self {
            node,
            path: format!("{}{step}", self.path)
                .trim_start_matches('.')
                .to_owned(),
            values: self.values,
            kind: None,
        }
    }

    /// Reads a map. Entries of a struct without a value are left out.
    fn map<V: Visitor<'a>>(&self, known: &[&str], visitor: V) -> Result<V::Value, Problem> {
        if !matches!(self.node.content, Content::Map(_)) {
            return self.expected("a map");
        }
        let is_used = |(name, node): &&(Name, Node)| {
            let is_unset = node.is_null() && known.contains(&name.text.as_str());
            !is_unset && (self.kind.is_none() || name.text != KIND)
        };
        let child = |(name, node): &'a (Name, Node)| {
            let child = self.below(node, &format!(".{}", short(&name.text)));
            (Some(name), child)
        };
        let children = self.entries().iter().filter(is_used).map(child);
        self.located(visitor.visit_map(Children::new(&self.path, children)))
    }
}

/// The values of a map or a list.
struct Children<'r, 'a, I> {
    path: &'r str,
    rest: I,
    value: Option<Reader<'a>>,
}

impl<'r, 'a, I: Iterator<Item = (Option<&'a Name>, Reader<'a>)>> Children<'r, 'a, I> {
    fn new(path: &'r str, rest: I) -> Self {
        let value = None;
        Self { path, rest, value }
    }
}

impl<'a, I: Iterator<Item = (Option<&'a Name>, Reader<'a>)>> MapAccess<'a> for Children<'_, 'a, I> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'a>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        let Some((Some(name), value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let key = seed.deserialize(BorrowedStrDeserializer::new(&name.text));
        key.map(Some).map_err(|problem: Problem| Problem {
            at: Some(name.at),
            path: self.path.to_owned(),
            end: keys::elsewhere(self.path, &name.text).or(problem.end),
            ..problem
        })
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        match self.value.take() {
            Some(value) => value.located(seed.deserialize(value.clone())),
            None => Err(de::Error::custom("has no value")),
        }
    }
}

impl<'a, I: Iterator<Item = (Option<&'a Name>, Reader<'a>)>> SeqAccess<'a> for Children<'_, 'a, I> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        let value = self.rest.next().map(|(_, value)| value);
        value
            .map(|value| value.located(seed.deserialize(value.clone())))
            .transpose()
    }
}

/// The number of a setting, and the value itself unless its variables have to be expanded
/// first.
struct Numbered<'a>(Option<u64>, Reader<'a>);

impl<'a> SeqAccess<'a> for Numbered<'a> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        match (self.0.take(), self.1.clone()) {
            (Some(number), _) => seed.deserialize(U64Deserializer::new(number)).map(Some),
            (None, value) => match value.located(seed.deserialize(value.clone())) {
                Err(problem) if problem.is_unexpanded => Ok(None),
                value => value.map(Some),
            },
        }
    }
}

impl<'a> Deserializer<'a> for Reader<'a> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.located(match &self.node.content {
            Content::Scalar(Value::Null) => visitor.visit_unit(),
            Content::Scalar(Value::Bool(value)) => visitor.visit_bool(*value),
            Content::Scalar(Value::Number(number)) => {
                match (number.as_u64(), number.as_i64(), number.as_f64()) {
                    (Some(number), ..) => visitor.visit_u64(number),
                    (_, Some(number), _) => visitor.visit_i64(number),
                    (.., number) => visitor.visit_f64(number.unwrap_or_default()),
                }
            }
            Content::Scalar(value) => visitor.visit_str(value.as_str().unwrap_or_default()),
            Content::List(items) => {
                let items = items.iter().enumerate();
                let items = items.map(|(at, node)| (None, self.below(node, &format!("[{at}]"))));
                visitor.visit_seq(Children::new(&self.path, items))
            }
            Content::Map(_) => self.map(&[], visitor),
        })
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.node.text() {
            Some(text) => self.located(visitor.visit_str(text)),
            None => self.expected("text"),
        }
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.node.content {
            Content::Scalar(Value::Bool(value)) => visitor.visit_bool(value),
            _ => self.expected("true or false"),
        }
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.node.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.node.content {
            Content::List(_) => self.deserialize_any(visitor),
            _ => self.expected("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.map(&[], visitor)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.map(fields, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match name {
            SETTING => {
                let mut values = self.values.borrow_mut();
                let number = Some(values.len() as u64);
                let (path, node) = (self.path.clone(), self.node.clone());
                values.push(FoundValue { path, node });
                drop(values);
                visitor.visit_seq(Numbered(number, self))
            }
            TEXT_OR if self.node.text().is_some() => self.deserialize_string(visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let mut names = self.entries().iter().map(|(name, _)| name.text.as_str());
        let kind = self.entries().iter().find(|(name, _)| name.text == KIND);
        let kind = kind.map(|(_, node)| self.below(node, ".kind"));
        let name = match (&self.node.content, &kind) {
            (Content::Scalar(Value::String(name)), _) => name,
            (Content::Map(_), Some(kind)) => match kind.node.text() {
                Some(name) if variants.contains(&name) => name,
                Some(name) => {
                    return kind.located(Err(de::Error::unknown_variant(name, variants)));
                }
                None => return kind.expected(&any_of(variants)),
            },
            (Content::Map(_), None) => match names.find(|name| variants.contains(name)) {
                Some(name) => name,
                None => {
                    let kinds = variants.join(", ");
                    let missing = format_args!("needs a kind; valid kinds: {kinds}");
                    return self.located(Err(de::Error::custom(missing)));
                }
            },
            _ => return self.expected(&any_of(variants)),
        };
        let kind = Some(name);
        self.located(visitor.visit_enum(Reader {
            kind,
            ..self.clone()
        }))
    }

    serde::forward_to_deserialize_any! {
        <W: Visitor<'a>>
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The content of a variant.
impl<'a> EnumAccess<'a> for Reader<'a> {
    type Error = Problem;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'a>>(self, seed: V) -> Result<(V::Value, Self), Problem> {
        let name = self.kind.unwrap_or_default();
        let name = seed.deserialize(BorrowedStrDeserializer::new(name))?;
        Ok((name, self))
    }
}

impl<'a> VariantAccess<'a> for Reader<'a> {
    type Error = Problem;

    fn unit_variant(self) -> Result<(), Problem> {
        let mut entries = self.entries().iter();
        match entries.find(|(name, _)| name.text != KIND) {
            None => Ok(()),
            Some((name, _)) => Err(Problem {
                at: Some(name.at),
                path: self.path,
                ..de::Error::unknown_field(&name.text, &[KIND])
            }),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'a>>(self, seed: T) -> Result<T::Value, Problem> {
        match self.node.text() {
            // Given by its name alone.
            Some(_) => seed.deserialize(MapDeserializer::new(std::iter::empty::<(&str, &str)>())),
            None => seed.deserialize(self),
        }
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, _: V) -> Result<V::Value, Problem> {
        self.expected("a map")
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.node.text() {
            Some(_) => visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>())),
            None => self.map(fields, visitor),
        }
    }
}
