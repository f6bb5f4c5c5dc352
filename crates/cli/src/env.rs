//! What the process was started with: variables, folders, the current place.
//! No other module looks at the environment.

#![expect(
    clippy::disallowed_methods,
    reason = "the one module of the command line that reads the environment"
)]

use crate::exit::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

/// A variable. One that is empty counts as not set, as people unset them so.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable as text.
pub(crate) fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}

/// The folder that haft was started in.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current folder cannot be used: {error}")))
}

/// The person's folders. None is created here.
pub(crate) fn folders() -> haft::Folders {
    let home = absolute("HOME");
    let below_home = |below: &str| home.as_ref().map(|home| home.join(below));
    haft::Folders {
        config: absolute("XDG_CONFIG_HOME")
            .or_else(|| below_home(".config"))
            .map(|folder| folder.join("haft")),
        state: absolute("XDG_STATE_HOME")
            .or_else(|| below_home(".local/state"))
            .map(|folder| folder.join("haft")),
        home,
    }
}

/// The XDG specification wants relative values ignored; for `HOME` it is as wise.
fn absolute(name: &str) -> Option<PathBuf> {
    variable(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Whether colour is welcome where a terminal could show it.
pub(crate) fn colour_welcome() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb")
}
