//! The toolset `workspace` over one MCP session: the life of processes, their maximum
//! number, that none outlives haft, and that file tools and processes stay within their
//! limits.

use crate::bed::{Answer, Bed, CANARY, Level, beds, beds_at, in_each};
use crate::client::Server;
use crate::{left, turn};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn serve(bed: &Bed, flags: &[&str]) -> Server {
    bed.serve_with(&[&["--toolset", "workspace"], flags].concat())
}

#[track_caller]
fn document(answer: &Answer) -> Value {
    serde_json::from_str(&answer.text).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// A call of `process` that succeeds.
#[track_caller]
fn process(server: &mut Server, arguments: &Value) -> Value {
    let answer = server.tool("process", arguments);
    assert!(!answer.is_error, "{answer:?}");
    document(&answer)
}

#[track_caller]
fn start(server: &mut Server, command: &str) -> String {
    let started = process(server, &json!({ "action": "start", "command": command }));
    started["process_id"].as_str().unwrap().to_owned()
}

/// The `error` of a call that fails.
#[track_caller]
fn refused(answer: &Answer) -> String {
    let document = document(answer);
    assert!(
        answer.is_error && document["success"] == false,
        "{answer:?}"
    );
    document["error"].as_str().unwrap().to_owned()
}

#[test]
fn a_process_survives_many_calls() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = serve(bed, &[]);
        let script = "echo out; echo err >&2; until [ -e go ]; do sleep 0.02; done; echo gone; until [ -e end ]; do sleep 0.02; done; exit 4";
        let id = start(&mut server, script);
        assert_eq!(id, "proc-1");
        let wait = |server: &mut Server, more: Value| {
            let mut arguments = json!({ "action": "wait", "process_id": "proc-1" });
            let fields = more.as_object().unwrap().clone();
            arguments.as_object_mut().unwrap().extend(fields);
            process(server, &arguments)
        };
        let until = json!({ "until": "log", "pattern": "^err$" });
        assert_eq!(wait(&mut server, until)["met"], true);
        let status = process(&mut server, &json!({ "action": "status", "pid": id }));
        assert_eq!(status["running"], true);
        assert_eq!(status["command"], script);
        assert_eq!(status.get("exit_code"), None);
        let log = process(&mut server, &json!({ "action": "log", "process_id": id }));
        assert_eq!(
            (&log["stdout"], &log["stderr"], &log["tail"]),
            (&json!("out\n"), &json!("err\n"), &json!(4096))
        );
        let late = wait(
            &mut server,
            json!({ "until": "log", "pattern": "gone", "timeout": 0.2 }),
        );
        assert_eq!(
            (&late["met"], &late["running"]),
            (&json!(false), &json!(true))
        );
        assert!(late["waited_ms"].as_u64().unwrap() >= 200, "{late}");

        // Other calls work meanwhile, and see the same files.
        let made = server.tool("write", &json!({ "path": "go", "content": "" }));
        assert!(!made.is_error, "{made:?}");
        assert_eq!(
            wait(&mut server, json!({ "until": "log", "pattern": "gone" }))["met"],
            true
        );
        assert_eq!(
            wait(&mut server, json!({ "until": "idle", "idle": 0.3 }))["met"],
            true
        );
        server.tool("write", &json!({ "path": "end", "content": "" }));
        let ended = wait(&mut server, json!({ "until": "exit" }));
        assert_eq!(
            (&ended["met"], &ended["exit_code"], &ended["error"]),
            (&json!(true), &json!(4), &json!("exit status 4"))
        );
        let never = wait(&mut server, json!({ "until": "log", "pattern": "nowhere" }));
        assert_eq!(never["met"], false);

        // The whole tree of a process that ignores signals.
        let id = start(
            &mut server,
            "trap '' TERM; setsid sleep 1000 & touch up; while :; do sleep 1; done",
        );
        left::until("it is up", Duration::from_secs(20), || bed.has("work/up"));
        let begun = Instant::now();
        let killed = process(&mut server, &json!({ "action": "kill", "process_id": id }));
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        assert_eq!(
            (
                &killed["killed"],
                &killed["running"],
                &killed["exit_code"],
                &killed["error"]
            ),
            (
                &json!(true),
                &json!(false),
                &json!(137),
                &json!("signal: killed")
            )
        );
        bed.nothing_but(&server);
        let again = process(&mut server, &json!({ "action": "kill", "process_id": id }));
        assert_eq!(again["killed"], false);
        let all = process(&mut server, &json!({ "action": "list" }));
        let ids: Vec<_> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["process_id"])
            .collect();
        assert_eq!(ids, ["proc-1", "proc-2"]);
    });
}

#[test]
fn waits_for_a_port() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        let mut server = serve(bed, &["--network", "on"]);
        let script = "import socket, time
s = socket.create_server(('127.0.0.1', 0))
open('port', 'w').write(str(s.getsockname()[1]) + '\\n')
time.sleep(1000)";
        let arguments = json!({ "action": "start", "command": ["/usr/bin/python3", "-c", script] });
        assert_eq!(process(&mut server, &arguments)["running"], true);
        left::until("a port is known", Duration::from_secs(20), || {
            bed.read("work/port").ends_with('\n')
        });
        let port: u16 = bed.read("work/port").trim().parse().unwrap();
        let arguments =
            json!({ "action": "wait", "process_id": "proc-1", "until": "port", "port": port });
        assert_eq!(process(&mut server, &arguments)["met"], true);
    });
}

#[test]
fn a_port_that_cannot_be_opened_without_a_network_is_explained() {
    let _turn = turn::shared();
    in_each(beds_at(&[Level::Partial]), |bed| {
        // A listener on this machine, in another network than the process.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let wait = |id: &str, port: u16| json!({ "action": "wait", "process_id": id, "until": "port", "port": port, "timeout": 0.2 });
        let mut server = serve(bed, &[]);
        let id = start(&mut server, "sleep 1000");
        // A server that is refused its socket, and ends because of that.
        let refused = format!(
            "import socket; socket.create_server(('127.0.0.1', {}))",
            port - 1
        );
        let arguments =
            json!({ "action": "start", "command": ["/usr/bin/python3", "-c", refused] });
        let ended = process(&mut server, &arguments);
        let ended = ended["process_id"].as_str().unwrap();
        let exit = json!({ "action": "wait", "process_id": ended });
        assert_eq!(process(&mut server, &exit)["running"], false);
        for waited in [wait(&id, port), wait(ended, port - 1)] {
            let waited = process(&mut server, &waited);
            assert_eq!(waited["met"], false, "{}: {waited}", bed.name());
            let hint = waited["hint"].as_str().unwrap_or_default();
            let is_told = hint.contains("no network here") && hint.contains("`--network on`");
            assert!(is_told, "{}: {waited}", bed.name());
        }
        // The network is not mentioned without waiting for a port.
        let idle = json!({ "action": "wait", "process_id": id, "timeout": 0.1 });
        assert_eq!(process(&mut server, &idle).get("hint"), None);
        // With a network, another program's listener counts.
        let mut server = serve(bed, &["--network", "on"]);
        let id = start(&mut server, "sleep 1000");
        let waited = process(&mut server, &wait(&id, port));
        let hint = waited["hint"].as_str().unwrap_or_default();
        assert!(
            hint.contains("something else listens"),
            "{}: {waited}",
            bed.name()
        );
    });
}

#[test]
fn at_most_sixteen_run_and_none_outlives_haft() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        for end in [None, Some(Signal::KILL), Some(Signal::TERM)] {
            let mut server = serve(bed, &[]);
            for _ in 0..15 {
                start(&mut server, "sleep 1000");
            }
            let tree =
                "(setsid bash -c 'trap \"\" TERM; sleep 1000; sleep 1000' &); nohup sleep 1000";
            start(&mut server, tree);
            let more = server.tool("process", &json!({ "action": "start", "command": "true" }));
            assert_eq!(
                refused(&more),
                "too many active processes (16/16), kill some before starting new ones"
            );
            process(
                &mut server,
                &json!({ "action": "kill", "process_id": "proc-3" }),
            );
            assert_eq!(start(&mut server, "sleep 1000"), "proc-17");
            match end {
                None => server.close(),
                Some(signal) => server.signal(signal),
            }
            server.ended(Duration::from_secs(5));
            bed.nothing_left();
        }
    });
}

/// In every mode, whatever commands may do.
#[test]
fn file_tools_stay_in_the_workspace() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        std::os::unix::fs::symlink(bed.path("out"), bed.path("work/way-out")).unwrap();
        for mode in ["workspace", "strict", "read-only", "off"] {
            let mut server = serve(bed, &["--sandbox", mode]);
            let outside = bed.at("out/canary.txt");
            for path in [
                outside.as_str(),
                "../out/canary.txt",
                "way-out/canary.txt",
                "/etc/passwd",
                "/tmp/canary.txt",
            ] {
                let calls = [
                    ("read", json!({ "path": path })),
                    ("list", json!({ "path": path })),
                    ("write", json!({ "path": path, "content": "x" })),
                    (
                        "edit",
                        json!({ "path": path, "old_text": "c", "new_text": "x" }),
                    ),
                    ("delete", json!({ "path": path })),
                    ("file", json!({ "path": path })),
                    ("exec", json!({ "command": "pwd", "working_dir": path })),
                    (
                        "process",
                        json!({ "action": "start", "command": "pwd", "working_dir": path }),
                    ),
                ];
                for (tool, arguments) in calls {
                    let answer = server.tool(tool, &arguments);
                    assert_eq!(
                        refused(&answer),
                        format!("path not allowed: {path}"),
                        "{mode} {tool}"
                    );
                    assert!(!answer.has(CANARY));
                }
            }
            bed.outside_is_whole();
        }
        // The link itself is inside.
        let mut server = serve(bed, &[]);
        let gone = server.tool("delete", &json!({ "path": "way-out" }));
        assert!(!gone.is_error && !bed.has("work/way-out"), "{gone:?}");
        bed.outside_is_whole();
        // An extra root is not outside.
        bed.user(&format!("tools:\n  roots: [{}]\n", bed.at("out")));
        let mut server = serve(bed, &[]);
        let read = server.tool("read", &json!({ "path": "../out/canary.txt" }));
        assert!(!read.is_error && read.has(CANARY), "{read:?}");
    });
}

/// Processes have the same limits as commands.
#[test]
fn processes_have_the_limits_and_rules_of_commands() {
    let _turn = turn::shared();
    in_each(beds(), |bed| {
        bed.user("tools:\n  protect: [kept]\npolicy:\n  - { deny: \"*\", command: rm }\n");
        // Where a protected path cannot be enforced, the user would be asked.
        let mut server = serve(bed, &["--approve", "auto"]);
        for command in [json!("true; rm x"), json!(["rm", "x"])] {
            let started = json!({ "action": "start", "command": command });
            let run = json!({ "command": command });
            for (tool, arguments) in [("process", &started), ("exec", &run)] {
                let reply = refused(&server.tool(tool, arguments));
                let denied = reply.starts_with("denied: ");
                assert!(
                    denied && reply.ends_with(&format!("{tool}, command rm x")),
                    "{reply}"
                );
            }
        }
        let script = format!(
            "echo x > {}; cat {}; echo x > kept; true",
            bed.at("out/new"),
            bed.at("home/.ssh/id")
        );
        bed.file("home/.ssh/id", CANARY);
        start(&mut server, &script);
        let ended = process(
            &mut server,
            &json!({ "action": "wait", "process_id": "proc-1" }),
        );
        assert_eq!(ended["exit_code"], 0, "{ended}");
        // Files that could not be prevented are moved out, and that is reported.
        let hint = ended["hint"].as_str().unwrap_or_default();
        assert!(
            hint.starts_with("protected: kept must not be written"),
            "{ended}"
        );
        assert!(!bed.has("work/kept"), "{ended}");
        let log = server.tool(
            "process",
            &json!({ "action": "log", "process_id": "proc-1" }),
        );
        assert!(!log.has(CANARY), "{log:?}");
        bed.outside_is_whole();
    });
}
