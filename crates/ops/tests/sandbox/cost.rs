//! Measures the cost of starting a command. The variants take turns, so that other load
//! on the machine affects all of them equally.

use crate::bed::{Bed, Who};
use haft_ops::executor::sandbox::{Counting, Level};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;

pub(crate) fn report() {
    let mut beds = Vec::new();
    for who in Who::all() {
        for level in [Level::Partial, Level::Full] {
            beds.extend(Bed::new(who, level));
            if who == Who::Root {
                let mut counted = Bed::new(who, level);
                if let Some(bed) = &mut counted {
                    bed.limits.counting = Counting::Always;
                }
                beds.extend(counted);
            }
        }
    }
    let mut plain = Vec::new();
    let mut planned = Vec::new();
    let mut taken: Vec<Vec<Duration>> = beds.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        plain.push(time(|| {
            Command::new("bash")
                .args(["-c", "true"])
                .stdin(Stdio::null())
                .status()
                .unwrap();
        }));
        for (bed, taken) in beds.iter().zip(&mut taken) {
            planned.push(time(|| drop(bed.plan().unwrap())));
            let bytes = bed.plan().unwrap().to_bytes();
            let mut command = bed.command(&["bash", "-c", "true"]);
            taken.push(time(|| {
                let mut child = command.spawn().unwrap();
                child.stdin.take().unwrap().write_all(&bytes).unwrap();
                assert!(child.wait().unwrap().success());
            }));
        }
    }
    let (median, least) = of(&mut plain);
    println!("plain: p50 {median:?}, least {least:?}");
    for (bed, taken) in beds.iter().zip(&mut taken) {
        let (p50, min) = of(taken);
        println!(
            "{:?} {:?} {:?}: p50 {p50:?} ({:.1} x), least {min:?} ({:.1} x)",
            bed.who,
            bed.strength.level,
            bed.limits.counting,
            p50.as_secs_f64() / median.as_secs_f64(),
            min.as_secs_f64() / least.as_secs_f64()
        );
    }
    println!("plan: p50 {:?}", of(&mut planned).0);
}

fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn of(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[0])
}
