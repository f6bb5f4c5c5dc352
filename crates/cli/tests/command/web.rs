//! The web tools: where they are offered, who may configure them, and the report of `haft
//! doctor`.

use crate::scratch::Scratch;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;

/// Answers every request with one page, and reports the first lines.
fn serve(status: &'static str, body: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, reported) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
            let kind = if body.starts_with('{') {
                "application/json"
            } else {
                "text/html"
            };
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = tell.send(head.lines().next().unwrap_or_default().to_owned());
        }
    });
    (port, reported)
}

const RESULTS: &str = r#"<a class="result-link" href="https://a.example/">A</a>"#;
const CAPTCHA: &str = r#"<form id="challenge-form"></form>"#;

fn tools(scratch: &Scratch, flags: &[&str]) -> Vec<String> {
    let ended = scratch.haft(&[flags, &["tools", "--json"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all: Vec<Value> = serde_json::from_str(&ended.out).unwrap();
    let names = all.iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn presets_and_settings_decide_where_they_are() {
    let scratch = Scratch::new();
    let web = ["web_search", "web_fetch"];
    assert_eq!(tools(&scratch, &["--preset", "web"]), web);
    let all = tools(&scratch, &["--preset", "all"]);
    assert_eq!(all.len(), 9);
    assert_eq!(all[7..], web);
    for toolset in ["workspace", "deepagents", "ah"] {
        assert!(!tools(&scratch, &["--toolset", toolset]).contains(&web[0].to_owned()));
    }
    assert_eq!(tools(&scratch, &[]), ["read", "bash", "edit", "write"]);
    scratch.user("tools: {web: {enabled: true}}\n");
    for toolset in ["standard", "workspace", "deepagents", "ah"] {
        let names = tools(&scratch, &["--toolset", toolset]);
        assert_eq!(names[names.len() - 2..], web, "{toolset}");
    }
    // A project can turn them off, not on.
    scratch.file("haft.yaml", "tools: {web: {enabled: false}}\n");
    assert_eq!(tools(&scratch, &["--toolset", "ah"]).len(), 4);
    scratch.user("");
    scratch.file("haft.yaml", "tools: {web: {enabled: true}}\n");
    assert_eq!(tools(&scratch, &["--toolset", "ah"]).len(), 4);
    let printed = scratch.haft(&["tools"]).err;
    assert!(
        printed.contains("haft.yaml:1: tools.web.enabled is ignored: only your own haft.yaml"),
        "{printed}"
    );
    // The user can call them by name, whatever the preset.
    let ended = scratch.haft(&["call", "web_fetch", "url=example.org"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.out.starts_with("the address has no scheme"),
        "{ended:?}"
    );
}

#[test]
fn failures_are_in_the_words_of_the_toolset() {
    let scratch = Scratch::new();
    scratch.user("tools: {web: {enabled: true}}\n");
    for (toolset, words) in [
        (
            "workspace",
            r#"{"success":false,"error":"not allowed to connect to 127.0.0.1: it is a loopback address","hint":"Only the user"#,
        ),
        (
            "deepagents",
            r#"{"status":"error","message":"not allowed to connect to 127.0.0.1: it is a loopback address","hint":"Only the user"#,
        ),
        (
            "ah",
            "error: not allowed to connect to 127.0.0.1: it is a loopback address\nOnly the user",
        ),
        (
            "standard",
            "not allowed to connect to 127.0.0.1: it is a loopback address\nOnly the user",
        ),
    ] {
        let ended = scratch.haft(&[
            "--toolset",
            toolset,
            "call",
            "web_fetch",
            "url=http://127.0.0.1/",
        ]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.out.starts_with(words), "{toolset}: {}", ended.out);
    }
}

#[test]
fn only_the_user_can_allow_hosts() {
    let (port, reported) = serve("200 OK", "<h1>inside</h1>");
    let url = format!("url=http://127.0.0.1:{port}/x");
    let allow = format!("tools: {{web: {{allow_hosts: ['127.0.0.1:{port}']}}}}\n");
    let scratch = Scratch::new();
    scratch.file("haft.yaml", &allow);
    let ended = scratch.haft(&["call", "web_fetch", &url]);
    assert!(ended.out.starts_with("not allowed to connect"), "{ended:?}");
    assert!(
        ended.err.contains("tools.web.allow_hosts is ignored"),
        "{ended:?}"
    );
    assert!(reported.try_recv().is_err());
    scratch.file("haft.yaml", "");
    scratch.user(&allow);
    let ended = scratch.haft(&["call", "web_fetch", &url]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "# inside\n"),
        "{ended:?}"
    );
    assert_eq!(reported.recv().unwrap(), "GET /x HTTP/1.1");
    // A project can deny what the user allows.
    scratch.file("haft.yaml", "tools: {web: {deny_hosts: [127.0.0.0/8]}}\n");
    let ended = scratch.haft(&["call", "web_fetch", &url]);
    assert!(
        ended.out.contains("a host that the configuration denies"),
        "{ended:?}"
    );
    let (shown, from) = scratch.shown("tools.web", &[], &[]);
    assert_eq!(shown["deny_hosts"][0], "127.0.0.0/8");
    assert!(from.contains("haft.yaml:1"), "{from}");
    // A file named by the user counts as the user's choice; proxies in the environment do
    // not.
    let path = scratch.work("own.yaml");
    std::fs::write(&path, &allow).unwrap();
    let proxies = [
        ("http_proxy", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
    ];
    scratch.file("haft.yaml", "");
    scratch.user("");
    let ended = scratch.haft_with(
        &proxies,
        &["--config", "own.yaml", "call", "web_fetch", &url],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Web tools chosen only by the project need approval, because a URL can carry data away.
#[test]
fn a_project_s_preset_is_asked_about() {
    let (port, reported) = serve("200 OK", "<h1>outside</h1>");
    let scratch = Scratch::new();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}
{{"jsonrpc":"2.0","method":"notifications/initialized"}}
{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"web_fetch","arguments":{{"url":"http://127.0.0.1:{port}/"}}}}}}
"#
    );
    let own = format!("tools: {{web: {{allow_hosts: ['127.0.0.1:{port}']}}}}\n");
    scratch.user(&own);
    scratch.file("haft.yaml", "tools: {preset: web}\n");
    let ended = scratch.haft_reading(call.as_bytes(), &["mcp"]);
    assert!(
        ended.out.contains("not approved") && ended.out.contains("tools.web.enabled"),
        "{ended:?}"
    );
    assert!(reported.try_recv().is_err());
    // The user's own choice, by a flag or in their file, is enough.
    let ended = scratch.haft_reading(call.as_bytes(), &["mcp", "--preset", "web"]);
    assert!(ended.out.contains("# outside"), "{ended:?}");
    scratch.user(&own.replace("{allow", "{enabled: true, allow"));
    let ended = scratch.haft_reading(call.as_bytes(), &["mcp"]);
    assert!(ended.out.contains("# outside"), "{ended:?}");
}

#[test]
fn settings_that_are_wrong_are_named() {
    let scratch = Scratch::new();
    for (web, words) in [
        (
            "{engine: [x]}",
            "unknown key \"engine\" in tools.web; did you mean \"engines\"?",
        ),
        (
            "{engines: duckduckgo}",
            "tools.web.engines must be a list, got text",
        ),
        (
            "{engines: [duckduckgoo]}",
            "unknown engine; did you mean \"duckduckgo\"?",
        ),
        ("{engines: [{kind: brave}]}", "brave needs a key"),
        (
            "{engines: [{kind: brave, token: sk-secret}]}",
            "unknown key \"token\" in tools.web.engines[0]",
        ),
        ("{engines: [searxng]}", "searxng needs a base_url"),
        (
            "{engines: [{kind: searxng, base_url: 'ftp://sk-secret'}]}",
            "the base_url of searxng must be",
        ),
        (
            "{allow_hosts: example.org}",
            "tools.web.allow_hosts must be a list, got text",
        ),
        (
            "{allow_hosts: ['http://x']}",
            "not a host, host:port, *.host or range of addresses",
        ),
        (
            "{deny_hosts: [1]}",
            "tools.web.deny_hosts[0] must be text, got a number",
        ),
        (
            "{enabled: sometimes}",
            "tools.web.enabled must be true or false, got text",
        ),
        (
            "{proxy: 'sk-secret:3128'}",
            "tools.web.proxy: must be a URL",
        ),
        (
            "{proxy: 'socks5://sk-secret:3128'}",
            "tools.web.proxy: must be a URL",
        ),
        ("{ca_file: gone.pem}", "tools.web.ca_file: cannot read"),
        ("{allow_hosts: ['${NOT_SET}']}", "needs variable NOT_SET"),
    ] {
        scratch.user(&format!("tools:\n  web: {web}\n"));
        let ended = scratch.haft(&["tools"]);
        assert_eq!(ended.code, Some(2), "{web}: {ended:?}");
        assert!(ended.err.contains(words), "{web}: {}", ended.err);
        assert!(!ended.err.contains("sk-secret"), "{}", ended.err);
    }
}

#[test]
fn engines_are_named_and_their_keys_are_not() {
    let scratch = Scratch::new();
    scratch.user("tools:\n  web:\n    engines: [duckduckgo, {kind: brave, key: '${BRAVE}'}, {kind: tavily, api_key: sk-secret}]\n    proxy: http://me:sk-secret@127.0.0.1:9\n");
    let shown = scratch.haft(&["config", "show"]);
    assert!(
        shown.out.contains("duckduckgo") && shown.out.contains("tavily"),
        "{shown:?}"
    );
    assert!(
        shown
            .err
            .contains("BRAVE, which is not set: skipped this engine"),
        "{shown:?}"
    );
    for args in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["tools"],
        &["--log", "trace", "call", "web_search", "query=x"],
    ] {
        let ended = scratch.haft(args);
        assert!(
            !ended.out.contains("sk-secret") && !ended.err.contains("sk-secret"),
            "{ended:?}"
        );
    }
}

#[test]
fn doctor_says_whether_engines_answer() {
    let (good, _told) = serve("200 OK", RESULTS);
    let (bad, _told_too) = serve("202 Accepted", CAPTCHA);
    let scratch = Scratch::new();
    let shown = scratch.haft(&["doctor"]).out;
    assert!(shown.contains("web: not offered to the model"), "{shown}");
    assert!(shown.contains("duckduckgo: not tried"), "{shown}");
    scratch.user(&format!(
        "tools:\n  web:\n    engines:\n      - {{kind: duckduckgo, base_url: 'http://127.0.0.1:{bad}'}}\n      - {{kind: duckduckgo, base_url: 'http://127.0.0.1:{good}'}}\n"
    ));
    let shown = scratch.haft(&["--preset", "web", "doctor"]).out;
    assert!(shown.contains("\nweb: search and pages\n"), "{shown}");
    assert!(
        shown.contains(
            "  duckduckgo: blocked: it answered HTTP 202 with a captcha\n  duckduckgo: answers ("
        ),
        "{shown}"
    );
    let json = scratch.haft(&["--preset", "web", "doctor", "--json"]).out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["web"]["offered"], true);
    assert_eq!(json["web"]["engines"][0]["works"], false);
    assert_eq!(json["web"]["engines"][1]["works"], true);
}

#[test]
fn cached_pages_are_private() {
    let (port, _told) = serve("200 OK", "<p>kept");
    let scratch = Scratch::new();
    scratch.user(&format!(
        "tools: {{web: {{allow_hosts: ['127.0.0.1:{port}']}}}}\n"
    ));
    let url = format!("url=http://127.0.0.1:{port}/");
    assert_eq!(scratch.haft(&["call", "web_fetch", &url]).out, "kept\n");
    let folder = scratch.home(".local/state/haft/web");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    use std::os::unix::fs::PermissionsExt;
    let mode = files[0].metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // No tool reads it.
    let path = format!("path={}", files[0].path().display());
    let ended = scratch.haft(&["call", "read", &path]);
    assert!(ended.out.starts_with("path not allowed"), "{ended:?}");
}
