//! Arguments of `haft mcp list` and `haft mcp test`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Servers {
    /// List the configured MCP servers and their state.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp list\n  haft mcp list --json"
    )]
    List(List),
    /// Connect to a server, sign in, and review its tools.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp test docs\n  haft mcp test docs --yes"
    )]
    Test(Test),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print a JSON array with one object per server
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Name of the server in the configuration
    pub(crate) name: String,
    /// Accept changed tools without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Seconds the server may take to start [default: its start_timeout]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: Option<u64>,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
