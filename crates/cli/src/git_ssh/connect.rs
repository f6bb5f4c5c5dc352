//! A hidden command that commands use as ssh's `ProxyCommand`: it connects standard input and
//! output to a host through the proxy that `HTTPS_PROXY` names.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::ExitCode;

/// Word that selects the hidden command.
pub(crate) const WORD: &str = "__connect";

/// Maximum size of the proxy's answer in bytes.
const MAX_ANSWER: usize = 16 << 10;

/// Runs the hidden command if these arguments ask for it.
pub(crate) fn hidden(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.nth(1)? != WORD {
        return None;
    }
    let words: Vec<String> = arguments
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let [host, port] = words.as_slice() else {
        return Some(ExitCode::from(2));
    };
    Some(match connect(host, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::note(&format!("{host}:{port}: {error}"));
            ExitCode::FAILURE
        }
    })
}

fn connect(host: &str, port: &str) -> io::Result<()> {
    let proxy = crate::env::https_proxy();
    let invalid = || io::Error::other("HTTPS_PROXY does not name haft's proxy");
    let (pass, address) = proxy
        .as_deref()
        .and_then(|proxy| proxy.strip_prefix("http://"))
        .and_then(|proxy| proxy.rsplit_once('@'))
        .ok_or_else(invalid)?;
    let mut stream = TcpStream::connect(address)?;
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    let pass = BASE64_STANDARD.encode(pass);
    write!(
        stream,
        "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\nProxy-Authorization: Basic {pass}\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the answer belongs to the server.
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < MAX_ANSWER {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        answer.extend(byte);
    }
    let status = String::from_utf8_lossy(&answer);
    let status = status.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!("the proxy said {status}")));
    }
    let mut up = stream.try_clone()?;
    let sending = std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut up);
        let _ = up.shutdown(Shutdown::Write);
    });
    copy_at_once(&mut stream)?;
    drop(sending);
    Ok(())
}

/// Copies to standard output without buffering.
fn copy_at_once(from: &mut TcpStream) -> io::Result<()> {
    let mut to = io::stdout().lock();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok(());
        };
        to.write_all(part)?;
        to.flush()?;
    }
}
