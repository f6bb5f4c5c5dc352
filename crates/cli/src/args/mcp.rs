//! Arguments of `haft mcp`.

use super::mcp_servers::Servers;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Serve over HTTP on HOST:PORT, or on a loopback PORT
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Do not require a token; allowed on loopback only
    #[arg(long, requires = "http")]
    pub(crate) no_token: bool,
    /// Accept this host name of a proxy (repeatable)
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) allow_host: Vec<String>,
    #[command(subcommand)]
    pub(crate) servers: Option<Servers>,
}
