//! Signs in to a server: the user opens a URL in a browser, which then redirects to an
//! address on this machine.

use crate::exit::Failure;
use crate::output;
use haft_mcp::client::RemoteServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Time for the user to sign in.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

/// Maximum bytes of a request.
const MAX_REQUEST: usize = 16 << 10;

const THANKS: &str = "You are signed in. This page can be closed.\n";

/// Signs in to a server. Needs a terminal.
pub(super) async fn run(
    server: &Arc<RemoteServer>,
    challenge: Option<String>,
) -> Result<(), Failure> {
    if !output::can_ask() {
        return Err(Failure::failed(format!(
            "MCP server {} wants you to sign in, which needs a terminal",
            server.name()
        ))
        .hint(format!(
            "run `haft mcp test {}` in a terminal",
            server.name()
        )));
    }
    let failed = |what: &dyn std::fmt::Display| {
        Failure::failed(format!(
            "MCP server {}: cannot sign in: {what}",
            server.name()
        ))
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
        "Open this URL and sign in; haft waits for 5 minutes.\n\n  {}\n",
        pending.address()
    ));
    let answered = tokio::time::timeout(SIGN_IN_TIMEOUT, callback_path(&listener)).await;
    let path = answered.map_err(|_| failed(&"no answer within 5 minutes"))?;
    server
        .finish_sign_in(pending, &format!("http://{address}{path}"))
        .await
        .map_err(|error| failed(&error))
}

/// Waits for the redirect and returns its path. Other requests get a 404.
async fn callback_path(listener: &TcpListener) -> String {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else {
            continue;
        };
        let path = tokio::time::timeout(Duration::from_secs(5), path(&mut stream)).await;
        let is_callback = matches!(&path, Ok(Some(path)) if path.starts_with("/callback?"));
        let (status, body) = match is_callback {
            true => ("200 OK", THANKS),
            false => ("404 Not Found", "Not found\n"),
        };
        let reply = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let _ = stream.write_all(reply.as_bytes()).await;
        if let (true, Ok(Some(path))) = (is_callback, path) {
            return path;
        }
    }
}

async fn path(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 1024];
    while !text.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 || text.len() > MAX_REQUEST {
            return None;
        }
        text.extend_from_slice(buffer.get(..read)?);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut words = text.lines().next()?.split(' ');
    (words.next()? == "GET").then_some(())?;
    words.next().map(str::to_owned)
}
