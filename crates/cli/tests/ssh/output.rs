//! The output of commands that is returned.

use crate::stage::{Stage, text};
use haft_ops::Executor;
use haft_ops::executor::{Exit, Stream, Streams};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn bytes_pass_as_they_are() {
    let stage = Stage::new();
    let script = r"printf 'a\0b\r\xff\xfe\x80\x1b[2J\xc3'; printf 'c\0\x81' >&2; exit 7";
    let mut launch = stage.bash(script);
    let merged = stage.run(launch.clone()).await;
    assert_eq!(merged.output.head, b"a\0b\r\xff\xfe\x80\x1b[2J\xc3c\0\x81");
    assert_eq!(merged.status, Exit::Code(7));
    launch.streams = Streams::Separate;
    let apart = stage.run(launch).await;
    assert_eq!(apart.output.head, b"a\0b\r\xff\xfe\x80\x1b[2J\xc3");
    assert_eq!(apart.error.head, b"c\0\x81");
    assert_eq!(apart.error.total_lines, 1);
    let nothing = stage.run(stage.bash("")).await;
    assert_eq!(nothing.output.total_bytes, 0);
}

#[tokio::test]
async fn the_streams_come_in_order_of_arrival_or_apart() {
    let stage = Stage::new();
    let script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done";
    let mut launch = stage.bash(script);
    let merged = stage.run(launch.clone()).await;
    let expected: String = (1..=200).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(text(&merged), expected);
    assert_eq!(merged.error.total_bytes, 0);
    launch.streams = Streams::Separate;
    let apart = stage.run(launch).await;
    assert_eq!(apart.output.total_lines, 200);
    let errors: String = (1..=200).map(|i| format!("err {i}\n")).collect();
    assert_eq!(
        [apart.error.head.as_slice(), &apart.error.tail].concat(),
        errors.as_bytes()
    );
}

#[tokio::test]
async fn output_is_seen_while_the_command_runs() {
    let stage = Stage::new();
    let go = stage.path("go");
    let mut launch =
        stage.bash("printf first >&2; until [ -e go ]; do sleep 0.01; done; echo second >&2");
    launch.streams = Streams::Separate;
    let seen = Mutex::new(Vec::new());
    let watch = |stream, bytes: &[u8]| {
        assert_eq!(stream, Stream::Error);
        seen.lock().unwrap().extend_from_slice(bytes);
        std::fs::write(&go, "").unwrap();
    };
    let cancel = CancellationToken::new();
    stage.ssh.run(launch, &watch, &cancel).await.unwrap();
    assert_eq!(seen.into_inner().unwrap(), b"firstsecond\n");
}

#[tokio::test]
async fn a_flood_is_bounded_in_memory_and_whole_on_the_disk() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages = status.split_whitespace().nth(1).unwrap().parse::<u64>();
        pages.unwrap() * 4096
    };
    let stage = Stage::new();
    stage.run(stage.bash("yes | head -c 5M")).await;
    let before = resident();
    let most = AtomicU64::new(0);
    let watch = |_, _: &[u8]| {
        most.fetch_max(resident(), Ordering::Relaxed);
    };
    let cancel = CancellationToken::new();
    let mut launch = stage.bash("yes | head -c 100M; yes | head -c 20M >&2");
    launch.streams = Streams::Separate;
    let finished = stage.ssh.run(launch, &watch, &cancel).await.unwrap();
    for (captured, size) in [(&finished.output, 100 << 20), (&finished.error, 20 << 20)] {
        assert_eq!(captured.total_bytes, size);
        let spill = captured.spill.as_ref().unwrap();
        assert_eq!(std::fs::metadata(spill).unwrap().len(), size);
    }
    // Other tests run beside this one, in the same memory.
    let grown = most.into_inner().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown}");
}
