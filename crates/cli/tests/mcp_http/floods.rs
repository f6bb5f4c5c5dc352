//! Clients that are too slow, too many or too fast.

use crate::bed::Bed;
use haft_testing::http::{Client, Response};
use serde_json::json;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// Duration of quick calls, ignoring the slowest few.
fn usual(client: &Client, calls: u32) -> Duration {
    let mut took: Vec<_> = (0..calls)
        .map(|id| {
            let begun = Instant::now();
            let reply = client.call(id, "read", json!({ "path": "a.txt" }));
            assert_eq!(reply["result"]["content"][0]["text"], "text", "{reply}");
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[took.len() * 95 / 100]
}

#[test]
fn five_hundred_slow_connections_do_not_block_others() {
    let bed = Bed::new();
    std::fs::write(bed.work("a.txt"), "text").unwrap();
    let server = bed.serve(&[]);
    let (client, _) = server.client.initialize("2025-11-25", json!({}));
    let before = usual(&client, 200);
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..500).map(|_| client.connect()).collect();
    let head = client.head("POST", "/mcp", Some(100));
    for piece in head.bytes().take(3) {
        for stream in &mut slow {
            let _ = stream.write_all(&[piece]);
        }
        let meanwhile = usual(&client, 200);
        let limit = before * 4 + Duration::from_millis(20);
        assert!(meanwhile < limit, "{meanwhile:?} beside {before:?}");
        if begun.elapsed() < Duration::from_secs(15) {
            std::thread::sleep(Duration::from_secs(5));
        }
    }
    // Each is closed at the deadline for its head.
    for stream in slow {
        let answer = Response::try_read(stream);
        assert!(answer.is_none_or(|answer| answer.status == 408));
    }
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
    assert!(
        begun.elapsed() > Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
    usual(&client, 10);
}

#[test]
fn a_flood_is_bounded_and_ends_with_the_command() {
    let bed = Bed::new();
    std::fs::write(bed.work("a.txt"), "text").unwrap();
    let server = bed.serve(&[]);
    let (client, _) = server.client.initialize("2025-11-25", json!({}));
    usual(&client, 10);
    let before = server.memory();
    let body = haft_testing::http::call(1, "read", json!({ "path": "a.txt" })).to_string();
    let one = client.head("POST", "/mcp", Some(body.len())) + &body;
    let many = one.repeat(500);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                // All at once on each connection, with the same id.
                let mut stream = client.connect();
                let mut reading = stream.try_clone().unwrap();
                let read = std::thread::spawn(move || {
                    let mut statuses = (0, 0);
                    let mut seen = Vec::new();
                    let mut piece = [0; 1 << 16];
                    while statuses.0 + statuses.1 < 500 {
                        let Ok(length) = reading.read(&mut piece) else {
                            break;
                        };
                        if length == 0 {
                            break;
                        }
                        seen.extend_from_slice(&piece[..length]);
                        let text = String::from_utf8_lossy(&seen);
                        statuses = (
                            text.matches("HTTP/1.1 200").count(),
                            text.matches("HTTP/1.1 429").count(),
                        );
                    }
                    statuses
                });
                stream.write_all(many.as_bytes()).unwrap();
                let (fine, refused) = read.join().unwrap();
                assert_eq!(fine + refused, 500, "{fine} {refused}");
            });
        }
    });
    let over = Instant::now();
    let after = usual(&client, 10);
    assert!(
        over.elapsed() < Duration::from_secs(2),
        "{:?}",
        over.elapsed()
    );
    assert!(after < Duration::from_secs(1), "{after:?}");
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 100 << 10, "{grown} KiB");
}
