//! A module: its required form, and how it is called.

use std::borrow::Cow;
use std::time::Duration;

use mlua::chunk::ChunkMode;
use mlua::{Function, Table, Value};
use serde::de::DeserializeSeed;

use crate::content;
use crate::json::{self, Decoder, Nulls};
use crate::load::Load;
use crate::machine::{Failure, Machine};
use crate::protocol::{Block, Definition};
use crate::schema;

const LONGEST_NAME: usize = 64;
/// Maximum size of a description, in bytes. It is sent to the model with every request.
const LONGEST_TEXT: usize = 64 << 10;
const LARGEST_SCHEMA: usize = 1 << 20;
const MOST_SECONDS: f64 = 86_400.0;

/// A module that is a tool.
pub(crate) struct Module {
    pub(crate) definition: Definition,
    execute: Function,
}

/// The result of a call.
pub(crate) struct Outcome {
    pub(crate) content: Vec<Block<'static>>,
    pub(crate) error: bool,
    /// Whether the next call needs a new process.
    pub(crate) full: bool,
}

impl Outcome {
    pub(crate) fn failed(message: String) -> Self {
        Self {
            content: vec![Block::text(message)],
            error: true,
            full: false,
        }
    }
}

impl Module {
    /// Runs the module's file and checks its return value: a tool, or `None` for a library
    /// that other tools load with `require`. The error is a message for the author of the
    /// module.
    pub(crate) fn load(machine: &Machine, load: &Load) -> Result<Option<Self>, String> {
        let path = &load.path;
        let source = source(&load.source);
        if source.starts_with('\u{1b}') {
            return Err(format!(
                "{path}: this is compiled Lua; a tool is the text of a Lua program"
            ));
        }
        let chunk = machine
            .lua
            .load(source.as_bytes())
            .set_name(format!("@{path}"))
            .set_mode(ChunkMode::Text);
        let returned = chunk
            .into_function()
            .map_err(|error| machine.failure(&error))
            .and_then(|body| machine.run(&body, None))
            .map_err(|failure| with_path(path, failure.message()))?;
        match returned.into_iter().next() {
            Some(Value::Table(table)) => {
                let loaded = match is_library(machine, &table) {
                    Ok(true) => Ok(None),
                    Ok(false) => Self::check(machine, &table).map(Some),
                    Err(problem) => Err(problem),
                };
                loaded.map_err(|problem| with_path(path, problem))
            }
            None | Some(Value::Nil) => Err(format!(
                "{path}: the file returns nothing; its last statement has to be `return {{name = …, execute = …}}`"
            )),
            Some(other) => Err(format!(
                "{path}: the file returns {}; it must return a table",
                content::kind(&other)
            )),
        }
    }

    fn check(machine: &Machine, table: &Table) -> Result<Self, String> {
        let field = |name: &str| {
            table
                .get::<Value>(name)
                .map_err(|error| machine.failure(&error).message())
        };
        let name =
            text("name", field("name")?)?.ok_or("`name` is missing: how the tool is called")?;
        if name.is_empty() {
            return Err("`name` is empty".to_owned());
        }
        if let Some(odd) = name
            .chars()
            .find(|&letter| !(letter.is_ascii_alphanumeric() || "_-".contains(letter)))
        {
            return Err(format!(
                "`name` is {name:?}, and {odd:?} cannot be part of a name: use letters, digits, `_` and `-`"
            ));
        }
        if name.len() > LONGEST_NAME {
            return Err(format!(
                "`name` has {} characters; at most {LONGEST_NAME} are allowed",
                name.len()
            ));
        }
        let description =
            text("description", field("description")?)?.filter(|text| !text.trim().is_empty());
        let description =
            description.ok_or("`description` is missing: one line that says what the tool does")?;
        let guidance =
            text("system_prompt", field("system_prompt")?)?.filter(|text| !text.trim().is_empty());
        let parameters = match field("input_schema")? {
            Value::Table(table) => parameters(machine, table)?,
            Value::Nil => {
                return Err(
                    "`input_schema` is missing: for no parameters, `{type = \"object\", properties = {}}`".to_owned()
                );
            }
            other => {
                return Err(format!(
                    "`input_schema` is {}; it has to be a table",
                    content::kind(&other)
                ));
            }
        };
        let execute = match field("execute")? {
            Value::Function(execute) => execute,
            Value::Nil => {
                return Err("`execute` is missing: `execute = function(input) … end`".to_owned());
            }
            other => {
                return Err(format!(
                    "`execute` is {}; it has to be a function",
                    content::kind(&other)
                ));
            }
        };
        Ok(Self {
            definition: Definition {
                name,
                description,
                parameters,
                guidance,
                timeout: timeout(field("timeout")?)?,
            },
            execute,
        })
    }

    /// Returns the time limit that the module declares.
    pub(crate) fn time(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.definition.timeout?).ok()
    }

    /// Calls the tool. There is always an outcome, unless the watchdog ends the process.
    pub(crate) fn call(&self, machine: &Machine, params: serde_json::Value) -> Outcome {
        let outcome = input(machine, params)
            .and_then(|input| machine.run(&self.execute, Some(input)))
            .and_then(|values| returned(machine, values.into_vec()));
        match outcome {
            Ok(outcome) => outcome,
            Err(Failure::Raised(message)) => Outcome::failed(message),
            Err(Failure::Memory(message)) => Outcome {
                full: machine.is_full(),
                ..Outcome::failed(message)
            },
        }
    }
}

/// Whether a table has none of a tool's fields.
fn is_library(machine: &Machine, table: &Table) -> Result<bool, String> {
    for name in ["name", "description", "input_schema", "execute"] {
        let field = table.get::<Value>(name);
        let field = field.map_err(|error| machine.failure(&error).message())?;
        if !field.is_nil() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn input(machine: &Machine, params: serde_json::Value) -> Result<Value, Failure> {
    let params = match params {
        serde_json::Value::Null => serde_json::Value::Object(serde_json::Map::new()),
        params @ serde_json::Value::Object(_) => params,
        _ => {
            return Err(Failure::Raised(
                "the parameters of a call have to be an object".to_owned(),
            ));
        }
    };
    let decoder = Decoder {
        lua: &machine.lua,
        list: &machine.list,
        nulls: Nulls::LeaveOut,
    };
    decoder
        .deserialize(params)
        .map_err(|error| machine.failure_from(error.to_string()))
}

fn returned(machine: &Machine, values: Vec<Value>) -> Result<Outcome, Failure> {
    let mut values = values.into_iter();
    let result = values.next().unwrap_or(Value::Nil);
    let second = values.next().unwrap_or(Value::Nil);
    // Only `true` counts, because `return text:gsub("a", "b")` also returns a count. `nil,
    // "message"` is how Lua's own functions fail.
    let (result, error) = match second {
        Value::String(_) if result.is_nil() => (second, true),
        second => (result, second == Value::Boolean(true)),
    };
    let content = content::blocks(&machine.lua, &result, &machine.list)
        .map_err(|problem| machine.failure_from(problem))?;
    Ok(Outcome {
        content,
        error,
        full: false,
    })
}

fn text(name: &str, value: Value) -> Result<Option<String>, String> {
    match value {
        Value::Nil => Ok(None),
        Value::String(text) if text.as_bytes().len() > LONGEST_TEXT => {
            Err(format!("`{name}` is longer than {LONGEST_TEXT} bytes"))
        }
        Value::String(text) => Ok(Some(text.to_string_lossy())),
        other => Err(format!(
            "`{name}` is {}; it has to be a string",
            content::kind(&other)
        )),
    }
}

/// Parses the time limit in seconds; 0 means the default.
fn timeout(value: Value) -> Result<Option<f64>, String> {
    let seconds = match value {
        Value::Nil => return Ok(None),
        Value::Integer(seconds) => seconds as f64,
        Value::Number(seconds) => seconds,
        other => {
            return Err(format!(
                "`timeout` is {}; it has to be a number of seconds",
                content::kind(&other)
            ));
        }
    };
    match seconds {
        0.0 => Ok(None),
        0.0..=MOST_SECONDS => Ok(Some(seconds)),
        _ => Err(format!(
            "`timeout` is {seconds}; it has to be a number of seconds, up to a day"
        )),
    }
}

fn parameters(machine: &Machine, table: Table) -> Result<serde_json::Value, String> {
    let problem =
        |problem: String| format!("`input_schema` cannot be converted to JSON: {problem}");
    let text =
        json::encode(&Value::Table(table), &machine.list, LARGEST_SCHEMA).map_err(problem)?;
    let mut parameters = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    if !matches!(parameters, serde_json::Value::Object(_)) {
        return Err("`input_schema` is a list; it has to be a table with names, like `{type = \"object\", …}`".to_owned());
    }
    schema::normalise(&mut parameters);
    Ok(parameters)
}

/// Skips a first line that `lua` itself would skip; line numbers stay the same.
fn source(source: &str) -> Cow<'_, str> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    match source.strip_prefix('#') {
        Some(rest) => Cow::Owned(format!("--{rest}")),
        None => Cow::Borrowed(source),
    }
}

/// Adds the path to messages without a location: errors of Lua have one, limits may not.
fn with_path(path: &str, message: String) -> String {
    if message.starts_with(&crate::natives::short(path)) {
        message
    } else {
        format!("{path}: {message}")
    }
}
