//! Signing in: the person opens an address, and is sent back to one on this machine.

use crate::exit::Failure;
use crate::output;
use haft_mcp::client::RemoteServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a request is at most.
const LONGEST: usize = 16 << 10;

const THANKS: &str = "You are signed in. This page can be closed.\n";

/// Signs in to a server, at a terminal.
pub(super) async fn run(
    server: &Arc<RemoteServer>,
    challenge: Option<String>,
) -> Result<(), Failure> {
    if !output::can_ask() {
        return Err(Failure::failed(format!(
            "MCP server {} wants you to sign in, and nobody is here",
            server.name()
        ))
        .hint(format!(
            "run `haft mcp test {}` at a terminal",
            server.name()
        )));
    }
    let failed = |what: &dyn std::fmt::Display| {
        Failure::failed(format!("MCP server {}: no sign-in: {what}", server.name()))
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.map_err(|error| failed(&error))?;
    let address = listener.local_addr().map_err(|error| failed(&error))?;
    let redirect = format!("http://{address}/callback");
    let pending = server
        .begin_sign_in(challenge, &redirect)
        .await
        .map_err(|error| failed(&error))?;
    output::note(&format!(
        "Open this address and sign in; haft waits for 5 minutes.\n\n  {}\n",
        pending.address()
    ));
    let answered = tokio::time::timeout(PATIENCE, answer(&listener)).await;
    let path = answered.map_err(|_| failed(&"nobody came back"))?;
    server
        .finish_sign_in(pending, &format!("http://{address}{path}"))
        .await
        .map_err(|error| failed(&error))
}

/// The path that the person was sent back to. Whatever else comes is not for us.
async fn answer(listener: &TcpListener) -> String {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            continue;
        };
        let path = tokio::time::timeout(Duration::from_secs(5), path(&mut stream)).await;
        let is_ours = matches!(&path, Ok(Some(path)) if path.starts_with("/callback?"));
        let (status, body) = match is_ours {
            true => ("200 OK", THANKS),
            false => ("404 Not Found", "Not found\n"),
        };
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(reply.as_bytes()).await;
        if let (true, Ok(Some(path))) = (is_ours, path) {
            return path;
        }
    }
}

async fn path(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 1024];
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || text.len() > LONGEST {
            return None;
        }
        text.extend_from_slice(buffer.get(..read)?);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then_some(())?;
    words.next().map(str::to_owned)
}
