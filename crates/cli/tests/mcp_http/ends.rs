//! Lifetimes: calls end with their clients, processes with their sessions, and everything
//! with the server.

use crate::bed::{Bed, FREE, mark, running, until_running};
use haft_testing::http::call;
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_command_dies_ten_seconds_after_its_client_unless_it_comes_back() {
    let bed = Bed::new();
    let server = bed.serve(&FREE);
    let (client, _) = server.client.initialize("2025-11-25", json!({}));
    let (kept, lost) = (mark(), mark());
    let begin = |id: u32, mark: &str| {
        let command = json!({ "command": format!("sleep {mark}"), "timeout": 600 });
        let mut stream = client.post(&call(id, "bash", command));
        let primer = stream.event().and_then(|event| event.id).unwrap();
        until_running(mark, 1, SOON);
        stream.hang_up();
        primer
    };
    let primer = begin(1, &kept);
    let _ = begin(2, &lost);
    let gone = Instant::now();
    std::thread::sleep(Duration::from_secs(4));
    let back = client.get(Some(&primer));
    assert!(back.is_stream());
    until_running(&lost, 0, SOON);
    let took = gone.elapsed();
    assert!(
        (Duration::from_millis(9500)..Duration::from_secs(14)).contains(&took),
        "{took:?}"
    );
    assert_eq!(running(&kept), 1);
    let ended = server.end(Signal::TERM);
    assert!(ended.took < Duration::from_secs(2), "{:?}", ended.took);
    until_running(&kept, 0, Duration::from_secs(2));
}

#[test]
fn the_end_of_a_session_ends_its_processes_and_no_others() {
    let bed = Bed::new();
    let server = bed.serve(&[&FREE[..], &["--toolset", "workspace"]].concat());
    let (own, others) = (mark(), mark());
    let clients = [&own, &others].map(|mark| {
        let (client, _) = server.client.initialize("2025-11-25", json!({}));
        let start = json!({ "action": "start", "command": format!("sleep {mark}") });
        let started = client.call(1, "process", start);
        assert_eq!(started["result"]["isError"], false, "{started}");
        until_running(mark, 1, SOON);
        client
    });
    assert_eq!(clients[0].send("DELETE", "/mcp", None).status, 204);
    until_running(&own, 0, Duration::from_secs(2));
    assert_eq!(running(&others), 1);
    let listed = clients[1].call(2, "process", json!({ "action": "list" }));
    assert!(listed.to_string().contains(&others), "{listed}");
    drop(server.end(Signal::TERM));
    until_running(&others, 0, Duration::from_secs(2));
}

/// Background processes of a command belong to the session.
#[test]
fn the_end_of_a_session_ends_what_its_commands_left() {
    let bed = Bed::new();
    let server = bed.serve(&FREE);
    let (own, others) = (mark(), mark());
    let clients = [&own, &others].map(|mark| {
        let (client, _) = server.client.initialize("2025-11-25", json!({}));
        for (id, way) in (1..).zip(["", "setsid "]) {
            let command = format!("{way}sleep {mark} >/dev/null 2>&1 & echo started");
            let started = client.call(id, "bash", json!({ "command": command }));
            assert_eq!(started["result"]["isError"], false, "{started}");
        }
        until_running(mark, 2, SOON);
        client
    });
    assert_eq!(clients[0].send("DELETE", "/mcp", None).status, 204);
    until_running(&own, 0, Duration::from_secs(2));
    assert_eq!(running(&others), 2);
    drop(server.end(Signal::TERM));
    until_running(&others, 0, Duration::from_secs(2));
}

#[test]
fn a_signal_ends_a_hundred_running_calls() {
    let bed = Bed::new();
    let server = bed.serve(&FREE);
    let mark = mark();
    let mut streams = Vec::new();
    for _ in 0..10 {
        let (client, _) = server.client.initialize("2025-11-25", json!({}));
        for id in 0..10 {
            let command = json!({ "command": format!("sleep {mark}"), "timeout": 600 });
            streams.push(client.post(&call(id, "bash", command)));
        }
    }
    until_running(&mark, 100, Duration::from_secs(60));
    let ended = server.end(Signal::TERM);
    assert_eq!((ended.code, ended.out.as_str()), (Some(143), ""));
    assert!(ended.took < Duration::from_secs(3), "{:?}", ended.took);
    until_running(&mark, 0, Duration::from_secs(2));
    // All of them were recorded, with their end or without one.
    let recorded = bed.recorded();
    assert_eq!(recorded.len(), 10, "{recorded:?}");
    for session in recorded {
        let exported = bed.haft(&["sessions", "export", session["id"].as_str().unwrap()]);
        let lines = exported.out;
        assert_eq!(lines.lines().skip(1).count(), 10, "{lines}");
    }
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let bed = Bed::new();
    let server = bed.serve(&FREE);
    let mark = mark();
    let (client, _) = server.client.initialize("2025-11-25", json!({}));
    let command = json!({ "command": format!("sleep {mark}"), "timeout": 600 });
    let _stream = client.post(&call(1, "bash", command));
    until_running(&mark, 1, SOON);
    drop(server.end(Signal::KILL));
    until_running(&mark, 0, Duration::from_secs(3));
}
