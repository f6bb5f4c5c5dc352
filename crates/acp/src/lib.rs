//! haft's agent over the Agent Client Protocol (ACP), for editors.
//!
//! ```text
//! stdin ─▶ rpc (one JSON message per line) ─▶ connection ─▶ session ─▶ haft_agent::Agent
//! stdout ◀─ outbox ◀─ schema (types of the protocol) ◀─ update ◀─ translate (events)
//!                                                        ◀─ asker (questions of the runtime)
//! ```
//!
//! [`serve`] handles one client on standard input and output. A [`Host`] opens sessions and
//! lists them; this crate reads neither the environment nor any configuration. Types of the
//! protocol library appear in `schema` only. The transport is haft's own, because an agent
//! has to survive any input: lines that are too long are skipped and answered, invalid
//! messages get an error, and the end of input ends everything that was started.

mod asker;
mod changes;
mod client;
mod commands;
mod connection;
mod outbox;
mod plain_text;
mod port;
mod prompt;
mod replay;
mod rpc;
mod schema;
mod session;
mod tool;
mod translate;
mod update;

pub use connection::{ServeError, serve};
pub use port::{
    Choices, Failure, FailureKind, Host, Listed, Mode, Offers, Opened, Options, ProgramInfo, Seat,
    Server, SlashCommand, Start, SubAgent, Wanted,
};
