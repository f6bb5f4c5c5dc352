//! `haft plugin`: tests, creates and inspects plugins.

mod conformance;
mod log;
mod new;

use crate::args::Shared;
use crate::args::plugin::Plugin;
use crate::exit::{Exit, Failure};

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Plugin) -> Result<Exit, Failure> {
    match command {
        Plugin::Test(args) => conformance::run(shared, args),
        Plugin::New(args) => new::run(shared, args),
        Plugin::Log(args) => log::run(shared, args),
    }
}
