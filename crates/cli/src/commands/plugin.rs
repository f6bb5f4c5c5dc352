//! `haft plugin`: tests, creates and inspects plugins.

mod conformance;
mod log;
mod new;

use crate::args::Shared;
use crate::args::plugin::Plugin;
use crate::exit::{Exit, Failure};
use haft::ops::text::spelling::closest;

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Plugin) -> Result<Exit, Failure> {
    match command {
        Plugin::Test(args) => conformance::run(shared, args),
        Plugin::New(args) => new::run(shared, args),
        Plugin::Log(args) => log::run(shared, args),
    }
}

/// Returns a suggestion if one of the names is similar.
fn did_you_mean(name: &str, names: &[String]) -> String {
    let near = closest(name, names.iter().cloned(), 1);
    let suggestion = near
        .first()
        .map(|near| format!("; did you mean \"{near}\"?"));
    suggestion.unwrap_or_default()
}
