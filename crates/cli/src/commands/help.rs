//! `haft help`: what `--help` says, for those who ask the other way round.

use crate::args;
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the help of a command; without a name, that of haft.
pub(crate) fn run(command: &[String]) -> Result<Exit, Failure> {
    let words = command.iter().map(String::as_str);
    match args::parse(["haft"].into_iter().chain(words).chain(["--help"])) {
        Err(said) => Ok(output::usage(&said)),
        // `--` among the words makes text of the flag, and help runs nothing.
        Ok(_) => Err(Failure::usage("haft help takes the name of a command")),
    }
}
