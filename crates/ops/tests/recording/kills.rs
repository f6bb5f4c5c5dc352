//! haft is killed at any moment: what its command changed up to then can be undone.

use crate::bed::{Bed, block_on, exe, last, session, tree};
use crate::scripts::{Random, line, prepare};
use crate::tree::differences;
use haft_ops::effects::UndoMode;
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::Level;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const KILLS: u64 = 100;

/// Runs a long recorded script, to be killed.
pub(crate) fn victim(folder: &str) {
    let bed = Bed::at(PathBuf::from(folder), Some(Level::Full)).unwrap();
    let mut random = Random(u64::from(std::process::id()).wrapping_mul(0x9e37_79b9) | 1);
    let script: Vec<String> = (0..3000).map(|_| line(&mut random)).collect();
    let script = format!("touch started; {{ {}\n}} 2>/dev/null", script.join("\n"));
    let recorder = bed.recorder();
    block_on(async {
        let cancel = CancellationToken::new();
        let launch = bed.bash(&script, &recorder);
        bed.local.run(launch, &|_, _| {}, &cancel).await.unwrap()
    });
    // Killed while the command ran, or not at all.
    std::process::exit(0);
}

pub(crate) fn all(level: Level) {
    let Some(bed) = Bed::new(Some(level)) else {
        return;
    };
    prepare(&bed);
    let before = bed.tree();
    let begun = Instant::now();
    let mut random = Random(7);
    for kill in 0..KILLS {
        let mut victim = Command::new(exe())
            .arg("--victim")
            .arg(&bed.base)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = bed.path("work/started");
        let deadline = Instant::now() + Duration::from_secs(30);
        while !started.exists() {
            assert!(Instant::now() < deadline, "the victim did not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        let pause = u64::try_from(random.below(60_000)).unwrap();
        std::thread::sleep(Duration::from_micros(pause));
        victim.kill().unwrap();
        victim.wait().unwrap();
        ended(&bed);
        let undone = session(&bed.base).undo(&last(), UndoMode::Careful);
        let left = differences(&before, &tree(&bed.base));
        assert!(
            undone.is_ok() && left.is_empty(),
            "kill {kill} after {pause} µs\nnot restored: {left:#?}\n{undone:#?}"
        );
        // Each victim starts a session of its own.
        let _ = std::fs::remove_dir_all(bed.path("state"));
    }
    println!("{KILLS} kills in {:?}", begun.elapsed());
}

/// Waits until the supervisor has ended the command.
fn ended(bed: &Bed) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mark = bed.base.as_os_str().as_encoded_bytes();
    let lives = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
            .any(|environment| memchr::memmem::find(&environment, mark).is_some())
    };
    while lives() {
        assert!(Instant::now() < deadline, "the command was not ended");
        std::thread::sleep(Duration::from_millis(2));
    }
}
