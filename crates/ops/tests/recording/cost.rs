//! What recording costs, on and off in turn: `cargo test --release --test recording -- --cost`.

use crate::bed::{Bed, block_on};
use haft_ops::effects::{End, Recording};
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::Level;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

struct Work {
    name: &'static str,
    prepare: &'static str,
    script: &'static str,
    runs: usize,
}

/// `@` is a number of its own for every run. ext4 is slow to reuse an inode that was freed
/// within the last minutes, so nothing is removed that a later run would create again.
const WORKS: &[Work] = &[
    Work {
        name: "true",
        prepare: "true",
        script: "true",
        runs: 200,
    },
    Work {
        name: "read 5,000 files",
        prepare: "[ -d tree ] || \"$SELF\" --act files tree 5000",
        script: "grep -r nothing tree; true",
        runs: 20,
    },
    Work {
        name: "write 10,000 files of 4 KB",
        prepare: "true",
        script: "\"$SELF\" --act files new@ 10000",
        runs: 10,
    },
    Work {
        name: "git checkout of 5,000 files",
        prepare: "[ -d repo ] || { mkdir repo && cd repo && git init -q . && \
                  git config user.email n && git config user.name n && \
                  \"$SELF\" --act files tree 5000 && git add -A && \
                  git commit -qm one && git branch one && for f in tree/*/*; do echo x >> $f; done && \
                  git commit -qam two && git branch two; cd ..; }; cp -a repo repo@",
        script: "cd repo@ && git checkout -q one",
        runs: 10,
    },
    Work {
        name: "rm -rf of 20,000 files",
        prepare: "[ -e made ] || for i in {1..25}; do \"$SELF\" --act files tree$i 20000; done; touch made",
        script: "rm -rf tree@",
        runs: 10,
    },
];

pub(crate) fn report(filter: Option<&str>) {
    for work in WORKS {
        if filter.is_none_or(|filter| work.name.contains(filter)) {
            measure(work);
        }
    }
}

fn measure(work: &Work) {
    let bed = Bed::new(Some(Level::Full)).unwrap();
    let (mut on, mut off, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    // Time of the processors. On a busy machine it says more than the clock.
    let (mut on_cpu, mut off_cpu) = (Vec::new(), Vec::new());
    let mut number = 0;
    for round in 0..=work.runs {
        for record in [true, false] {
            number += 1;
            let unique = |text: &str| text.replace('@', &number.to_string());
            run(&bed, &unique(work.prepare), false);
            let before = cpu();
            let (took, end) = run(&bed, &unique(work.script), record);
            // The supervisor ends a little later.
            std::thread::sleep(Duration::from_millis(200));
            let used = cpu().saturating_sub(before);
            // The first one warms up.
            if round > 0 {
                match record {
                    true => {
                        on.push(took);
                        on_cpu.push(used);
                        ends.push(end);
                    }
                    false => {
                        off.push(took);
                        off_cpu.push(used);
                    }
                }
            }
        }
    }
    let (ratio, cpu_ratio) = (ratio(&on, &off), ratio(&on_cpu, &off_cpu));
    println!(
        "{}: on {:?}, off {:?}, ratio {ratio:.2}; processors: on {:?}, off {:?}, ratio \
         {cpu_ratio:.2}; end of the set {:?}, memory {} KiB",
        work.name,
        median(&mut on),
        median(&mut off),
        median(&mut on_cpu),
        median(&mut off_cpu),
        median(&mut ends),
        peak(),
    );
}

/// Returns the median of the ratios of paired runs.
fn ratio(on: &[Duration], off: &[Duration]) -> f64 {
    let pairs = on.iter().zip(off);
    let mut ratios: Vec<f64> = pairs
        .map(|(on, off)| on.as_secs_f64() / off.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Returns the time that this process and everything below it that has ended used.
fn cpu() -> Duration {
    let mut sum = Duration::ZERO;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        // SAFETY: a structure of numbers, which the kernel fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        for time in [usage.ru_utime, usage.ru_stime] {
            sum += Duration::from_micros(
                u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap(),
            );
        }
    }
    sum
}

fn run(bed: &Bed, script: &str, record: bool) -> (Duration, Duration) {
    let recorder = bed.recorder();
    let mut launch = bed.bash(script, &recorder);
    if !record {
        launch.recording = Recording::Off;
    }
    let begun = Instant::now();
    let finished = block_on(async {
        let cancel = CancellationToken::new();
        bed.local.run(launch, &|_, _| {}, &cancel).await.unwrap()
    });
    let took = begun.elapsed();
    let code = finished.status;
    assert_eq!(code, haft_ops::executor::Exit::Code(0), "{script}");
    let counts = recorder.finish(End::Done);
    assert!(!record || counts.complete, "{counts:?}");
    (took, begun.elapsed().saturating_sub(took))
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}
