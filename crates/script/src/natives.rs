//! Native functions for the prelude, behind `haft` and the guards.
//!
//! They return `true` and their values, or `false` and a message. The prelude turns the
//! message into an error with the line of the module.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mlua::{Lua, MultiValue, Table, Value};

use crate::content;
use crate::json::{self, Decoder, Nulls};
use crate::meter::{Meter, Stop};
use crate::protocol::{self, Block, MAX_LINE, WorkerMessage};
use crate::shared::{Shared, note};

/// Maximum size of a text, in bytes; the rest of the line needs room too.
const ROOM: usize = MAX_LINE - 4096;

const NOT_NOW: &str = "can only be used inside of execute";

/// Creates the table that the prelude receives.
pub(crate) fn table(
    lua: &Lua,
    source: &str,
    list: &Table,
    meter: &Rc<Meter>,
    shared: &Arc<Shared>,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("source", short(source))?;
    table.set("null", Value::NULL)?;
    let over = Rc::clone(meter);
    table.set(
        "over",
        lua.create_function(move |_, ()| Ok(over.stopped().is_some()))?,
    )?;
    let log = |_: &Lua, text: mlua::LuaString| {
        note(&text.to_string_lossy());
        Ok(())
    };
    table.set("log", lua.create_function(log)?)?;
    let named = short(source);
    table.set(
        "place",
        lua.create_function(move |lua, ()| Ok(place(lua, &named)))?,
    )?;
    table.set("traceback", lua.create_function(traceback)?)?;
    set_json(lua, &table, list)?;
    set_host(lua, &table, list, meter, shared)?;
    Ok(table)
}

fn set_json(lua: &Lua, table: &Table, list: &Table) -> mlua::Result<()> {
    let metatable = list.clone();
    let encode = move |lua: &Lua, value: Value| answer(lua, json::encode(&value, &metatable, ROOM));
    table.set("encode", lua.create_function(encode)?)?;
    let metatable = list.clone();
    let decode = move |lua: &Lua, text: Value| {
        let Value::String(text) = text else {
            return answer::<Value>(lua, Err("json.decode takes a string".to_owned()));
        };
        let decoder = Decoder {
            lua,
            list: &metatable,
            nulls: Nulls::Keep,
        };
        answer(
            lua,
            decoder
                .text(&text.as_bytes())
                .map_err(|error| format!("not JSON: {error}")),
        )
    };
    table.set("decode", lua.create_function(decode)?)?;
    let metatable = list.clone();
    let array = move |lua: &Lua, value: Value| match value {
        Value::Table(list) => {
            list.set_metatable(Some(metatable.clone()))?;
            answer(lua, Ok(list))
        }
        _ => answer::<Value>(lua, Err("json.array takes a table".to_owned())),
    };
    table.set("array", lua.create_function(array)?)
}

fn set_host(
    lua: &Lua,
    table: &Table,
    list: &Table,
    meter: &Rc<Meter>,
    shared: &Arc<Shared>,
) -> mlua::Result<()> {
    let desk = Arc::clone(shared);
    let update = move |lua: &Lua, text: Value| {
        let Some(call_id) = desk.call_id() else {
            return answer::<Value>(lua, Err(format!("haft.update {NOT_NOW}")));
        };
        let text = match content::text(lua, &text) {
            Ok(text) => text,
            Err(problem) => return answer::<Value>(lua, Err(problem)),
        };
        let line = WorkerMessage::Update {
            call_id: &call_id,
            content: &[Block::text(text)],
        }
        .line();
        if line.len() > MAX_LINE {
            return answer::<Value>(lua, Err("the update is too large".to_owned()));
        }
        desk.write(line);
        answer(lua, Ok(Value::Nil))
    };
    table.set("update", lua.create_function(update)?)?;

    let (desk, meter, list) = (Arc::clone(shared), Rc::clone(meter), list.clone());
    let last = Cell::new(0_u64);
    let call = move |lua: &Lua, (tool, args): (Value, Value)| {
        let (call_id, tool, params) = match question(&desk, &tool, args, lua, &list) {
            Ok(question) => question,
            Err(problem) => return answer::<Value>(lua, Err(problem)),
        };
        last.set(last.get() + 1);
        let asked = Instant::now();
        let reply = desk.ask(
            last.get(),
            protocol::host_call(&call_id, last.get(), &tool, &params),
        );
        desk.resume(meter.forgive(asked.elapsed()));
        let Some(reply) = reply else {
            meter.stop(Stop::Cancelled);
            return answer::<Value>(lua, Err("cancelled".to_owned()));
        };
        let text = match lua.create_string(reply.text) {
            Ok(text) => text,
            Err(error) => return answer::<Value>(lua, Err(error.to_string())),
        };
        Ok(MultiValue::from_vec(vec![
            Value::Boolean(true),
            Value::String(text),
            Value::Boolean(reply.error),
        ]))
    };
    table.set("call", lua.create_function(call)?)
}

fn question(
    desk: &Shared,
    tool: &Value,
    args: Value,
    lua: &Lua,
    list: &Table,
) -> Result<(serde_json::Value, String, String), String> {
    let call_id = desk
        .call_id()
        .ok_or_else(|| format!("haft.call {NOT_NOW}"))?;
    let Value::String(tool) = tool else {
        return Err("haft.call takes the name of a tool and a table".to_owned());
    };
    let args = match args {
        Value::Nil => Value::Table(lua.create_table().map_err(|error| error.to_string())?),
        args => args,
    };
    let params = json::encode(&args, list, ROOM)?;
    if !params.starts_with('{') {
        return Err("the arguments of haft.call are a table with names".to_owned());
    }
    Ok((call_id, tool.to_string_lossy(), params))
}

fn answer<T: mlua::IntoLua>(lua: &Lua, result: Result<T, String>) -> mlua::Result<MultiValue> {
    Ok(MultiValue::from_vec(match result {
        Ok(value) => vec![Value::Boolean(true), value.into_lua(lua)?],
        Err(problem) => vec![
            Value::Boolean(false),
            Value::String(lua.create_string(problem)?),
        ],
    }))
}

/// Implements `debug.traceback`, the only function of `debug` that is available.
fn traceback(lua: &Lua, message: Value) -> mlua::Result<Value> {
    match message {
        Value::Nil => Ok(Value::String(lua.traceback(None, 1)?)),
        Value::String(text) => Ok(Value::String(
            lua.traceback(Some(&text.to_string_lossy()), 1)?,
        )),
        other => Ok(other),
    }
}

/// Returns the current line of the module, or the line that called a function outside it.
pub(crate) fn place(lua: &Lua, source: &str) -> Option<String> {
    (0..64)
        .map_while(|level| {
            lua.inspect_stack(level, |frame| {
                let from = frame.source().short_src.map(std::borrow::Cow::into_owned);
                (from, frame.current_line())
            })
        })
        .find_map(|(from, line)| {
            Some(format!(
                "{source}:{}",
                line.filter(|_| from.as_deref() == Some(source))?
            ))
        })
}

/// Shortens a path as Lua does in messages: only the end of a long one.
pub(crate) fn short(path: &str) -> String {
    const SHOWN: usize = 59;
    if path.len() <= SHOWN {
        return path.to_owned();
    }
    let bytes = path.as_bytes();
    let end = bytes.get(bytes.len() - (SHOWN - 3)..).unwrap_or_default();
    format!("...{}", String::from_utf8_lossy(end))
}
