//! The commands, one file each.

pub(crate) mod acp;
pub(crate) mod call;
pub(crate) mod changes;
pub(crate) mod chat;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod plugin;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod start;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod why;
