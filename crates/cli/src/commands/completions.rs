//! `haft completions`: a script for a shell.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;
use clap_complete::Shell;

/// Prints the script.
pub(crate) fn run(shell: Shell) -> Result<Exit, Failure> {
    // Into memory first: the generator panics when its writer fails, and a
    // closed pipe is no reason to.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "haft", &mut script);
    output::raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
