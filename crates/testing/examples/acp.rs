//! Runs the table of cases against any agent of the Agent Client Protocol:
//! `cargo run -p haft-testing --example acp -- COMMAND [ARGUMENT…]`
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program"
)]

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        eprintln!("usage: acp COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let start = || {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    let folder = match std::env::current_dir() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("the current folder: {error}");
            return ExitCode::from(2);
        }
    };
    let failures = haft_testing::acp::conformance(&start, &folder);
    for failure in &failures {
        println!("FAIL {failure}");
    }
    println!("{} failed", failures.len());
    ExitCode::from(u8::from(!failures.is_empty()))
}
