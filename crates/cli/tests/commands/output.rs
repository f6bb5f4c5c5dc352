//! The part of a command's output that is kept.

use crate::stage::{Stage, size, text};
use haft_ops::executor::{Ended, Exit, Streams};
use std::time::{Duration, Instant};

#[tokio::test]
async fn bytes_pass_as_they_are() {
    let stage = Stage::new();
    let finished = stage
        .run(stage.bash(r"printf 'a\0b\r\xff\xfe\x80\x1b[2J\xc3'; exit 7"))
        .await;
    assert_eq!(finished.output.head, b"a\0b\r\xff\xfe\x80\x1b[2J\xc3");
    assert_eq!(finished.output.total_bytes, 12);
    assert_eq!(finished.output.total_lines, 1);
    assert_eq!(finished.status, Exit::Code(7));
    let nothing = stage.run(stage.bash("")).await;
    assert_eq!(
        (nothing.output.total_bytes, nothing.output.total_lines),
        (0, 0)
    );
}

#[tokio::test]
async fn a_flood_is_kept_whole_on_the_disk_and_bounded_in_memory() {
    let stage = Stage::new();
    let finished = stage.run(stage.bash("seq 1000000")).await;
    let output = &finished.output;
    let whole: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(output.total_bytes, whole.len() as u64);
    assert_eq!(output.total_lines, 1_000_000);
    assert_eq!(output.head, &whole.as_bytes()[..1000]);
    assert_eq!(output.tail, &whole.as_bytes()[whole.len() - (64 << 10)..]);
    assert_eq!(output.omitted, 0);
    assert_eq!(output.trouble, None);
    let spill = output.spill.as_ref().unwrap();
    assert!(std::fs::read(spill).unwrap() == whole.as_bytes());
}

#[tokio::test]
async fn output_that_fits_in_memory_creates_no_file() {
    let stage = Stage::new();
    let finished = stage.run(stage.bash("head -c 66536 /dev/zero")).await;
    assert_eq!(finished.output.missing(), 0);
    assert_eq!(finished.output.spill, None);
    assert!(!stage.path("spill").exists());
    let finished = stage.run(stage.bash("head -c 66537 /dev/zero")).await;
    assert_eq!(finished.output.missing(), 1);
    assert_eq!(size(finished.output.spill.as_ref().unwrap()), 66_537);
}

#[tokio::test]
async fn beyond_its_bound_the_disk_has_beginning_and_end() {
    let stage = Stage::new();
    let mut launch = stage.bash("seq 1000000; seq 1000000 >&2");
    launch.streams = Streams::Separate;
    launch.keep.disk.as_mut().unwrap().max = 1 << 20;
    let finished = stage.run(launch).await;
    for captured in [&finished.output, &finished.error] {
        let file = std::fs::read_to_string(captured.spill.as_ref().unwrap()).unwrap();
        // In addition to the note about what is missing.
        assert!(file.len() <= (1 << 20) + 200, "{}", file.len());
        assert!(file.starts_with("1\n2\n3\n"));
        assert!(file.ends_with("999999\n1000000\n"));
        let note = format!("\n[{} bytes omitted: ", captured.omitted);
        assert!(file.contains(&note));
        assert_eq!(captured.total_bytes, 6_888_896);
    }
    let names = std::fs::read_dir(stage.path("spill")).unwrap().count();
    assert_eq!(names, 2);
}

#[tokio::test]
async fn a_line_without_end_is_one_line() {
    let stage = Stage::new();
    let finished = stage
        .run(stage.bash("head -c 100000000 /dev/zero | tr '\\0' x"))
        .await;
    assert_eq!(finished.output.total_bytes, 100_000_000);
    assert_eq!(finished.output.total_lines, 1);
    assert_eq!(size(finished.output.spill.as_ref().unwrap()), 100_000_000);
}

#[tokio::test]
async fn a_full_disk_costs_the_file_and_not_the_reply() {
    let stage = Stage::new();
    let mut launch = stage.bash("seq 100000; exit 4");
    launch.keep.disk.as_mut().unwrap().output = "/dev/full".into();
    let finished = stage.run(launch).await;
    assert_eq!(finished.status, Exit::Code(4));
    assert_eq!(finished.output.total_lines, 100_000);
    assert!(finished.output.tail.ends_with(b"\n99999\n100000\n"));
    let trouble = finished.output.trouble.unwrap();
    assert!(trouble.ends_with("no space left on device"), "{trouble}");

    let mut launch = stage.bash("seq 100000");
    launch.keep.disk.as_mut().unwrap().output = "/proc/none/output".into();
    let finished = stage.run(launch).await;
    assert_eq!(finished.output.spill, None);
    assert!(finished.output.trouble.is_some());
    assert_eq!(finished.output.total_lines, 100_000);
}

#[tokio::test]
async fn an_endless_command_returns_what_it_said_when_its_time_is_over() {
    let stage = Stage::new();
    for script in [
        "yes",
        "yes >&2 & yes",
        "cat /dev/urandom",
        "echo hi; sleep 300",
    ] {
        let mut launch = stage.bash(script);
        launch.limit = Some(Duration::from_millis(300));
        launch.keep.disk.as_mut().unwrap().max = 8 << 20;
        let begun = Instant::now();
        let finished = stage.run(launch).await;
        assert!(begun.elapsed() < Duration::from_millis(1500), "{script}");
        assert_eq!(finished.ended, Ended::TimedOut, "{script}");
        assert!(finished.output.total_bytes > 0, "{script}");
        assert_eq!(finished.status, Exit::Signal(15), "{script}");
    }
    stage.gone(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_command_that_closes_its_output_keeps_running() {
    let stage = Stage::new();
    let script = "echo before; exec >&- 2>&-; sleep 0.2; echo > alive";
    let finished = stage.run(stage.bash(script)).await;
    assert_eq!(text(&finished), "before\n");
    assert!(stage.path("alive").exists(), "it ended at its last output");
}

/// A flood of output does not grow the reader's memory.
#[tokio::test]
async fn memory_stays_flat_under_a_flood() {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages = status.split_whitespace().nth(1).unwrap().parse::<u64>();
        pages.unwrap() * 4096
    };
    let stage = Stage::new();
    stage.run(stage.bash("yes | head -c 5M")).await;
    let before = resident();
    let most = std::sync::atomic::AtomicU64::new(0);
    let watch = |_, _: &[u8]| {
        most.fetch_max(resident(), std::sync::atomic::Ordering::Relaxed);
    };
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut launch = stage.bash("yes | head -c 300M");
    launch.keep.disk.as_mut().unwrap().max = 64 << 20;
    let finished = haft_ops::Executor::run(&stage.local, launch, &watch, &cancel)
        .await
        .unwrap();
    assert_eq!(finished.output.total_bytes, 300 << 20);
    assert_eq!(finished.output.total_lines, 150 << 20);
    // Other tests run beside this one, in the same memory.
    let grown = most.into_inner().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown}");
}
