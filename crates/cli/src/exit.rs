//! Exit codes, and the error that a failed command prints.

use haft_config::Cause;
use std::process::ExitCode;

/// Exit codes that scripts may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command succeeded.
    Done,
    /// The command was carried out and failed.
    Failed,
    /// The command line or the configuration is wrong; nothing was tried.
    Usage,
    /// A call waits for the user's approval.
    Waiting,
    /// A signal ended the command; the field is its number.
    Signal(u8),
    /// The exit code of a command that a tool ran.
    Of(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            // As shells report a process that a signal killed.
            Exit::Signal(number) => 128_u8.saturating_add(number),
            Exit::Of(code) => code,
        })
    }
}

/// Error of a command, with hints.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// For an error in a file it starts with FILE:LINE:COLUMN, which editors can open.
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// Creates an error with exit code 1: the command was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            message: format!("error: {}", message.into()),
            hints: Vec::new(),
        }
    }

    /// Creates an error with exit code 2: the command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            ..Self::failed(message)
        }
    }

    /// Creates an error at a position in a configuration file.
    pub(crate) fn at(place: &str, message: &str) -> Self {
        Self {
            message: format!("{place}: {message}"),
            ..Self::usage("")
        }
    }

    /// Adds a suggestion that is printed below the error.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<haft_config::Failure> for Failure {
    fn from(failure: haft_config::Failure) -> Self {
        let mut printed = match (&failure.place, failure.cause) {
            (Some(place), _) => Self::at(place, &failure.message),
            (None, Cause::Settings) => Self::usage(failure.message),
            (None, Cause::Machine) => Self::failed(failure.message),
        };
        printed.hints = failure.hints;
        printed
    }
}
