//! `haft doctor`: models and runtimes.

use crate::scratch::Scratch;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn keys_are_named_and_never_shown() {
    let scratch = Scratch::new();
    let environment = [("OPENAI_API_KEY", "sk-not-to-be-seen")];
    for args in [&["doctor"][..], &["doctor", "--json"]] {
        let ended = scratch.haft_with(&environment, args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.out.contains("sk-not"), "{}", ended.out);
    }
    let shown = scratch.haft_with(&environment, &["doctor"]).out;
    for words in [
        "model: gpt-5 (openai-responses)",
        "OPENAI_API_KEY is set",
        "export ANTHROPIC_API_KEY=",
        "export GEMINI_API_KEY=",
        "runtimes: bash, ",
        "lua (built in)",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let shown = scratch.haft(&["doctor"]).out;
    assert!(shown.contains("model: none; set a key"), "{shown}");
}

#[test]
fn missing_programs_are_reported_with_what_needs_them() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.work("bin")).unwrap();
    std::os::unix::fs::symlink("/bin/bash", scratch.work("bin/bash")).unwrap();
    let path = scratch.work("bin");
    let shown = scratch
        .haft_with(&[("PATH", path.to_str().unwrap())], &["doctor"])
        .out;
    assert!(shown.contains("runtimes: bash, lua (built in)"), "{shown}");
    assert!(
        shown.contains("python3 is not on PATH; needed for plugins in Python"),
        "{shown}"
    );
}

#[test]
fn a_server_of_models_on_this_machine_is_found() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    scratch.user(&format!(
        "provider: ollama\nmodel: small\nbase_url: http://127.0.0.1:{port}\n"
    ));
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let count = stream.read(&mut request).unwrap();
        let body = r#"{"models":[{"name":"small:1b"},{"name":"a\u001b[31m"}]}"#;
        write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}").unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    let ended = scratch.haft(&["doctor", "--json"]);
    assert!(answers.join().unwrap().starts_with("GET /api/tags "));
    let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(found["model"]["provider"], "ollama");
    assert_eq!(found["ollama"]["models"][0], "small:1b");
    // The listener is gone now.
    let shown = scratch.haft(&["doctor"]).out;
    assert!(
        shown.contains(&format!("ollama: no answer at 127.0.0.1:{port}")),
        "{shown}"
    );
}
