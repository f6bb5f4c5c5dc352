//! File errors: the wording that the interpreters understand, and the path each is about.

use crate::host::Refused;
use bashkit::Error;
use haft::guest::Refusal;
use std::error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// An error that remembers its path. The path is not part of the message, because most
/// commands print it themselves.
#[derive(Debug)]
struct Fault {
    path: PathBuf,
    message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Fault {}

/// Adds the path to an error.
pub(super) fn at(path: &Path) -> impl Fn(Error) -> Error + '_ {
    move |error| match error {
        Error::Io(error) => {
            let fault = Fault {
                path: path.to_owned(),
                message: error.to_string(),
            };
            io::Error::new(error.kind(), fault).into()
        }
        other => other,
    }
}

/// Describes an error the way commands do: the path if it is known, then the reason.
pub(crate) fn describe(error: &io::Error) -> String {
    let message = error.to_string();
    let reason = match (error.kind(), message.as_str()) {
        (ErrorKind::NotFound, _) => "No such file or directory",
        (ErrorKind::NotADirectory, _) => "Not a directory",
        (ErrorKind::AlreadyExists, _) => "File exists",
        (_, "is a directory") => "Is a directory",
        _ => &message,
    };
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Fault { path, .. }) => format!("{}: {reason}", path.display()),
        None => reason.to_owned(),
    }
}

pub(super) fn not_found() -> Error {
    io::Error::new(ErrorKind::NotFound, "file not found").into()
}

pub(super) fn is_a_directory() -> Error {
    io::Error::other("is a directory").into()
}

pub(super) fn not_a_directory() -> Error {
    io::Error::new(ErrorKind::NotADirectory, "not a directory").into()
}

/// Turns a refusal of the session into an error that the interpreters understand.
pub(super) fn error(refused: Refused) -> Error {
    match refused.why {
        Refusal::NotFound => not_found(),
        Refusal::NotAllowed => io::Error::new(ErrorKind::PermissionDenied, refused.message).into(),
        Refusal::IsDirectory => is_a_directory(),
        Refusal::NotADirectory => not_a_directory(),
        _ => io::Error::other(refused.message).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_the_path_and_the_reason() {
        let described = |error: Error| match error {
            Error::Io(error) => describe(&error),
            other => other.to_string(),
        };
        assert_eq!(described(not_found()), "No such file or directory");
        let error = at(Path::new("/a/b"))(at(Path::new("/a"))(not_found()));
        assert_eq!(error.to_string(), "io error: file not found");
        assert_eq!(described(error), "/a/b: No such file or directory");
        let error = at(Path::new("/d"))(is_a_directory());
        assert_eq!(described(error), "/d: Is a directory");
        let error = at(Path::new("/f"))(io::Error::other("file too large").into());
        assert_eq!(described(error), "/f: file too large");
    }
}
