//! haft is killed at any moment: what its command changed up to then can be undone.

use crate::bed::{Bed, block_on, exe, last, session, tree};
use crate::scripts::{Random, line, prepare};
use crate::tree::differences;
use haft_ops::effects::UndoMode;
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::Level;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Number of kills. A busy machine makes fewer, but never less than a fifth.
const KILLS: u64 = 100;
const LIMIT: Duration = Duration::from_secs(30);

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
    let mut kills = 0;
    for kill in 0..KILLS {
        if kill >= KILLS / 5 && begun.elapsed() > LIMIT {
            break;
        }
        kills = kill + 1;
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
        let supervisors = children(victim.id());
        victim.kill().unwrap();
        victim.wait().unwrap();
        ended(&supervisors);
        let undone = session(&bed.base).undo(&last(), UndoMode::Careful);
        let left = differences(&before, &tree(&bed.base));
        assert!(
            undone.is_ok() && left.is_empty(),
            "kill {kill} after {pause} µs\nnot restored: {left:#?}\n{undone:#?}"
        );
        // Each victim starts a session of its own.
        let _ = std::fs::remove_dir_all(bed.path("state"));
    }
    println!("{kills} kills in {:?}", begun.elapsed());
}

fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |number: &u32| {
        let text = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1) == Some(&parent.to_string())
    };
    numbers.filter(is_child).collect()
}

/// Waits until the supervisors are gone. They end after everything below them.
fn ended(supervisors: &[u32]) {
    assert!(!supervisors.is_empty());
    let deadline = Instant::now() + Duration::from_secs(30);
    let exists = |number: &u32| Path::new(&format!("/proc/{number}")).exists();
    while supervisors.iter().any(exists) {
        assert!(Instant::now() < deadline, "the command was not ended");
        std::thread::sleep(Duration::from_millis(1));
    }
}
