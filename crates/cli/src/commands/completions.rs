//! `haft completions`: prints a shell completion script.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;
use clap_complete::Shell;

/// Prints the script.
pub(crate) fn run(shell: Shell) -> Result<Exit, Failure> {
    // Generated in memory first, because the generator panics if its writer fails, as it
    // does on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "haft", &mut script);
    output::raw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
