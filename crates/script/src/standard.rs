//! The worker process: its standard streams and its exit.

use std::fs::File;
use std::io::{self, BufReader};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::exit;
use crate::worker::worker;

/// Time limit for exiting. Exiting waits for locks of C streams, and a module that is stuck
/// reading from a program holds one.
const LEAVING: Duration = Duration::from_millis(500);

/// Serves one module on standard input and output until the input ends. This is all that
/// the process of a module does; see [`worker`] for its answers.
///
/// The two streams are moved away from their usual descriptors, so that programs which the
/// module starts cannot read or write the protocol: for them, input is empty and output
/// goes to standard error.
pub fn serve() -> ExitCode {
    let code = match take_streams() {
        Ok((input, output)) => worker(BufReader::with_capacity(64 << 10, input), output),
        Err(error) => {
            crate::shared::note(&format!(
                "standard input and output cannot be used: {error}"
            ));
            ExitCode::from(exit::FAULT)
        }
    };
    std::thread::spawn(|| {
        std::thread::sleep(LEAVING);
        let _ = kill_process(getpid(), Signal::KILL);
    });
    code
}

fn take_streams() -> io::Result<(File, File)> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    // A pipe without a writer is at its end at once.
    let (empty, _) = rustix::pipe::pipe()?;
    rustix::stdio::dup2_stdin(empty)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((File::from(input), File::from(output)))
}
