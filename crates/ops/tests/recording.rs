//! Tests of recording what commands change: every case runs a real command in a real
//! sandbox, undoes it, and compares the tree with what it was. This binary is test, haft,
//! supervisor and the command's program in one.
#![cfg_attr(
    target_os = "linux",
    expect(
        unsafe_code,
        reason = "system calls without a wrapper, which are recorded"
    )
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "all of this is test code, but the lints recognise only marked functions"
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: recording requires Linux");
}

#[cfg(target_os = "linux")]
#[path = "recording/acts.rs"]
mod acts;
#[cfg(target_os = "linux")]
#[path = "recording/bed.rs"]
mod bed;
#[cfg(target_os = "linux")]
#[path = "recording/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
#[path = "recording/cost.rs"]
mod cost;
#[cfg(target_os = "linux")]
#[path = "recording/kills.rs"]
mod kills;
#[cfg(target_os = "linux")]
#[path = "recording/scripts.rs"]
mod scripts;
#[cfg(target_os = "linux")]
#[path = "recording/tree.rs"]
mod tree;

#[cfg(target_os = "linux")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--supervise"] => {
            let _ = haft_ops::executor::supervise();
        }
        ["--rehearse", rest @ ..] => bed::rehearse(rest),
        ["--act", rest @ ..] => acts::act(rest),
        ["--victim", folder] => kills::victim(folder),
        ["--cost", rest @ ..] => cost::report(rest.first().copied()),
        ["--try", level, scripts @ ..] => {
            let level = if *level == "full" {
                haft_ops::executor::sandbox::Level::Full
            } else {
                haft_ops::executor::sandbox::Level::Partial
            };
            let bed = bed::Bed::new(Some(level)).unwrap();
            scripts::prepare(&bed);
            for script in scripts {
                println!("{script}");
                let (o, c) = bed.run(script);
                println!("{o}{c:?}");
            }
        }
        filter => cases::run(filter),
    }
}
