//! Tests of the real sandbox. This binary is test, supervisor and probe in one. Every
//! case runs a real command in a real sandbox, as root and as an ordinary user if the
//! machine allows both.
#![cfg_attr(
    target_os = "linux",
    expect(
        unsafe_code,
        reason = "system calls without a wrapper, which must be refused"
    )
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::disallowed_methods,
    reason = "all of this is test code, but the lints recognise only marked functions"
)]

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the sandbox requires Linux");
}

#[cfg(target_os = "linux")]
#[path = "sandbox/acts.rs"]
mod acts;
#[cfg(target_os = "linux")]
#[path = "sandbox/bed.rs"]
mod bed;
#[cfg(target_os = "linux")]
#[path = "sandbox/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
#[path = "sandbox/cost.rs"]
mod cost;

#[cfg(target_os = "linux")]
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--supervise", rest @ ..] => bed::supervise(rest),
        ["--rehearse", rest @ ..] => bed::rehearse(rest),
        ["--act", rest @ ..] => acts::act(rest),
        ["--cost"] => cost::report(),
        filter => cases::run(filter.iter().find(|word| !word.starts_with('-')).copied()),
    }
}
