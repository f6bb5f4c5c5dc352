//! A connection that a rule asks about waits for approval: exit 3, and the call is made again
//! with the host open.

use crate::bed::{Bed, results};
use haft_testing::model::{ModelReply, Turn};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server on an address of this machine that is not the session's own.
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
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nreply\n",
                );
            }
        });
        Self { address, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    fn fetch(&self) -> String {
        format!("curl -sS -m 10 http://{}/ >> log", self.address)
    }
}

fn bed(commands: &[String], settings: &str) -> Bed {
    let mut script: Vec<Turn> = commands
        .iter()
        .enumerate()
        .map(|(number, command)| {
            let arguments = json!({ "command": command });
            ModelReply::calling(format!("b{}", number + 1), "bash", &arguments).into()
        })
        .collect();
    script.push(Turn::text("Done."));
    Bed::new(script).and(settings)
}

fn result(bed: &Bed) -> String {
    results(&bed.messages())[0].1.clone()
}

fn is_full(bed: &Bed) -> bool {
    let is_full = bed.says(&["doctor"]).contains("sandbox: full");
    if !is_full {
        println!("skipped: this machine has no namespaces");
    }
    is_full
}

const ASKS: &str =
    "policy:\n  - { ask: network, host: 127.0.0.2 }\n  - { ask: network, host: 127.0.0.3 }\n";

#[test]
fn a_connection_waits_and_the_call_is_made_again() {
    let site = Site::start("127.0.0.2");
    let fetch = site.fetch();
    let bed = bed(std::slice::from_ref(&fetch), ASKS);
    if !is_full(&bed) {
        return;
    }
    let waits = bed.run(&[]);
    assert_eq!(
        (waits.code, waits.reason()),
        (Some(3), "approval"),
        "{waits:?}"
    );
    let asked = waits.of("approval_needed");
    assert_eq!(asked.len(), 1, "{waits:?}");
    let arguments = &asked[0]["arguments"];
    let port = site.address.port();
    assert_eq!(
        *arguments,
        json!({ "host": "127.0.0.2", "port": port, "command": fetch })
    );
    assert_eq!(asked[0]["call_id"], "b1");
    assert_eq!((site.visits(), bed.read("log")), (0, String::new()));

    let done = bed.resume(&["--answer", "b1=approve"]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!((site.visits(), bed.read("log")), (1, "reply\n".to_owned()));
    assert_eq!(results(&bed.messages()).len(), 1);
}

#[test]
fn a_refused_connection_is_named_to_the_model() {
    let site = Site::start("127.0.0.2");
    let bed = bed(&[site.fetch()], ASKS);
    if !is_full(&bed) {
        return;
    }
    assert_eq!(bed.run(&[]).code, Some(3));
    let done = bed.resume(&["--answer", "b1=reject:not today"]);
    assert_eq!((done.code, done.reason()), (Some(0), "done"), "{done:?}");
    assert_eq!(site.visits(), 0);
    let text = result(&bed);
    let wanted = format!(
        "[the user refused connections to {}: not today]",
        site.address
    );
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn each_host_is_asked_about_in_turn() {
    let (one, two) = (Site::start("127.0.0.2"), Site::start("127.0.0.3"));
    let both = format!("{}; {}", one.fetch(), two.fetch());
    let bed = bed(&[both], ASKS);
    if !is_full(&bed) {
        return;
    }
    assert_eq!(bed.run(&[]).code, Some(3));
    let again = bed.resume(&["--answer", "b1=approve"]);
    assert_eq!(again.code, Some(3), "{again:?}");
    let asked = again.of("approval_needed");
    assert_eq!(asked[0]["arguments"]["host"], "127.0.0.3", "{again:?}");
    assert_eq!(two.visits(), 0);
    let done = bed.resume(&["--answer", "b1=approve"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(two.visits(), 1);
}

#[test]
fn nobody_waits_if_the_answer_is_known() {
    let site = Site::start("127.0.0.2");
    for (flag, visits) in [("auto", 1), ("never", 0)] {
        let bed = bed(&[site.fetch()], ASKS);
        if !is_full(&bed) {
            return;
        }
        let before = site.visits();
        let done = bed.run(&["--approve", flag]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(site.visits() - before, visits, "{flag}");
        let ended: &Value = done.of("tool_end")[0];
        let refused = &ended["details"]["refused_hosts"];
        assert_eq!(refused.is_array(), flag == "never", "{ended}");
    }
}

#[test]
fn the_name_of_a_pass_is_not_recorded() {
    let bed = bed(
        &["env | grep -i http_proxy= | tee proxy; sleep 0.3".to_owned()],
        "network: [127.0.0.2]\n",
    );
    if !is_full(&bed) {
        return;
    }
    let done = bed.run(&[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let written = bed.read("proxy");
    let name = written
        .split("http://")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let name = name.unwrap();
    assert_eq!(name.len(), 32, "{written}");
    assert!(!result(&bed).contains(name), "{}", result(&bed));
    let events = serde_json::to_string(&done.events).unwrap();
    assert!(!events.contains(name), "{events}");
    let mut folders = vec![bed.state("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = std::fs::read(&path).unwrap_or_default();
                    let found = bytes.windows(32).any(|part| part == name.as_bytes());
                    // The recorded content of the file that the command wrote is the user's.
                    let is_content = path
                        .components()
                        .any(|part| part.as_os_str() == "undo" || part.as_os_str() == "effects");
                    assert!(!found || is_content, "{}", path.display());
                }
            }
        }
    }
}
