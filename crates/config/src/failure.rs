//! The error of this crate, with hints.

/// Error about settings, with hints.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Whether the settings or the machine are at fault.
    pub cause: Cause,
    /// FILE:LINE:COLUMN, which editors can open, for an error in a file.
    pub place: Option<String>,
    /// The problem and its cause, in one clause.
    pub message: String,
    /// Suggestions for the user.
    pub hints: Vec<String>,
}

/// Origin of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A flag, a variable or a file is wrong; nothing was tried.
    Settings,
    /// Something was tried and failed.
    Machine,
}

impl Failure {
    /// Creates an error about something that was tried and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            cause: Cause::Machine,
            place: None,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Creates an error about a flag, a variable or a file.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            cause: Cause::Settings,
            ..Self::failed(message)
        }
    }

    /// Creates an error at a position in a configuration file.
    pub(crate) fn at(place: &str, message: &str) -> Self {
        Self {
            place: Some(place.to_owned()),
            ..Self::usage(message)
        }
    }

    /// Adds a suggestion that is printed below the error.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// The place and the message.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}
