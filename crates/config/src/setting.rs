//! Types for the fields of the configuration: settings whose variables are expanded when
//! they are used, and values with limits.

use super::reader::{SETTING, TEXT_OR, any_of};
use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::{Value, json};
use std::fmt;
use std::marker::PhantomData;

/// A value of a file. [`Layer`](super::layer::Layer) expands the variables in it and reads
/// it, unless it is withheld from the file.
#[derive(Debug)]
pub(crate) struct Setting<T> {
    /// Number of the value in its file.
    pub(crate) number: usize,
    kind: PhantomData<fn() -> T>,
}

/// A list of settings, or a map if `NAMED`. In a list the names are empty.
#[derive(Debug)]
pub(crate) struct Settings<T, const NAMED: bool>(pub(crate) Vec<(String, Setting<T>)>);

pub(crate) type List<T> = Settings<T, false>;
pub(crate) type Map<T> = Settings<T, true>;

impl<T, const NAMED: bool> Default for Settings<T, NAMED> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Changes the schema of an enum to what the reader accepts: a name, or a map in which the
/// kind may be implied.
pub(crate) fn or_name(schema: &mut schemars::Schema) {
    let mut variants = vec![json!({ "type": "string" })];
    if let Some(Value::Array(maps)) = schema.remove("oneOf") {
        variants.extend(maps);
    }
    for variant in &mut variants {
        if let Some(Value::Array(required)) = variant.get_mut("required") {
            required.retain(|key| key != "kind");
        }
        // Any name of the variant.
        if let Some(kind) = variant.pointer_mut("/properties/kind") {
            *kind = json!({ "type": "string" });
        }
    }
    schema.insert("anyOf".to_owned(), variants.into());
}

/// Implements `JsonSchema` for a type.
macro_rules! inline_schema {
    ([$($generics:tt)*] $type:ty, $generator:ident => $schema:expr) => {
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}

pub(crate) use inline_schema;

inline_schema!([T: JsonSchema] Setting<T>, generator => {
    let schema = T::json_schema(generator);
    match schema.get("enum") {
        // A variable may be used instead of a listed value.
        Some(names) => json_schema!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": "\\$\\{" }] }),
        None => schema,
    }
});
inline_schema!([T: JsonSchema, const NAMED: bool] Settings<T, NAMED>, generator => {
    let item = T::json_schema(generator);
    match NAMED {
        true => json_schema!({ "type": ["object", "null"], "additionalProperties": item, "default": {} }),
        false => json_schema!({ "type": ["array", "null"], "items": item, "default": [] }),
    }
});

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Setting<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbered<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Numbered<T> {
            type Value = usize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a setting")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
                let number = seq.next_element()?.unwrap_or_default();
                // Reading it finds mistakes even if the value turns out not to be used.
                let _checked: Option<T> = seq.next_element()?;
                Ok(number)
            }
        }
        let visitor = Numbered(PhantomData::<T>);
        let number = deserializer.deserialize_newtype_struct(SETTING, visitor)?;
        let kind = PhantomData;
        Ok(Self { number, kind })
    }
}

impl<'de, T: Deserialize<'de>, const NAMED: bool> Deserialize<'de> for Settings<T, NAMED> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for All<T> {
            type Value = Vec<(String, Setting<T>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or a map")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let next = || seq.next_element().transpose();
                std::iter::from_fn(next)
                    .map(|setting| Ok((String::new(), setting?)))
                    .collect()
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect()
            }
        }
        let all = All(PhantomData);
        Ok(Self(match NAMED {
            true => deserializer.deserialize_map(all)?,
            false => deserializer.deserialize_seq(all)?,
        }))
    }
}

/// A whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64 = { u64::MAX }>(pub(crate) u64);

/// A number, at least 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number<const MOST: u64 = { u64::MAX }>(pub(crate) f64);

/// A number that can be compared with another one.
pub(crate) trait Limit {
    fn amount(&self) -> f64;
}

impl<const LEAST: u64, const MOST: u64> Limit for Whole<LEAST, MOST> {
    #[expect(clippy::cast_precision_loss, reason = "compared, not counted")]
    fn amount(&self) -> f64 {
        self.0 as f64
    }
}

impl<const MOST: u64> Limit for Number<MOST> {
    fn amount(&self) -> f64 {
        self.0
    }
}

/// A size: a whole number of bytes, or with a unit, such as `64MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl Bytes {
    /// Parses a number with a unit. `K`, `M`, `G` and `T` count in 1024, with or without
    /// `iB`; `KB`, `MB`, `GB` and `TB` count in 1000.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        let unit = unit.trim().to_ascii_lowercase();
        let (letter, base) = match unit.as_str() {
            "" | "b" => ("", 1),
            short if short.len() == 1 => (short, 1024),
            unit if let Some(letter) = unit.strip_suffix("ib") => (letter, 1024),
            unit => (unit.strip_suffix('b')?, 1000),
        };
        let power = ["", "k", "m", "g", "t"]
            .iter()
            .position(|one| *one == letter)?;
        let factor = u64::checked_pow(base, u32::try_from(power).ok()?)?;
        number.parse::<u64>().ok()?.checked_mul(factor).map(Self)
    }
}

/// Seconds, up to a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Seconds(pub(crate) f64);

/// A text that is not empty, without spaces around it. Numbers count as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filled(pub(crate) String);

/// A text, possibly empty. Numbers and booleans count as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) String);

/// One of some names.
#[derive(Debug)]
pub(crate) struct OneOf<N>(pub(crate) String, PhantomData<fn() -> N>);

/// The names that a [`OneOf`] accepts.
pub(crate) trait Names {
    const NAMES: &'static [&'static str];
}

/// A short form that is text, or the full form.
#[derive(Debug)]
pub(crate) enum TextOr<T> {
    Text(String),
    Full(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                T::deserialize(deserializer).map(TextOr::Full)
            }
        }
        deserializer.deserialize_newtype_struct(TEXT_OR, Either(PhantomData))
    }
}

/// Implements a type that any scalar may or may not fit, with its schema.
macro_rules! scalar {
    ([$($generics:tt)*] $type:ty, $expected:expr, $read:expr, $schema:expr) => {
        impl<'de, $($generics)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Value::deserialize(deserializer)?;
                let read: fn(&Value) -> Option<Self> = $read;
                read(&value).ok_or_else(|| {
                    let expected: String = $expected;
                    let expected = expected.as_str();
                    match &value {
                        Value::Number(number) => {
                            let number = number.to_string();
                            de::Error::invalid_value(Unexpected::Other(&number), &expected)
                        }
                        _ => de::Error::invalid_type(Unexpected::Unit, &expected),
                    }
                })
            }
        }

        inline_schema!([$($generics)*] $type, _generator => $schema);
    };
}

scalar!(
    [const LEAST: u64, const MOST: u64] Whole<LEAST, MOST>,
    match MOST {
        u64::MAX => format!("a whole number, at least {LEAST}"),
        most => format!("a whole number from {LEAST} to {most}"),
    },
    |value| value.as_u64().filter(|number| (LEAST..=MOST).contains(number)).map(Self),
    match MOST {
        u64::MAX => json_schema!({ "type": "integer", "minimum": LEAST }),
        most => json_schema!({ "type": "integer", "minimum": LEAST, "maximum": most }),
    }
);
scalar!(
    [const MOST: u64] Number<MOST>,
    match MOST {
        u64::MAX => "a number, at least 0".to_owned(),
        most => format!("a number from 0 to {most}"),
    },
    |value| value.as_f64().filter(|number| (0.0..=MOST as f64).contains(number)).map(Self),
    match MOST {
        u64::MAX => json_schema!({ "type": "number", "minimum": 0 }),
        most => json_schema!({ "type": "number", "minimum": 0, "maximum": most }),
    }
);
scalar!(
    [] Bytes,
    "a size, such as 64MiB".to_owned(),
    |value| match value {
        Value::String(text) => Self::parse(text),
        value => value.as_u64().map(Self),
    },
    json_schema!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^ *[0-9]+ *([kKmMgGtT]?([iI]?[bB])?) *$" })
);
scalar!(
    [] Seconds,
    "a number of seconds, up to a day".to_owned(),
    |value| value.as_f64().filter(|seconds| (0.0..=86_400.0).contains(seconds)).map(Self),
    json_schema!({ "type": "number", "minimum": 0, "maximum": 86_400 })
);
scalar!(
    [] Filled,
    "text".to_owned(),
    |value| {
        let text = match value {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        (!text.is_empty()).then_some(Self(text))
    },
    json_schema!({ "type": "string", "minLength": 1 })
);
scalar!(
    [] Word,
    "text".to_owned(),
    |value| match value {
        Value::String(text) => Some(Self(text.clone())),
        Value::Number(_) | Value::Bool(_) => Some(Self(value.to_string())),
        _ => None,
    },
    json_schema!({ "type": "string" })
);

impl<'de, N: Names> Deserialize<'de> for OneOf<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) if N::NAMES.contains(&name.as_str()) => Ok(Self(name, PhantomData)),
            Value::String(name) => Err(de::Error::unknown_variant(&name, N::NAMES)),
            _ => {
                let expected = any_of(N::NAMES);
                Err(de::Error::invalid_type(
                    Unexpected::Unit,
                    &expected.as_str(),
                ))
            }
        }
    }
}

inline_schema!([N: Names] OneOf<N>, _generator => json_schema!({ "enum": N::NAMES }));
inline_schema!([T: JsonSchema] TextOr<T>, generator => {
    let full = T::json_schema(generator);
    json_schema!({ "anyOf": [{ "type": "string" }, full] })
});
