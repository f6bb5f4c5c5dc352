//! Starting the server: its address, and the token for clients.

use crate::bed::{Bed, Server};
use haft_testing::http::Client;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn is_served(client: &Client) -> bool {
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "t", "version": "0" },
        },
    });
    match client.post(&hello).status {
        200 => true,
        401 => false,
        status => panic!("{status}"),
    }
}

#[test]
fn the_token_is_created_once_and_is_private() {
    let bed = Bed::new();
    let server = bed.serve(&[]);
    let url = server.announcement["url"].as_str().unwrap();
    assert!(
        url.starts_with("http://127.0.0.1:") && url.ends_with("/mcp"),
        "{url}"
    );
    let token = server.announcement["token"].as_str().unwrap().to_owned();
    assert!(token.len() >= 64, "{token}");
    let file = bed.state("mcp-token");
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), token);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(is_served(&server.client));
    assert!(!is_served(&server.client.without("authorization")));
    assert!(!is_served(
        &server.client.with("authorization", "Bearer no")
    ));
    let ended = server.end(Signal::TERM);
    assert_eq!((ended.code, ended.out.as_str()), (Some(143), ""));
    let again = bed.serve(&[]);
    assert_eq!(again.announcement["token"], token.as_str());
    assert_eq!(again.end(Signal::INT).code, Some(130));
    // A token that others may read is no longer secret.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = bed.haft(&["mcp", "--http", "0"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("other users may read it"));
}

#[test]
fn the_users_token_is_used_and_not_stored() {
    let bed = Bed::new();
    let mut command = bed.command(&["mcp", "--http", ":0"]);
    command.env("HAFT_MCP_TOKEN", "a-token-of-their-own");
    let server = Server::start(command);
    assert_eq!(server.announcement["token"], "a-token-of-their-own");
    assert!(is_served(&server.client));
    assert!(!bed.state("mcp-token").exists());
    // Commands that a client runs do not see it.
    for weak in ["short", "with a space in the token", "ümlaut-ümlaut-ümlaut"] {
        let mut command = bed.command(&["mcp", "--http", "0"]);
        let output = haft_testing::bed::Ended::of(command.env("HAFT_MCP_TOKEN", weak));
        assert_eq!(output.code, Some(2), "{weak}");
        let printed = output.err;
        assert!(
            printed.contains("HAFT_MCP_TOKEN") && !printed.contains(weak),
            "{printed}"
        );
    }
}

#[test]
fn without_a_token_only_on_loopback() {
    let bed = Bed::new();
    let server = bed.serve(&["--no-token"]);
    assert_eq!(server.announcement["token"], Value::Null);
    assert!(is_served(&server.client));
    // Other origins, and other host names for this address, are still refused.
    let evil = server.client.with("origin", "http://evil.example");
    assert_eq!(evil.post(&json!({})).status, 403);
    let rebound = server.client.with("host", "evil.example");
    assert_eq!(rebound.post(&json!({})).status, 403);
    let simple = server.client.with("content-type", "text/plain");
    assert_eq!(simple.post(&json!({})).status, 415);
    let output = bed.haft(&["mcp", "--http", "0.0.0.0:0", "--no-token"]);
    assert_eq!(output.code, Some(2));
    let printed = output.err;
    assert!(printed.contains("remove --no-token"), "{printed}");
    assert!(output.out.is_empty());
    let alone = bed.haft(&["mcp", "--no-token"]);
    assert_eq!(alone.code, Some(2), "it says nothing about stdio");
}

#[test]
fn with_a_token_other_machines_may_come() {
    let bed = Bed::new();
    let mut command = bed.command(&["mcp", "--http", "0.0.0.0:0"]);
    command.env("HAFT_MCP_TOKEN", "a-token-of-their-own");
    let server = Server::start(command);
    assert!(is_served(&server.client));
    assert!(is_served(&server.client.with("host", "192.0.2.1:8080")));
    let named = server.client.with("host", "evil.example");
    assert_eq!(named.post(&json!({})).status, 403);
    assert!(!is_served(&server.client.without("authorization")));
}

#[test]
fn an_unavailable_address_is_reported() {
    let bed = Bed::new();
    let server = bed.serve(&[]);
    let taken = server.client.address.to_string();
    let output = bed.haft(&["mcp", "--http", &taken]);
    assert_eq!(output.code, Some(1));
    let printed = output.err;
    assert!(
        printed.contains(&format!("cannot listen on {taken}")),
        "{printed}"
    );
    assert!(printed.contains("choose another one"), "{printed}");
    for wrong in ["", "99999", "127.0.0.1", "nowhere.invalid:1", "::"] {
        let output = bed.haft(&["mcp", "--http", wrong]);
        assert_eq!(output.code, Some(2), "{wrong}");
        assert!(output.out.is_empty());
    }
}

#[test]
fn the_log_never_says_the_token() {
    let bed = Bed::new();
    std::fs::write(bed.work("a.txt"), "text").unwrap();
    let server = bed.serve(&["--log", "trace"]);
    let token = server.announcement["token"].as_str().unwrap().to_owned();
    let (client, _) = server.client.initialize("2025-11-25", json!({}));
    let session = client
        .headers
        .iter()
        .find(|(name, _)| name == "mcp-session-id")
        .map(|(_, id)| id.clone())
        .unwrap();
    let reply = client.call(1, "read", json!({ "path": "a.txt" }));
    assert_eq!(reply["result"]["isError"], false);
    // It is not printed elsewhere either.
    let echoed = client.call(2, "read", json!({ "path": token }));
    assert_eq!(echoed["result"]["isError"], true);
    let _ = server
        .client
        .with("authorization", "Bearer wrong-token")
        .post(&json!({}));
    let _ = server.client.send("GET", &format!("/{token}"), None);
    let ended = server.end(Signal::TERM);
    assert!(
        ended.err.contains("tools/call") || ended.err.contains("CallTool"),
        "it logs"
    );
    for secret in [token.as_str(), "wrong-token", "Bearer"] {
        assert!(!ended.err.contains(secret), "{secret}");
    }
    assert!(!ended.err.to_lowercase().contains("authorization:"));
    assert!(
        !ended.err.contains(&session),
        "a session's id lets one in too"
    );
}
