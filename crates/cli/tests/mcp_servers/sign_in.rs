//! Servers that require the user to sign in (OAuth), at a terminal and later without one.

use crate::bed::{Bed, within};
use crate::servers::{Terminal, Web};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A server and who signs people in to it. A token is good for a second. `ISSUER` says
/// where the other is.
const GUARDED: &str = r#"
import urllib.parse, secrets
tokens, codes, state = {}, {}, {"n": 0}
class Handler(Base):
    def do_POST(self):
        body = self.body()
        here = "http://" + self.headers["host"]
        if self.path == "/register":
            asked = json.loads(body)
            self.heard(registered=asked)
            return self.send(201, json.dumps(dict(asked, client_id="client-7")).encode())
        if self.path == "/token":
            form = dict(urllib.parse.parse_qsl(body.decode()))
            self.heard(form=form)
            if form.get("grant_type") == "authorization_code":
                if form.get("code") != "code-1" or not form.get("code_verifier"): return self.send(400, b'{"error": "invalid_grant"}')
            elif form.get("refresh_token") != "refresh-%d" % state["n"]: return self.send(400, b'{"error": "invalid_grant"}')
            state["n"] += 1
            tokens["token"] = "access-%d-sesame" % state["n"]
            return self.send(200, json.dumps({"access_token": tokens["token"], "token_type": "Bearer", "expires_in": 1, "refresh_token": "refresh-%d" % state["n"]}).encode())
        message = json.loads(body)
        self.heard(message=message)
        if self.headers.get("authorization") != "Bearer " + tokens.get("token", "?"):
            return self.send(401, www_authenticate='Bearer resource_metadata="%s/.well-known/oauth-protected-resource"' % here)
        if "id" not in message: return self.send(202)
        self.send(200, json.dumps(reply(message)).encode())
    def do_GET(self):
        here = "http://" + self.headers["host"]
        self.heard()
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            return self.send(200, json.dumps({"resource": here + "/mcp", "authorization_servers": [ISSUER or here]}).encode())
        if self.path.startswith("/.well-known/oauth-authorization-server"):
            return self.send(200, json.dumps({"issuer": here, "authorization_endpoint": here + "/authorize", "token_endpoint": here + "/token",
                "registration_endpoint": here + "/register", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}).encode())
        self.send(404)
run(Handler)
"#;

fn with(url: &str) -> Bed {
    let bed = Bed::new();
    bed.configure(&json!({ "tools": { "mcp": { "web": { "url": url } } } }));
    bed
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_user_signs_in_once_and_the_token_is_renewed() {
    let web = Web::start(&GUARDED.replace("ISSUER", "None"));
    let bed = with(&web.url("/mcp"));
    let mut terminal = Terminal::run(&bed, "mcp test web");
    let find = |shown: &str| {
        let line = shown.lines().find(|line| line.contains("/authorize?"))?;
        url::Url::parse(line.trim()).ok()
    };
    assert!(
        within(Duration::from_secs(15), || find(&terminal.shown())
            .is_some()),
        "{}",
        terminal.shown()
    );
    let asked = find(&terminal.shown()).unwrap();
    let query: std::collections::HashMap<String, String> =
        asked.query_pairs().into_owned().collect();
    assert_eq!(
        (&*query["client_id"], &*query["code_challenge_method"]),
        ("client-7", "S256")
    );
    let back = url::Url::parse(&query["redirect_uri"]).unwrap();
    assert_eq!(back.host_str(), Some("127.0.0.1"));
    let address = format!("127.0.0.1:{}", back.port().unwrap());
    // Other requests are not mistaken for the answer.
    assert!(get(&address, "/favicon.ico").starts_with("HTTP/1.1 404"));
    let answer = get(
        &address,
        &format!("{}?code=code-1&state={}", back.path(), query["state"]),
    );
    assert!(answer.contains("You are signed in"), "{answer}");
    let (code, shown) = terminal.wait();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("good: 1 tool"), "{shown}");

    let folder = bed.path("home/.local/state/haft/mcp-auth");
    let file = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
    // An expired token is refreshed without asking the user.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(
        bed.reply_text("web_echo", &json!({ "words": "a" })),
        r#"{"words": "a"}"#
    );
    let forms: Vec<Value> = web
        .heard()
        .iter()
        .map(|heard| heard["form"].clone())
        .filter(|form| !form.is_null())
        .collect();
    assert_eq!(forms[0]["grant_type"], "authorization_code");
    assert!(
        forms
            .iter()
            .any(|form| form["grant_type"] == "refresh_token"),
        "{forms:?}"
    );
    // No log, at any level, has a token.
    let traced = bed.call_with(&["--log", "trace"], "web_echo", &json!({ "words": "b" }));
    assert!(
        !traced.beside.contains("sesame") && !traced.beside.contains("refresh-"),
        "{}",
        traced.beside
    );
}

#[test]
fn an_answer_to_another_question_is_refused() {
    let web = Web::start(&GUARDED.replace("ISSUER", "None"));
    let bed = with(&web.url("/mcp"));
    let mut terminal = Terminal::run(&bed, "mcp test web");
    let find = |shown: &str| {
        shown
            .lines()
            .find(|line| line.contains("/authorize?"))
            .map(str::to_owned)
    };
    assert!(
        within(Duration::from_secs(15), || find(&terminal.shown())
            .is_some()),
        "{}",
        terminal.shown()
    );
    let asked = url::Url::parse(find(&terminal.shown()).unwrap().trim()).unwrap();
    let back = asked
        .query_pairs()
        .find(|(name, _)| name == "redirect_uri")
        .unwrap()
        .1
        .into_owned();
    let back = url::Url::parse(&back).unwrap();
    let address = format!("127.0.0.1:{}", back.port().unwrap());
    get(
        &address,
        &format!("{}?code=code-1&state=forged", back.path()),
    );
    let (code, shown) = terminal.wait();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("cannot sign in"), "{shown}");
    assert!(
        !web.heard().iter().any(|heard| heard["form"].is_object()),
        "no token was asked for"
    );
}

#[test]
fn sign_in_urls_of_a_server_are_checked() {
    let private = Web::start(&GUARDED.replace("ISSUER", "None"));
    let issuer = format!("{:?}", private.url(""));
    let web = Web::start(&GUARDED.replace("ISSUER", &issuer));
    // The person named this host, and no other.
    let bed = with(&web.url("/mcp").replace("127.0.0.1", "localhost"));
    let (code, shown) = Terminal::run(&bed, "mcp test web").wait();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("cannot sign in"), "{shown}");
    assert_eq!(
        private.heard(),
        Vec::<Value>::new(),
        "another place of this machine was reached"
    );
}

#[test]
fn a_sign_in_address_that_is_not_a_page_is_not_shown() {
    for (named, why) in [
        ("javascript:alert(1)//", "not a web address"),
        ("file:///etc/passwd?x=", "not a web address"),
        ("vscode://open/", "not an https address"),
        ("http://auth.example.org", "not encrypted"),
        ("https://me:hunter2hunter2@auth.example.org", "a password"),
        ("https://auth.example.org/\\u202e", "characters"),
        ("https://192.168.0.1", "private network"),
    ] {
        let names = |field: &str| {
            let good = format!("\"{field}\": here +");
            let evil = format!("\"{field}\": \"{named}\" +");
            GUARDED.replace("ISSUER", "None").replace(&good, &evil)
        };
        let web = Web::start(&names("authorization_endpoint"));
        let bed = with(&web.url("/mcp"));
        let (code, shown) = Terminal::run(&bed, "mcp test web").wait();
        assert_eq!(code, Some(1), "{named}: {shown}");
        assert!(shown.contains(why), "{named}: {shown}");
        assert!(!shown.contains("Open this address"), "{named}: {shown}");
        let registered = |heard: &Value| heard["registered"].is_object();
        assert!(!web.heard().iter().any(registered), "{named}");
    }
}

#[test]
fn haft_can_use_a_configured_client_id() {
    let web = Web::start(&GUARDED.replace("ISSUER", "None"));
    let bed = Bed::new();
    bed.configure(&json!({ "tools": { "mcp": { "web": {
        "url": web.url("/mcp"),
        "oauth": { "client_id": "known-1", "client_secret": "open-sesame" },
    } } } }));
    let mut terminal = Terminal::run(&bed, "mcp test web");
    let find = |shown: &str| {
        let line = shown.lines().find(|line| line.contains("/authorize?"))?;
        url::Url::parse(line.trim()).ok()
    };
    assert!(
        within(Duration::from_secs(15), || find(&terminal.shown())
            .is_some()),
        "{}",
        terminal.shown()
    );
    let asked = find(&terminal.shown()).unwrap();
    let query: std::collections::HashMap<String, String> =
        asked.query_pairs().into_owned().collect();
    assert_eq!(query["client_id"], "known-1");
    let back = url::Url::parse(&query["redirect_uri"]).unwrap();
    let address = format!("127.0.0.1:{}", back.port().unwrap());
    let path = format!("{}?code=code-1&state={}", back.path(), query["state"]);
    get(&address, &path);
    let (code, shown) = terminal.wait();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("sesame"), "{shown}");
    let heard = web.heard();
    assert!(
        heard.iter().all(|heard| heard["registered"].is_null()),
        "{heard:?}"
    );
}
