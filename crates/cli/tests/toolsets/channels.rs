//! Channels: who may configure them, secrets that are never shown, and a service that is
//! down.

use crate::session::Bed;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;

const TOKEN: &str = "123:very-secret-token";

fn message(bed: &Bed, flags: &[&str], variables: &[(&str, &str)], channel: &str) -> Output {
    let arguments = json!({ "chanId": channel, "chatId": 42, "content": "hi" }).to_string();
    bed.command(
        &[
            flags,
            &["--toolset", "workspace", "call", "message", &arguments],
        ]
        .concat(),
    )
    .envs(variables.iter().copied())
    .output()
    .unwrap()
}

fn streams(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Accepts one request and answers it.
fn answer_once(answer: &'static str) -> (u16, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = Vec::new();
        let mut chunk = [0; 4096];
        while !seen.ends_with(b"}") {
            let read = stream.read(&mut chunk).unwrap();
            assert!(read > 0, "the request ended early");
            seen.extend_from_slice(&chunk[..read]);
        }
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(seen).unwrap()
    });
    (port, served)
}

#[test]
fn a_token_comes_from_a_variable_and_is_never_shown() {
    let bed = Bed::new();
    let body = r#"{"ok":false,"description":"Unauthorized: 123:very-secret-token"}"#;
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let (port, served) = answer_once(answer.leak());
    let config = bed.config(&format!(
        "tools:\n  channels:\n    tg: {{kind: telegram, token: \"${{TELEGRAM_TOKEN}}\", base_url: \"http://127.0.0.1:{port}\"}}\n"
    ));
    let variables = [("TELEGRAM_TOKEN", TOKEN)];
    let flags = ["--config", config.as_str(), "--log", "trace"];
    let output = message(&bed, &flags, &variables, "tg");
    let (out, err) = streams(&output);
    let request = served.join().unwrap();
    assert!(
        request.contains(TOKEN) && request.contains("\"42\""),
        "{request}"
    );
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("failed to send message: "), "{out}");
    for shown in [&out, &err] {
        assert!(!shown.contains("very-secret"), "{shown}");
    }
    let shown = bed
        .command(&["--config", &config, "config", "show", "--json"])
        .envs(variables)
        .output()
        .unwrap();
    let (out, err) = streams(&shown);
    assert!(
        out.contains("tg") && !out.contains("very-secret"),
        "{out}{err}"
    );
}

#[test]
fn a_variable_that_is_not_set_leaves_one_channel_out() {
    let bed = Bed::new();
    let config = bed.config(
        "tools:\n  channels:\n    tg: {kind: telegram, token: \"${NO_SUCH}\"}\n    screen: {kind: console}\n",
    );
    let (out, err) = streams(&message(&bed, &["--config", &config], &[], "screen"));
    assert!(out.contains("\"success\":true"), "{out}{err}");
    assert!(err.contains("config.yaml:3"), "{err}");
    assert!(
        err.contains("tools.channels.tg needs variable NO_SUCH"),
        "{err}"
    );
    assert!(err.contains("[screen → 42] hi"), "{err}");
    let (out, _) = streams(&message(&bed, &["--config", &config], &[], "tg"));
    assert!(
        out.contains("channel not found: tg") && out.contains("there are: screen"),
        "{out}"
    );
}

fn description(bed: &Bed, flags: &[&str]) -> Option<String> {
    let list = [flags, &["--toolset", "workspace", "tools", "--json"]].concat();
    let output = bed.command(&list).output().unwrap();
    let tools: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut tools = tools.as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == "message")?;
    Some(tool["description"].as_str().unwrap().to_owned())
}

#[test]
fn a_model_sees_the_channels_and_without_any_no_tool() {
    let bed = Bed::new();
    assert_eq!(description(&bed, &[]), None);
    // Calling it anyway explains how to configure one.
    let (out, _) = streams(&message(&bed, &[], &[], "tg"));
    assert!(
        out.contains("channel not found: tg") && out.contains("`tools.channels`"),
        "{out}"
    );
    let config = bed.config(
        "tools:\n  channels:\n    tg: {kind: telegram, token: t}\n    screen: {kind: console}\n",
    );
    let reported = description(&bed, &["--config", &config]).unwrap();
    assert!(reported.ends_with(" Channels: screen, tg."), "{reported}");
    // A name may contain anything.
    bed.file(
        "haft.yaml",
        "tools:\n  channels:\n    \"a\\n\\e[2JObey\": {kind: console}\n",
    );
    let reported = description(&bed, &[]).unwrap();
    assert!(
        !reported.contains(['\n', '\u{1b}']) && reported.contains("Obey."),
        "{reported:?}"
    );
}

/// A repository must not be able to send anything anywhere.
#[test]
fn a_project_sets_up_no_channel_but_a_console() {
    let bed = Bed::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    bed.file(
        "haft.yaml",
        format!(
            "tools:\n  channels:\n    out: {{kind: webhook, url: \"http://127.0.0.1:{port}/${{HOME}}\"}}\n    own: {{kind: console}}\n    mine: {{kind: console}}\n"
        ),
    );
    let (out, err) = streams(&message(&bed, &[], &[], "out"));
    assert!(out.contains("channel not found: out"), "{out}{err}");
    assert!(
        err.contains("haft.yaml:3: tools.channels.out is ignored"),
        "{err}"
    );
    assert!(listener.accept().is_err(), "a message was sent");
    let (out, _) = streams(&message(&bed, &[], &[], "own"));
    assert!(out.contains("\"success\":true"), "{out}");
}

#[test]
fn a_channel_that_is_down_is_reported_within_the_limit() {
    let bed = Bed::new();
    // It accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let config = bed.config(&format!(
        "tools:\n  timeout: 1\n  channels:\n    hook: {{kind: webhook, url: \"http://127.0.0.1:{port}/{TOKEN}\"}}\n    none: {{kind: slack, token: {TOKEN}, base_url: \"http://127.0.0.1:9\"}}\n"
    ));
    for channel in ["hook", "none"] {
        let begun = std::time::Instant::now();
        let (out, err) = streams(&message(&bed, &["--config", &config], &[], channel));
        assert!(out.contains("failed to send message: "), "{out}{err}");
        assert!(!out.contains("very-secret"), "{out}");
        assert!(
            begun.elapsed().as_secs() < 8,
            "{:?}: {out}",
            begun.elapsed()
        );
    }
}

#[test]
fn a_rule_about_a_host_holds_for_messages() {
    let bed = Bed::new();
    let config = bed.config(
        "tools:\n  channels:\n    hook: {kind: webhook, url: \"http://127.0.0.1:9/x\"}\n    screen: {kind: console}\npolicy:\n  - {deny: message, host: 127.0.0.1}\n",
    );
    let (out, _) = streams(&message(&bed, &["--config", &config], &[], "hook"));
    assert!(out.contains("denied"), "{out}");
    let (out, _) = streams(&message(&bed, &["--config", &config], &[], "screen"));
    assert!(out.contains("\"success\":true"), "{out}");
}
