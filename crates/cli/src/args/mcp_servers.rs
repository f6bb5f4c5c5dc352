//! Arguments of `haft mcp list`, `test`, `add`, `import`, `remove` and `install`.

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
    /// Add a server to your own haft.yaml.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp add github -e GITHUB_TOKEN='${GITHUB_TOKEN}' -- npx -y server-github\n  haft mcp add wiki https://example.com/mcp"
    )]
    Add(Add),
    /// Add the servers of another agent to your own haft.yaml.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp import claude\n  haft mcp import codex"
    )]
    Import(Import),
    /// Remove a server from your own haft.yaml.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp list\n  haft mcp remove docs"
    )]
    Remove(Remove),
    /// Add haft to the MCP servers of another agent.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft mcp install claude\n  haft mcp install codex"
    )]
    Install(Install),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Name of the server; its tools are called NAME_TOOL
    pub(crate) name: String,
    /// Address of the server
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Variable that the program gets; ${VAR} is filled in when it starts (repeatable)
    #[arg(short, long, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// Header of every request to the address (repeatable)
    #[arg(short = 'H', long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// How to talk to it [default: found out]
    #[arg(short, long, value_parser = ["stdio", "http", "sse"])]
    pub(crate) transport: Option<String>,
    /// Program that haft starts as the server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The agent to read the settings of
    #[arg(value_parser = ["claude", "codex", "gemini", "qwen", "opencode", "cursor", "vscode", "cline"])]
    pub(crate) program: String,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The agent to add haft to
    #[arg(value_parser = crate::commands::mcp_servers::client_names())]
    pub(crate) program: String,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Name of the server in the configuration
    pub(crate) name: String,
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
