//! What it costs, beside the same without haft. Ratios in one run; not part of
//! the ordinary tests:
//! `cargo test --release -p haft-cli --test commands -- --ignored --nocapture`.

use crate::stage::Stage;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn raw(script: &str) {
    let status = Command::new("/bin/bash")
        .args(["-c", script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .output()
        .unwrap()
        .status;
    assert!(status.success());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The most memory this process has had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn starting() {
    let stage = Stage::new();
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..500 {
        let begun = Instant::now();
        raw("true");
        plain.push(begun.elapsed());
        let begun = Instant::now();
        stage.run(stage.bash("true")).await;
        ours.push(begun.elapsed());
    }
    let (plain, ours) = (median(plain), median(ours));
    let ratio = ours.as_secs_f64() / plain.as_secs_f64();
    println!("bash -c true: raw {plain:?}, here {ours:?}, ratio {ratio:.2}");
    assert!(ratio <= 2.0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn flood() {
    let stage = Stage::new();
    stage.run(stage.bash("yes | head -c 10M")).await;
    let before = peak();
    for size in ["1G", "4G"] {
        let begun = Instant::now();
        raw(&format!("yes | head -c {size} | cat > /dev/null"));
        let plain = begun.elapsed();
        let begun = Instant::now();
        let finished = stage
            .run(stage.bash(&format!("yes | head -c {size}")))
            .await;
        let ours = begun.elapsed();
        let ratio = plain.as_secs_f64() / ours.as_secs_f64();
        let grown = peak() - before;
        println!("{size}: raw {plain:?}, here {ours:?}, speed {ratio:.2}, memory +{grown} KiB");
        assert_eq!(finished.output.trouble, None);
        assert!(grown < 32 << 10);
        assert!(ratio >= 0.5);
    }
}
