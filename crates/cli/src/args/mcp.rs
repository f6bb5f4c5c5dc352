//! `haft mcp` as people type it.

use super::mcp_servers::Servers;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Over HTTP on HOST:PORT, or on a PORT of loopback (0: any)
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Ask clients for no token, which only loopback may
    #[arg(long, requires = "http")]
    pub(crate) no_token: bool,
    #[command(subcommand)]
    pub(crate) servers: Option<Servers>,
}
