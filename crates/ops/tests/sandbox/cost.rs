//! What the start of a command costs.

use crate::bed::{Bed, Who};
use haft_ops::executor::sandbox::Level;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn report() {
    let plain = median(|| {
        Command::new("bash")
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .status()
            .unwrap();
    });
    println!("plain {plain:?}");
    for who in Who::all() {
        for level in [Level::Partial, Level::Full] {
            let Some(bed) = Bed::new(who, level) else {
                continue;
            };
            let planned = median(|| drop(bed.plan().unwrap()));
            let bytes = bed.plan().unwrap().to_bytes();
            let taken = median(|| {
                let mut child = bed.command(&["bash", "-c", "true"]).spawn().unwrap();
                child.stdin.take().unwrap().write_all(&bytes).unwrap();
                assert!(child.wait().unwrap().success());
            });
            println!(
                "{who:?} {level:?} {taken:?} ({:.1} x plain), of it the plan {planned:?} twice",
                taken.as_secs_f64() / plain.as_secs_f64()
            );
        }
    }
}

fn median(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..50)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[25]
}
