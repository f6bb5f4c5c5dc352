//! Tools that are other programs, through the built binary: plugins in every protocol,
//! programs, Lua modules; what they cannot do or break, and that nothing in a project
//! runs before the user trusts it.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test prepares its own folders and fails by panicking"
)]

mod arguments;
mod bed;
mod bounded;
mod confined;
mod crashes;
mod environment;
mod executables;
mod floods;
mod guests;
mod linked;
mod lua;
mod names;
mod policy;
mod protocols;
mod schemas;
mod second;
mod seeds;
mod session;
mod stale;
mod start;
mod terminal;
mod trust;
