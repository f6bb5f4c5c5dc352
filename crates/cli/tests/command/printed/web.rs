//! The printed calls of the web tools, with their addresses: a proxy on this machine
//! answers in place of the hosts.

use super::blocks::blocks;
use crate::scratch::Scratch;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

const PAGE: &str = include_str!("../../seeds/standard.md");
const HOSTS: [&str; 2] = ["go.dev", "lite.duckduckgo.com"];

/// A page with what the document promises to convert: a heading, a list, code, an image.
const NOTES: &str = "<html><head><title>Go 1.24 Release Notes</title></head><body><main>\
<h1>Go 1.24 Release Notes</h1><p>It arrives six months after Go 1.23.</p>\
<ul><li>Generic type aliases</li><li>Weak pointers</li></ul>\
<pre><code>for b.Loop() {\n\twork()\n}</code></pre>\
<p><img src=\"gopher.png\" alt=\"a gopher\"></p></main></body></html>";

/// Seven results of the Lite page, of which five are requested.
fn found() -> String {
    let row = |number: usize| {
        format!(
            "<tr><td>{number}.</td><td><a class='result-link' href=\"//duckduckgo.com/l/?uddg=https%3A%2F%2Fgo.dev%2F{number}\">Go {number}</a></td></tr>\
             <tr><td></td><td class='result-snippet'>Snippet <b>{number}</b>.</td></tr>"
        )
    };
    let rows: String = (1..=7).map(row).collect();
    format!("<html><body><table>{rows}</table></body></html>")
}

/// Reads the head of a request, and returns its first line.
fn head(stream: &mut impl BufRead) -> String {
    let mut first = String::new();
    stream.read_line(&mut first).unwrap();
    let mut line = String::new();
    while stream.read_line(&mut line).unwrap() > 2 {
        line.clear();
    }
    first.trim_end().to_owned()
}

/// Handles one connection: a tunnel to a host, whose page is sent over TLS.
fn serve(stream: TcpStream, tls: Arc<ServerConfig>) -> (String, String) {
    let mut stream = BufReader::new(stream);
    let asked = head(&mut stream);
    let mut stream = stream.into_inner();
    write!(stream, "HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let connection = ServerConnection::new(tls).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let expected = head(&mut stream);
    let body = match asked.contains("go.dev") {
        true => NOTES.to_owned(),
        false => found(),
    };
    let stream = stream.get_mut();
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    // Until the other side is done too.
    let _ = stream.read_to_end(&mut Vec::new());
    (asked, expected)
}

/// A scratch folder with a proxy as its internet, and the requests to it.
fn online() -> (Scratch, mpsc::Receiver<(String, String)>) {
    let made = rcgen::generate_simple_self_signed(HOSTS.map(str::to_owned)).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let tls = Arc::new(tls);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, reported) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = tell.send(serve(stream.unwrap(), Arc::clone(&tls)));
        }
    });
    let scratch = Scratch::new();
    let authority = scratch.home("authority.pem");
    std::fs::write(&authority, made.cert.pem()).unwrap();
    scratch.user(&format!(
        "tools:\n  web:\n    proxy: http://127.0.0.1:{port}\n    ca_file: {}\n    allow_hosts: [{}]\n",
        authority.display(),
        HOSTS.join(", ")
    ));
    (scratch, reported)
}

fn printed(tool: &str) -> String {
    let all = blocks(PAGE).into_iter();
    let mut of_it = all.filter(|block| block.tool == tool);
    of_it.next().unwrap().text
}

#[test]
fn web_fetch() {
    let (scratch, reported) = online();
    let ended = scratch.haft(&["call", "web_fetch", &printed("web_fetch")]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (
            Some(0),
            "# Go 1.24 Release Notes\n\nIt arrives six months after Go 1.23.\n\n- Generic type aliases\n- Weak pointers\n\n```\nfor b.Loop() {\n\twork()\n}\n```\n\n[Image: a gopher]\n"
        ),
        "{ended:?}"
    );
    let (asked, expected) = reported.recv().unwrap();
    assert_eq!(asked, "CONNECT go.dev:443 HTTP/1.1");
    assert_eq!(expected, "GET /doc/go1.24 HTTP/1.1");
}

#[test]
fn web_search() {
    let (scratch, reported) = online();
    let ended = scratch.haft(&["call", "web_search", &printed("web_search")]);
    let results: Vec<String> = (1..=5)
        .map(|number| {
            format!(
                "{number}. **Go {number}**\n   URL: https://go.dev/{number}\n   Snippet {number}.\n"
            )
        })
        .collect();
    let expected = format!(
        "Search results for: \"golang 1.24 release notes\"\n\n{}",
        results.join("\n")
    );
    assert_eq!((ended.code, &ended.out), (Some(0), &expected), "{ended:?}");
    let (asked, expected) = reported.recv().unwrap();
    assert_eq!(asked, "CONNECT lite.duckduckgo.com:443 HTTP/1.1");
    assert_eq!(expected, "GET /lite/?q=golang+1.24+release+notes HTTP/1.1");
}
