//! `haft mcp list` and `haft mcp test`, as people type them.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Servers {
    /// List the MCP servers of the configuration, and what is known of each.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp list\n  haft mcp list --json"
    )]
    List(List),
    /// Reach a server, show what it has, sign in, accept what changed.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp test docs\n  haft mcp test docs --yes"
    )]
    Test(Test),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print an array with an object for each server
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The name it has in the configuration
    pub(crate) name: String,
    /// Accept tools that are not what they were, without being asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// How long it may take to begin, in seconds [default: 120]
    #[arg(long, value_name = "SECONDS", default_value_t = 120, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Print the report as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
