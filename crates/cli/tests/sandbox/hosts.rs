//! Hosts that the user opens to commands: one by one, through haft.

use crate::bed::{Answer, Bed, Level, beds_at, in_each};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An HTTP server that counts its visitors. On 127.0.0.2 it is a host like any other: only
/// 127.0.0.1 is the session's own.
struct Site {
    address: SocketAddr,
    visits: Arc<AtomicUsize>,
}

impl Site {
    fn start(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let visits = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&visits);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head);
                    let _ = stream.write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nreply\n",
                    );
                });
            }
        });
        Self { address, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

fn full() -> Vec<Bed> {
    beds_at(&[Level::Full])
}

fn curl(address: impl std::fmt::Display) -> String {
    format!("curl -sS -m 10 http://{address}/")
}

fn text(output: &Output) -> (Option<i32>, String) {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&all).into_owned(),
    )
}

fn refusal(address: impl std::fmt::Display) -> String {
    format!("[the sandbox refused connections to {address}")
}

#[test]
fn only_the_named_host_is_reached() {
    in_each(full(), |bed| {
        let (named, other) = (Site::start("127.0.0.2"), Site::start("127.0.0.3"));
        let both = format!("{}; {}", curl(named.address), curl(other.address));
        let closed = bed.bash(&both);
        assert!(closed.has(&refusal(named.address)), "{closed:?}");
        let refused = json!([named.address.to_string(), other.address.to_string()]);
        assert_eq!(closed.details["refused_hosts"], refused);
        let open = |answer: &Answer| {
            assert!(answer.has("reply\n"), "{answer:?}");
            assert!(!answer.has(&refusal(named.address)), "{answer:?}");
            assert!(answer.has(&refusal(other.address)), "{answer:?}");
        };
        open(&bed.bash_with(&["--network", "127.0.0.2"], &both));
        open(&bed.bash_with(&["--network", &named.address.to_string()], &both));
        bed.user("network: [\"@rust\", 127.0.0.2]\n");
        open(&bed.bash(&both));
        bed.user("policy:\n  - { allow: network, host: 127.0.0.2 }\n");
        open(&bed.bash(&both));
        assert_eq!((named.visits(), other.visits()), (4, 0));
        // A port that is not the named one.
        let wrong = bed.bash_with(&["--network", "127.0.0.2:1"], &both);
        // The rule in the file still opens it.
        open(&wrong);
        bed.user("");
        let wrong = bed.bash_with(&["--network", "127.0.0.2:1"], &both);
        assert!(wrong.has(&refusal(named.address)), "{wrong:?}");
        assert_eq!((named.visits(), other.visits()), (5, 0));
    });
}

#[test]
fn the_password_of_the_proxy_is_not_shown_in_any_form() {
    const SHOW: &str = "python3 -c 'import base64, os, urllib.parse as u
at = u.urlsplit(os.environ[\"HTTP_PROXY\"])
sent = base64.b64encode(f\"{at.username}:{at.password}\".encode()).decode()
print(\"named\", at.username, \"sent\", sent)'";
    in_each(full(), |bed| {
        let shown = bed.bash_with(&["--network", "127.0.0.2"], SHOW);
        assert!(
            shown.has("named ****") && shown.has("sent ****"),
            "{shown:?}"
        );
    });
}

#[test]
fn a_name_is_not_looked_up_unless_it_is_open() {
    in_each(full(), |bed| {
        let closed = bed.bash("curl -sS -m 10 http://no-such-host.example/; python3 -c 'import urllib.request as u; u.urlopen(\"https://other.example/\", timeout=9)'");
        assert!(
            closed.has(&refusal("no-such-host.example:80")),
            "{closed:?}"
        );
        assert!(closed.has(&refusal("other.example:443")), "{closed:?}");
        assert!(closed.has("--network other.example"), "{closed:?}");
        assert!(!closed.has("was not found"), "{closed:?}");
        let open = bed.bash_with(
            &["--network", "no-such-host.invalid"],
            "curl -sS -m 10 http://no-such-host.invalid/",
        );
        assert!(open.has("no-such-host.invalid was not found"), "{open:?}");
    });
}

#[test]
fn rules_decide_by_host_and_command() {
    in_each(full(), |bed| {
        let site = Site::start("127.0.0.2");
        let fetch = curl(site.address);
        let reaches = |rules: &str, script: &str| {
            bed.user(rules);
            let before = site.visits();
            let answer = bed.bash(script);
            let is_reached = site.visits() > before;
            assert_eq!(answer.has("reply"), is_reached, "{rules} {answer:?}");
            assert_eq!(
                answer.has(&refusal(site.address)),
                !is_reached,
                "{rules} {answer:?}"
            );
            is_reached
        };
        let by_command = "policy:\n  - { allow: network, host: 127.0.0.2, command: curl -sS, match: [127.0.0.2], no_match: [127.0.0.3] }\n";
        assert!(reaches(by_command, &fetch));
        assert!(reaches(by_command, &format!("true && {fetch}")));
        assert!(!reaches(by_command, &fetch.replace("-sS", "-s -S")));
        let deny = "network: [127.0.0.2]\npolicy:\n  - { deny: network, command: curl }\n";
        assert!(!reaches(deny, &fetch));
        assert!(reaches(
            deny,
            &format!(
                "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{}/\").read())'",
                site.address
            )
        ));
        let first = "policy:\n  - { allow: network, host: 127.0.0.2 }\n  - { deny: network }\n";
        assert!(reaches(first, &fetch));
        let asks = "policy:\n  - { ask: network, host: 127.0.0.2 }\n";
        assert!(!reaches(asks, &fetch));
        let all = "network: [127.0.0.2]\npolicy:\n  - { deny: \"*\", host: 127.0.0.2 }\n";
        assert!(!reaches(all, &fetch));
        // A rule about every tool opens nothing.
        assert!(!reaches("policy:\n  - { allow: \"*\" }\n", &fetch));
        bed.user("policy:\n  - { ask: network, host: 127.0.0.2 }\n");
        let asked = bed.bash(&fetch);
        assert!(asked.has("no user can be asked here"), "{asked:?}");
        let auto = bed.bash_with(&["--approve", "auto"], &fetch);
        assert!(auto.has("reply"), "{auto:?}");
    });
}

#[test]
fn a_project_can_only_close_hosts() {
    in_each(full(), |bed| {
        let site = Site::start("127.0.0.2");
        let fetch = curl(site.address);
        for project in [
            "network: [127.0.0.2]\n",
            "network: on\n",
            "policy:\n  - { allow: network, host: 127.0.0.2 }\n",
            "policy:\n  - { ask: network, host: 127.0.0.2 }\n",
        ] {
            bed.file("work/haft.yaml", project);
            let answer = bed.bash_with(&["--trust", "--approve", "auto"], &fetch);
            assert!(answer.has(&refusal(site.address)), "{project} {answer:?}");
        }
        let warned = text(&bed.haft(&["doctor", "--trust"]).output().unwrap());
        assert!(!warned.1.contains("error:"), "{warned:?}");
        bed.user("network: [127.0.0.2]\n");
        for project in [
            "network: off\n",
            "policy:\n  - { deny: network, host: \"127.0.0.2\" }\n",
            "policy:\n  - { ask: network }\n",
        ] {
            bed.file("work/haft.yaml", project);
            let answer = bed.bash(&fetch);
            assert!(answer.has(&refusal(site.address)), "{project} {answer:?}");
        }
        assert_eq!(site.visits(), 0);
        bed.file("work/haft.yaml", "");
        assert!(bed.bash(&fetch).has("reply"));
    });
}

#[test]
fn a_port_of_this_machine_can_appear_in_the_session() {
    in_each(full(), |bed| {
        let site = Site::start("127.0.0.1");
        let (local, port) = (format!("localhost:{}", site.port()), site.port());
        let script = format!("{}; {}", curl(&local), curl(site.address));
        let closed = bed.bash(&script);
        assert!(!closed.has("reply"), "{closed:?}");
        let open = bed.bash_with(&["--network", &local], &script);
        assert_eq!(open.text, "reply\nreply\n", "{open:?}");
        let rule = format!("policy:\n  - {{ allow: network, host: \"{local}\" }}\n");
        bed.user(&rule);
        assert!(bed.bash(&script).has("reply"));
        bed.file(
            "work/haft.yaml",
            format!("policy:\n  - {{ deny: network, host: \"{local}\" }}\n"),
        );
        assert!(!bed.bash(&script).has("reply"));
        bed.file("work/haft.yaml", "");
        bed.user("");
        // Not by way of the proxy either, under any name.
        let before = site.visits();
        for name in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.1",
            "0x7f.1",
            "2130706433",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "0.0.0.0",
            "0",
        ] {
            let url = format!("curl --noproxy '' -sS -m 9 http://{name}:{port}/");
            let rule = "policy:\n  - { allow: network }\n";
            bed.user(rule);
            let answer = bed.bash(&url);
            assert!(!answer.has("reply"), "{name} {answer:?}");
            assert!(answer.has("[the sandbox refused"), "{name} {answer:?}");
        }
        assert_eq!(site.visits(), before);
    });
}

#[test]
fn background_processes_reach_the_hosts_too() {
    in_each(full(), |bed| {
        let (named, other) = (Site::start("127.0.0.2"), Site::start("127.0.0.3"));
        let mut server = bed.serve_with(&["--toolset", "workspace", "--network", "127.0.0.2"]);
        let script = format!("{}; {}; echo end", curl(named.address), curl(other.address));
        let started = server.tool("process", &json!({ "action": "start", "command": script }));
        assert!(!started.is_error, "{started:?}");
        let id = json!({ "action": "wait", "process_id": "proc-1" });
        let ended = server.tool("process", &id);
        assert!(ended.has("\"met\":true"), "{ended:?}");
        let log = server.tool(
            "process",
            &json!({ "action": "log", "process_id": "proc-1" }),
        );
        assert!(log.has("reply"), "{log:?}");
        assert_eq!((named.visits(), other.visits()), (1, 0));
        let all = format!("{}{}", ended.text, log.text);
        let note = format!(
            "refused connections of an earlier command to {}",
            other.address
        );
        assert!(
            all.contains(&note) || all.contains(refusal(other.address).trim_start_matches('[')),
            "{all}"
        );
        // A process that a command left running keeps its way out.
        let left = format!("(sleep 1; {} > left) & true", curl(named.address));
        server.tool("exec", &json!({ "command": left }));
        let waits = "for i in $(seq 100); do test -s left && break; sleep 0.1; done; cat left";
        let seen = server.tool("exec", &json!({ "command": waits }));
        assert!(seen.has("reply"), "{seen:?}");
        server.close();
    });
}

#[test]
fn why_explains_and_mistakes_are_named() {
    let Some(bed) = full().pop() else { return };
    let why = |flags: &[&str], host: &str| {
        let host = format!("host={host}");
        let args = [&["why", "network", &host], flags].concat();
        text(&bed.haft(&args).output().unwrap()).1
    };
    bed.user(
        "network:\n  - \"*.example.com\"\npolicy:\n  - { deny: network, host: bad.example.com }\n",
    );
    let open = why(&[], "api.example.com");
    assert!(
        open.starts_with("allow\n") && open.contains("haft.yaml:2"),
        "{open}"
    );
    let denied = why(&[], "bad.example.com");
    assert!(
        denied.starts_with("deny\n") && denied.contains("haft.yaml:4"),
        "{denied}"
    );
    let closed = why(&[], "example.org");
    assert!(
        closed.starts_with("deny\n") && closed.contains("lists other hosts"),
        "{closed}"
    );
    let json = text(
        &bed.haft(&[
            "why",
            "network",
            r#"{"host":"api.example.com","command":"curl x"}"#,
            "--json",
        ])
        .output()
        .unwrap(),
    );
    assert!(json.1.contains(r#""decision":"allow""#), "{json:?}");
    for (settings, wanted) in [
        ("network:\n  - https://example.com/x\n", "haft.yaml:2:5"),
        ("network: [example.com:0]\n", "a port from 1 to 65535"),
        ("network: [\"@rsut\"]\n", "did you mean \"@rust\"?"),
        ("network: [rust]\n", "write \"@rust\""),
        ("network: onn\n", "network"),
        ("policy:\n  - { review: network }\n", "cannot be reviewed"),
        ("policy:\n  - { allow: network, path: x }\n", "no path"),
        (
            "policy:\n  - { ask: network, host: \"localhost:1\" }\n",
            "use allow or deny",
        ),
        (
            "policy:\n  - { allow: network, host: a.example, match: [b.example] }\n",
            "does not match",
        ),
    ] {
        bed.user(settings);
        let (code, said) = text(&bed.haft(&["doctor"]).output().unwrap());
        if settings.contains("onn") {
            // A name without a dot may be a machine's.
            continue;
        }
        assert!(
            code == Some(2) && said.contains(wanted),
            "{settings} {said}"
        );
        assert!(said.contains("haft.yaml:"), "{said}");
    }
    bed.user("");
    let (code, said) = text(&bed.haft(&["doctor", "--network", "a/b"]).output().unwrap());
    assert!(code == Some(2) && said.contains("--network"), "{said}");
}
