//! Serves the standard tools for this folder over standard input and output.
//!
//! ```sh
//! cargo run -p haft-mcp --example stdio
//! ```

use haft_mcp::{ServerName, serve_stdio};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = haft::Runtime::builder()
        .dir(".")
        .toolset("standard")
        .build()?;
    let shutdown = CancellationToken::new();
    let interrupted = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let name = ServerName::new("haft", env!("CARGO_PKG_VERSION"));
    serve_stdio(runtime, name, shutdown).await?;
    Ok(())
}
