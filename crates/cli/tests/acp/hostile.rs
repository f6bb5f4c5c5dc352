//! Bad input, floods, and clients that go away.

use crate::bed::{Bed, runs, says};
use haft_testing::model::{ModelReply, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn garbage_is_answered_and_ignored() {
    let bed = Bed::new(vec![says("Still here")]);
    let (mut client, session) = bed.seated();
    client.raw(b"garbage\n\xff\xfe\x00\n{\"jsonrpc\":\n[[[[[\n\n  \n");
    client.raw(&[&b"["[..]; 5000].concat());
    client.raw(b"\n");
    assert_eq!(client.prompt(&session, "Go"), "end_turn");
}

#[test]
fn a_message_that_is_too_long_is_refused_by_its_id() {
    let bed = Bed::new(vec![says("Still here")]);
    let (mut client, session) = bed.seated();
    let start = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":777,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\""
    );
    client.raw(start.as_bytes());
    let block = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        client.raw(&block);
    }
    client.raw(b"\"}]}}\n");
    let answer = client.answer(777);
    assert_eq!(answer["error"]["code"], -32600);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("too long")
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < 200_000, "{peak} kB");
    assert_eq!(client.prompt(&session, "Go"), "end_turn");
}

#[test]
fn requests_before_initialize_are_refused() {
    let bed = Bed::new(vec![says("x")]);
    let mut client = haft_testing::acp::Client::start(&mut bed.agent());
    let params = json!({ "cwd": bed.folder(), "mcpServers": [] });
    assert_eq!(client.refused("session/new", params).0, -32600);
}

#[test]
fn a_flood_of_requests_is_answered() {
    let bed = Bed::new(vec![says("Still here")]);
    let (mut client, session) = bed.seated();
    let ids: Vec<_> = (0..1000)
        .map(|_| client.request("session/list", json!({})))
        .collect();
    for id in ids {
        client.answer(id);
    }
    assert_eq!(client.prompt(&session, "Go"), "end_turn");
}

/// Whether a process has this in its command line.
pub(crate) fn is_running(marker: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(marker))
}

pub(crate) fn ends_within_a_second(marker: &str) {
    let begun = Instant::now();
    while is_running(marker) {
        assert!(begun.elapsed() < Duration::from_secs(1), "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_disconnects_takes_everything_with_it() {
    let marker = format!("30{}.25", fastrand::u32(10_000..99_999));
    let script = vec![
        runs("c1", &format!("echo begun; sleep {marker}")),
        says("Back"),
    ];
    let bed = Bed::new(script);
    let (mut client, session) = bed.seated();
    client.begin_prompt(&session, "Wait");
    client.wait(|message| message.to_string().contains("begun"));
    client.hang_up();
    assert!(client.ended(Duration::from_secs(2)).success());
    ends_within_a_second(&marker);
    let mut client = bed.client();
    client.ok("session/load", bed.place(&session));
    assert_eq!(client.prompt(&session, "Go on"), "end_turn");
}

#[test]
fn a_kill_takes_everything_with_it() {
    let marker = format!("30{}.75", fastrand::u32(10_000..99_999));
    let script = vec![runs("c1", &format!("echo begun; sleep {marker}"))];
    let bed = Bed::new(script);
    let (mut client, session) = bed.seated();
    client.begin_prompt(&session, "Wait");
    client.wait(|message| message.to_string().contains("begun"));
    drop(client);
    ends_within_a_second(&marker);
}

#[test]
fn sigterm_ends_it() {
    let bed = Bed::new(vec![Turn::Silent]);
    let (mut client, session) = bed.seated();
    client.begin_prompt(&session, "Wait");
    let pid = Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(client.ended(Duration::from_secs(2)).code(), Some(143));
}

#[test]
fn a_client_that_reads_late_gets_everything() {
    let text = "a line of an answer that goes on\n".repeat(20_000);
    let bed = Bed::new(vec![Turn::Reply(ModelReply::text(text.clone()))]);
    let (mut client, session) = bed.seated();
    let id = client.begin_prompt(&session, "Talk");
    while bed.server.count() == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.stop_reason(id), "end_turn");
    assert_eq!(client.text("agent_message_chunk"), text);
}
