//! Converting between JSON and Lua values.
//!
//! Lua has only one kind of table. A list is a table with the keys 1 to n, or one marked
//! with a metatable, as every decoded list is, so that an empty list stays a list. Any
//! other table is an object, and its members are written in the order of their names, since
//! Lua tables are unordered. `null` is a null light userdata, because `nil` would vanish
//! from its table.

use std::fmt::{self, Write};

use mlua::{Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::content::kind;

/// Maximum number of values that are encoded. A table takes about a microsecond, and the
/// limits of the module are not checked meanwhile.
const MAX_VALUES: usize = 1_000_000;

/// Maximum nesting depth, as in `serde_json`.
const MAX_DEPTH: usize = 128;

/// How to decode null members of objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Nulls {
    /// As `haft.json.null`.
    Keep,
    /// Left out, so that `if input.name then` works as expected.
    LeaveOut,
}

/// Creates Lua values while parsing JSON, so that their memory counts for the module.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub(crate) lua: &'a Lua,
    pub(crate) list: &'a Table,
    pub(crate) nulls: Nulls,
}

impl Decoder<'_> {
    pub(crate) fn text(self, text: &[u8]) -> Result<Value, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let value = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Decoder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Decoder<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "Lua has no larger integer; it does the same"
    )]
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Number(value as f64), Value::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.lua
            .create_string(value)
            .map(Value::String)
            .map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        let mut index: i64 = 0;
        while let Some(item) = items.next_element_seed(self)? {
            index += 1;
            table.raw_set(index, item).map_err(A::Error::custom)?;
        }
        table
            .set_metatable(Some(self.list.clone()))
            .map_err(A::Error::custom)?;
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(name) = members.next_key::<std::borrow::Cow<'de, str>>()? {
            let value = members.next_value_seed(self)?;
            if value == Value::NULL && self.nulls == Nulls::LeaveOut {
                continue;
            }
            let name = self.lua.create_string(&*name).map_err(A::Error::custom)?;
            table.raw_set(name, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(table))
    }
}

/// Encodes a Lua value as JSON of at most `most` bytes. The size must be limited because a
/// table that is used twice is written twice.
pub(crate) fn encode(value: &Value, list: &Table, most: usize) -> Result<String, String> {
    let mut encoder = Encoder {
        out: String::new(),
        list,
        most,
        path: Vec::new(),
        written: 0,
    };
    match encoder.value(value) {
        Ok(()) => Ok(encoder.out),
        Err(problem) if encoder.path.is_empty() => Err(problem),
        Err(problem) => Err(format!("{problem} (at {})", encoder.place())),
    }
}

enum Step {
    Index(i64),
    Name(String),
}

struct Encoder<'a> {
    out: String,
    list: &'a Table,
    most: usize,
    path: Vec<Step>,
    written: usize,
}

enum Shape {
    List(i64),
    Object(Vec<mlua::LuaString>),
}

impl Encoder<'_> {
    fn value(&mut self, value: &Value) -> Result<(), String> {
        self.written += 1;
        if self.written > MAX_VALUES {
            return Err(format!("it has more than {MAX_VALUES} values"));
        }
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.push_str("null"),
            Value::Boolean(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Integer(value) => self.push(value)?,
            Value::Number(value) if value.is_finite() => {
                self.push(serde_json::Value::from(*value))?
            }
            Value::Number(value) => return Err(format!("JSON has no number for {value}")),
            Value::String(value) => self.string(value)?,
            Value::Table(table) => self.table(table)?,
            other => return Err(format!("{} cannot be converted to JSON", kind(other))),
        }
        if self.out.len() > self.most {
            Err(self.too_long())
        } else {
            Ok(())
        }
    }

    fn push(&mut self, value: impl fmt::Display) -> Result<(), String> {
        write!(self.out, "{value}").map_err(|error| error.to_string())
    }

    fn string(&mut self, value: &mlua::LuaString) -> Result<(), String> {
        let bytes = value.as_bytes();
        if bytes.len() > self.most {
            return Err(self.too_long());
        }
        let text = String::from_utf8_lossy(&bytes);
        let quoted = serde_json::to_string(&*text).map_err(|error| error.to_string())?;
        self.out.push_str(&quoted);
        Ok(())
    }

    fn table(&mut self, table: &Table) -> Result<(), String> {
        if self.path.len() >= MAX_DEPTH {
            return Err(format!(
                "tables are nested more than {MAX_DEPTH} deep, or contain themselves"
            ));
        }
        match self.shape(table)? {
            Shape::List(length) => {
                self.out.push('[');
                for index in 1..=length {
                    if index > 1 {
                        self.out.push(',');
                    }
                    let item: Value = table.raw_get(index).map_err(|error| error.to_string())?;
                    self.path.push(Step::Index(index));
                    self.value(&item)?;
                    self.path.pop();
                }
                self.out.push(']');
            }
            Shape::Object(names) => {
                self.out.push('{');
                for (index, name) in names.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    let member: Value = table.raw_get(name).map_err(|error| error.to_string())?;
                    self.path.push(Step::Name(name.to_string_lossy()));
                    self.string(name)?;
                    self.out.push(':');
                    self.value(&member)?;
                    self.path.pop();
                }
                self.out.push('}');
            }
        }
        Ok(())
    }

    fn shape(&self, table: &Table) -> Result<Shape, String> {
        let length = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
        let mut names = Vec::new();
        let mut numbers: i64 = 0;
        for pair in table.pairs::<Value, Value>() {
            match pair.map_err(|error| error.to_string())?.0 {
                Value::String(name) => names.push(name),
                Value::Integer(index) if (1..=length).contains(&index) => numbers += 1,
                Value::Integer(_) => {
                    return Err("a list has holes, or does not start at 1".to_owned());
                }
                other => return Err(format!("{} cannot be a key in JSON", kind(&other))),
            }
        }
        let marked = table
            .metatable()
            .is_some_and(|metatable| metatable == *self.list);
        if numbers != length {
            return Err("a list has holes, or does not start at 1".to_owned());
        }
        if (length > 0 || marked) && !names.is_empty() {
            return Err(
                "a table is both a list and an object, which JSON does not allow".to_owned(),
            );
        }
        if length > 0 || marked {
            return Ok(Shape::List(length));
        }
        names.sort_by(|one, other| one.as_bytes().as_ref().cmp(other.as_bytes().as_ref()));
        Ok(Shape::Object(names))
    }

    fn too_long(&self) -> String {
        format!("it is larger than {} bytes as JSON", self.most)
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for step in self.path.iter().take(8) {
            match step {
                Step::Index(index) => place.push_str(&format!("[{index}]")),
                Step::Name(name) => {
                    place.push_str(&format!(".{}", name.chars().take(40).collect::<String>()))
                }
            }
        }
        if self.path.len() > 8 {
            place.push('…');
        }
        place
    }
}

#[cfg(test)]
mod tests;
