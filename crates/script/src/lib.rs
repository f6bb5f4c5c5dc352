//! Tools that are written in Lua, each in a process of its own.
//!
//! A module is a file that returns a table:
//!
//! ```lua
//! return {
//!   name = "greet",
//!   description = "Greets somebody.",
//!   system_prompt = "Greet only people.",   -- may be left out
//!   input_schema = {type = "object", properties = {who = {type = "string"}}, required = {"who"}},
//!   execute = function(input) return "hello " .. input.who, false end,
//! }
//! ```
//!
//! haft starts its own binary again for it, and that process does nothing but
//! [`serve`]. It speaks the line protocol of plugins on its standard input and
//! output, so that whoever supervises plugins supervises it as well. The first line
//! it reads is a [`Load`]: the source comes from who started it and no file is opened,
//! so that what was trusted is what runs.
//!
//! # What stops a module
//!
//! A [`Limits`] holds for the loading and for each call. Memory is refused by the
//! allocator. Instructions, time and cancelling are looked at by a hook that Lua calls
//! between instructions; once it said no, nothing in the module can catch that.
//!
//! The hook is not called inside of functions written in C: a pattern that backtracks
//! for years, `string.rep` of nothing, `os.execute`; nor in finalizers, nor while an
//! error of its own closes variables. For those a watchdog answers the call in the
//! module's place when it is 200 ms late, and the process ends with [`exit::OVERDUE`].
//! Beyond that the process can be killed at any time: it has nothing that would have to
//! be put in order.
//!
//! Time in which a module waits for the answer to `haft.call` is not counted: who
//! answers has limits of its own, and may be asking a person.
//!
//! # Protocol
//!
//! One JSON object a line, at most [`MAX_LINE`] bytes, in both directions.
//!
//! ```text
//! ▶ {"type":"load","path":"tools/greet.lua","source":"return {…}","rights":"pure","limits":{"memory":67108864,"instructions":500000000,"seconds":120}}
//! ▶ {"type":"describe","protocol":2}
//! ◀ {"protocol":2,"tools":[{"name":"greet","description":"…","parameters":{…},"guidance":"…"}]}
//! ◀ {"type":"invalid","message":"tools/greet.lua: …"}            where the module is no tool
//! ▶ {"type":"call","name":"greet","call_id":"1","params":{"who":"Ada"}}
//! ◀ {"type":"update","call_id":"1","content":[…]}                haft.update(text)
//! ◀ {"type":"host_call","call_id":"1","id":1,"name":"read","params":{…}}    haft.call(tool, args)
//! ▶ {"type":"host_result","id":1,"content":[…],"error":false}
//! ▶ {"type":"cancel","call_id":"1"}
//! ◀ {"type":"result","call_id":"1","content":[{"type":"text","text":"hello Ada"}],"error":false}
//! ```
//!
//! Calls are answered in the order they came, one at a time. The end of the input is
//! the end of the worker; what came before it is still answered, for up to a second.

mod content;
mod json;
mod load;
mod machine;
mod meter;
mod module;
mod natives;
mod protocol;
mod schema;
mod shared;
mod standard;
mod worker;

pub use load::{Limits, Load, Rights};
pub use protocol::MAX_LINE;
pub use standard::serve;
pub use worker::worker;

/// How the process of a worker ends. Anything else is a crash.
pub mod exit {
    /// The input ended.
    pub const DONE: u8 = 0;
    /// The first line was no [`Load`](crate::Load).
    pub const NOT_LOADED: u8 = 2;
    /// The worker itself failed; the call was answered if there was one.
    pub const FAULT: u8 = 101;
    /// The module holds on to most of its memory, so that another call could not
    /// succeed either; the call was answered.
    pub const FULL: u8 = 122;
    /// The module could not be stopped in time; the call was answered.
    pub const OVERDUE: u8 = 124;
}
