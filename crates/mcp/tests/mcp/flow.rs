//! Concurrent calls, cancellation, progress and the end of a connection.

use crate::client::{Client, call, cancelled, within};
use crate::tools::{Bench, late};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::{Duration, Instant};

fn with_token(id: u64, tool: &str, token: Value) -> Value {
    let mut message = call(id, tool, json!({}));
    message["params"]["_meta"] = json!({ "progressToken": token });
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_are_each_answered_once() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for id in 0..200 {
        let tool = if id % 2 == 0 { "wait" } else { "echo" };
        client
            .call(id, tool, json!({ "text": id.to_string() }))
            .await;
    }
    // Some calls wait for a slot, so not all start before one is released.
    bench.release.add_permits(100);
    let mut seen = HashSet::new();
    for _ in 0..200 {
        let answer = client.receive().await;
        let id = answer["id"].as_u64().expect("an id");
        assert!(seen.insert(id), "{id} was answered twice");
        let text = answer["result"]["content"][0]["text"].as_str();
        let wanted = id.to_string();
        let wanted = if id % 2 == 0 { "released" } else { &wanted };
        assert_eq!(text, Some(wanted));
    }
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn a_quick_call_does_not_wait_for_a_slow_one() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "wait", json!({})).await;
    client.call(2, "echo", json!({ "text": "quick" })).await;
    assert_eq!(client.receive().await["id"], 2);
    bench.release.add_permits(1);
    assert_eq!(client.receive().await["id"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_to_one_file_happen_in_the_order_of_their_calls() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for round in 0..40 {
        for id in 0..8 {
            client
                .call(
                    id,
                    "write",
                    json!({ "path": "a.txt", "content": format!("{round} {id}") }),
                )
                .await;
        }
        for _ in 0..8 {
            assert_eq!(client.receive().await["result"]["isError"], false);
        }
        let text = std::fs::read_to_string(bench.dir.path().join("a.txt")).expect("it is there");
        assert_eq!(text, format!("{round} 7"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_ends_and_nothing_else_does() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "wait", json!({})).await;
    client.call("two", "deaf", json!({})).await;
    client.call(3, "deaf", json!({})).await;
    bench.until_waiting(3).await;
    client.send(cancelled("two")).await;
    client.send(cancelled(3)).await;
    // Neither a string instead of a number nor an unknown id cancels anything.
    client.send(cancelled("1")).await;
    client.send(cancelled(99)).await;
    bench.until_waiting(1).await;
    bench.release.add_permits(1);
    assert_eq!(client.receive().await["id"], 1);
    client.alive().await;
    assert_eq!(
        client.end().await,
        [Value::Null; 0],
        "no answer to what was cancelled"
    );
}

#[tokio::test]
async fn a_call_that_waits_for_a_slot_can_be_cancelled() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for id in 0..65 {
        client.call(id, "wait", json!({})).await;
    }
    bench.until_waiting(64).await;
    client.send(cancelled(64)).await;
    client.alive().await;
    bench.release.add_permits(64);
    for _ in 0..64 {
        assert_ne!(client.receive().await["id"], 64);
    }
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn progress_is_sent_while_the_call_runs() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.send(with_token(1, "wait", json!("tok"))).await;
    assert_eq!(
        client.receive().await,
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": "tok", "progress": 1.0, "message": "waiting",
        }})
    );
    bench.release.add_permits(1);
    assert_eq!(client.receive().await["id"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_progress_precedes_the_result_and_increases() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for round in 0..50 {
        client
            .send(with_token(round, "updates", json!(round)))
            .await;
        for (number, text) in [(1.0, "one"), (2.0, "two"), (3.0, "three")] {
            let told = client.receive().await;
            assert_eq!(told["params"]["progressToken"], round, "{told}");
            assert_eq!(told["params"]["progress"], number);
            assert_eq!(told["params"]["message"], text);
        }
        assert_eq!(client.receive().await["id"], round);
    }
}

#[tokio::test]
async fn no_progress_is_sent_without_a_token() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "updates", json!({})).await;
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.end().await, [Value::Null; 0]);
}

#[tokio::test]
async fn the_client_is_notified_when_the_tools_change() {
    let bench = Bench::new();
    let mut client = Client::silent(bench.runtime.clone());
    let result = client.initialize("2025-11-25").await;
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    client.alive().await;
    // Adding a tool notifies clients by itself.
    bench.runtime.tools().add_any(late()).expect("a new name");
    assert_eq!(
        client.receive().await["method"],
        "notifications/tools/list_changed"
    );
    client.call(1, "late", json!({})).await;
    assert_eq!(
        client.receive().await["result"]["content"][0]["text"],
        "late"
    );
    client.changed.notify();
    assert_eq!(
        client.receive().await["method"],
        "notifications/tools/list_changed"
    );
}

#[tokio::test]
async fn calls_that_were_sent_before_the_end_of_input_are_answered() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    for id in 0..20 {
        client.call(id, "echo", json!({ "text": "x" })).await;
    }
    assert_eq!(client.end().await.len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_keep_running_after_the_end_of_input_are_stopped_within_a_second() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "wait", json!({})).await;
    client.call(2, "deaf", json!({})).await;
    bench.until_waiting(2).await;
    let begun = Instant::now();
    client.end().await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    bench.until_waiting(0).await;
}

#[tokio::test]
async fn a_shutdown_ends_the_server_while_the_input_is_open() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "deaf", json!({})).await;
    bench.until_waiting(1).await;
    let begun = Instant::now();
    client.shutdown.cancel();
    client.ended().await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    bench.until_waiting(0).await;
}

#[tokio::test]
async fn a_client_that_stops_reading_ends_the_server() {
    let bench = Bench::new();
    let mut client = Client::connect(bench.runtime.clone()).await;
    client.call(1, "deaf", json!({})).await;
    client.call(2, "echo", json!({})).await;
    bench.until_waiting(1).await;
    client.receive().await;
    let (mut input, serving) = client.vanish_output().await;
    let more = format!("{}\n", call(3, "echo", json!({})));
    tokio::io::AsyncWriteExt::write_all(&mut input, more.as_bytes())
        .await
        .expect("the input is still read");
    within("the server to end", serving)
        .await
        .expect("it does not panic")
        .expect("a client that disconnects is not an error");
    bench.until_waiting(0).await;
}
