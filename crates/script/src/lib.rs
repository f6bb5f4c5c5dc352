//! Tools written in Lua, each in its own process.
//!
//! A module is a file that returns a table:
//!
//! ```lua
//! return {
//!   name = "greet",
//!   description = "Greets a person.",
//!   system_prompt = "Greet only people.",   -- optional
//!   input_schema = {type = "object", properties = {who = {type = "string"}}, required = {"who"}},
//!   execute = function(input) return "hello " .. input.who, false end,
//! }
//! ```
//!
//! haft starts its own binary again for each module, and that process does nothing but
//! [`serve`]. It uses the line protocol of plugins on its standard input and output, so that
//! the plugin host can supervise it like any plugin. The first line it reads is a [`Load`]:
//! it contains the source, and no file is opened, so that exactly the trusted text runs.
//!
//! # How a module is stopped
//!
//! [`Limits`] apply to loading and to each call. The allocator enforces the memory limit.
//! A hook that Lua calls between instructions checks instructions, time and cancellation;
//! once it has stopped a call, nothing in the module can catch that.
//!
//! The hook is not called inside functions written in C (a pattern that backtracks forever,
//! `string.rep` of an empty string, `os.execute`), in finalizers, or while one of its own
//! errors closes variables. For those, a watchdog answers in the module's place when the
//! call is 200 ms late, and the process ends with [`exit::OVERDUE`]. Beyond that, the process
//! can be killed at any time: it has nothing to clean up.
//!
//! Time that a module spends waiting for `haft.call` does not count: the other tool has its
//! own limits, and may be asking the user.
//!
//! # Protocol
//!
//! One JSON object a line, at most [`MAX_LINE`] bytes, in both directions.
//!
//! ```text
//! ▶ {"type":"load","path":"tools/greet.lua","source":"return {…}","rights":"pure","limits":{"memory":67108864,"instructions":500000000,"seconds":120}}
//! ▶ {"type":"describe","protocol":2}
//! ◀ {"protocol":2,"tools":[{"name":"greet","description":"…","parameters":{…},"guidance":"…"}]}
//! ◀ {"type":"invalid","message":"tools/greet.lua: …"}            if the module is not a tool
//! ▶ {"type":"call","name":"greet","call_id":"1","params":{"who":"Ada"}}
//! ◀ {"type":"update","call_id":"1","content":[…]}                haft.update(text)
//! ◀ {"type":"host_call","call_id":"1","id":1,"name":"read","params":{…}}    haft.call(tool, args)
//! ▶ {"type":"host_result","id":1,"content":[…],"error":false}
//! ▶ {"type":"cancel","call_id":"1"}
//! ◀ {"type":"result","call_id":"1","content":[{"type":"text","text":"hello Ada"}],"error":false}
//! ```
//!
//! Calls are answered in order, one at a time. The worker ends at the end of its input;
//! calls before that are still answered, for up to a second.

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

/// Exit codes of a worker process. Any other code is a crash.
pub mod exit {
    /// The input ended.
    pub const DONE: u8 = 0;
    /// The first line was not a [`Load`](crate::Load).
    pub const NOT_LOADED: u8 = 2;
    /// The worker itself failed. The current call, if any, was answered.
    pub const FAULT: u8 = 101;
    /// The module keeps most of its memory, so that another call could not succeed either.
    /// The call was answered.
    pub const FULL: u8 = 122;
    /// The module could not be stopped in time. The call was answered.
    pub const OVERDUE: u8 = 124;
}
