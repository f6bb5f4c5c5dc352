//! How a command ends: an exit code, and words for the person if it failed.

use std::process::ExitCode;

/// The exit codes that scripts may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked.
    Done,
    /// It tried and failed.
    Failed,
    /// The command line or the configuration is wrong; nothing was tried.
    Usage,
    /// Somebody has to say yes first.
    Waiting,
    /// A signal of this number ended it.
    Signal(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Waiting => 3,
            // What a shell reports for a process that died of the signal.
            Exit::Signal(number) => 128_u8.saturating_add(number),
        })
    }
}

/// Why a command did not do what was asked, and what may help.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// For a mistake in a file it begins with the place, as editors like it.
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Failure {
    /// Something went wrong on the way.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failed,
            message: format!("error: {}", message.into()),
            hints: Vec::new(),
        }
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            ..Self::failed(message)
        }
    }

    /// A configuration file is wrong at a place of it.
    pub(crate) fn at(place: &str, message: &str) -> Self {
        Self {
            message: format!("{place}: {message}"),
            ..Self::usage("")
        }
    }

    /// With something to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}
