//! `haft help`: the same text as `--help`, and the flags that every command takes.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the help of a command, of the shared flags (`flags`), or of haft itself.
pub(crate) fn run(command: &[String]) -> Result<Exit, Failure> {
    if command == ["flags"] {
        output::text(&args::flags_help())?;
        return Ok(Exit::Done);
    }
    let words = command.iter().map(String::as_str);
    match args::parse(["haft"].into_iter().chain(words).chain(["--help"])) {
        Err(help) => Ok(output::usage(&help)),
        // After a `--`, `--help` is an ordinary argument. Help must not run the command.
        Ok(_) => Err(Failure::usage("`haft help` expects the name of a command")),
    }
}
