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
        prepare: "rm -rf tree new",
        script: "\"$SELF\" --act files new 10000",
        runs: 10,
    },
    Work {
        name: "git checkout of 5,000 files",
        prepare: "[ -d .git ] || { rm -rf tree new; git init -q . && git config user.email a@b && \
                  git config user.name n && \"$SELF\" --act files tree 5000 && git add -A && \
                  git commit -qm one && git branch one && for f in tree/*/*; do echo x >> $f; done && \
                  git commit -qam two && git branch two; }; git checkout -q two",
        script: "git checkout -q one",
        runs: 10,
    },
    Work {
        name: "rm -rf of 20,000 files",
        prepare: "rm -rf tree .git new; \"$SELF\" --act files tree 20000",
        script: "rm -rf tree",
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
    for round in 0..=work.runs {
        for record in [true, false] {
            run(&bed, work.prepare, false);
            let (took, end) = run(&bed, work.script, record);
            // The first one warms up.
            if round > 0 {
                match record {
                    true => {
                        on.push(took);
                        ends.push(end);
                    }
                    false => off.push(took),
                }
            }
        }
    }
    let mut ratios: Vec<f64> = on
        .iter()
        .zip(&off)
        .map(|(on, off)| on.as_secs_f64() / off.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    println!(
        "{}: on {:?}, off {:?}, ratio {:.2}, end of the set {:?}, memory {} KiB",
        work.name,
        median(&mut on),
        median(&mut off),
        ratios[ratios.len() / 2],
        median(&mut ends),
        peak(),
    );
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
