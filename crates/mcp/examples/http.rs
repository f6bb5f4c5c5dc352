//! Serves the standard tools for this folder over streamable HTTP, with one session per
//! client.
//!
//! ```sh
//! cargo run -p haft-mcp --example http
//! ```

use haft::{Runtime, Sibling};
use haft_mcp::{HttpServer, HttpSettings, ServerName, Token};
use tokio_util::sync::CancellationToken;

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the user needs the address and the token"
)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let first = Runtime::builder().dir(".").toolset("standard").build()?;
    let token = Token::random()?;
    let settings = HttpSettings {
        token: Some(token.clone()),
        ..HttpSettings::default()
    };
    let name = ServerName::new("haft", env!("CARGO_PKG_VERSION"));
    let sessions = move || {
        let session = first.sibling(Sibling::default());
        session.map_err(|error| error.to_string())
    };
    let server = HttpServer::bind(([127, 0, 0, 1], 0).into(), settings, name, sessions).await?;
    println!("{} with the token {}", server.url(), token.reveal());
    let shutdown = CancellationToken::new();
    let interrupted = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    server.serve(shutdown).await?;
    Ok(())
}
