//! After SIGKILL a file is the old or the new one, and the next start cleans up.

use crate::{Yard, read};
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

const KILLS: u64 = 60;

#[test]
fn a_killed_write_leaves_the_old_file_or_the_new_one() {
    let yard = Yard::new();
    let target = yard.work().join("big.txt");
    let old = "A".repeat(8 << 20);
    let new = "B".repeat(8 << 20);
    let arguments = json!({ "path": "big.txt", "content": new }).to_string();
    let (mut olds, mut news) = (0, 0);
    std::fs::write(&target, &old).unwrap();
    for round in 0..KILLS {
        let mut child = yard
            .command(&["call", "write", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe breaks if the kill comes while haft still reads it.
        let _ = child.stdin.take().unwrap().write_all(arguments.as_bytes());
        std::thread::sleep(Duration::from_micros(round * 1_500));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = read(&target);
        if found == old.as_bytes() {
            olds += 1;
        } else if found == new.as_bytes() {
            news += 1;
            std::fs::write(&target, &old).unwrap();
        } else {
            panic!(
                "round {round}: neither the old nor the new file, {} bytes",
                found.len()
            );
        }
    }
    assert!(olds > 0, "no kill came in time: the test proves nothing");
    assert!(news + olds == KILLS);
    // Any start cleans up, not only a write in that folder.
    yard.command(&["call", "ls"]).output().unwrap();
    assert_eq!(yard.litter(), Vec::<String>::new());
}

#[test]
fn the_server_ends_with_its_input_even_while_it_works() {
    let yard = Yard::new();
    let mut child = yard
        .command(&["mcp", "--preset", "all"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "grep", "arguments": {"pattern": "zzz[a-q]zzz", "path": "/usr"}}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    writeln!(
        stdin,
        "{hello}\n{}\n{call}",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
    )
    .unwrap();
    drop(stdin);
    let begun = std::time::Instant::now();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
}
