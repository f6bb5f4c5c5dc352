//! Reads a configuration file. Anything but a small regular UTF-8 file is an error, and
//! reading never blocks.

use crate::failure::Failure;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum size: configuration files are written by hand.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// How to treat a path that is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// Returns the text of a file; `None` if it does not exist. `shown` is its name in
/// messages.
pub(crate) fn read(path: &Path, shown: &str, links: Links) -> Result<Option<String>, Failure> {
    read_up_to(path, shown, links, MAX_BYTES)
}

/// Like [`read`], with another size limit in bytes.
#[expect(
    clippy::disallowed_methods,
    reason = "the configuration is read before a backend exists"
)]
pub(crate) fn read_up_to(
    path: &Path,
    shown: &str,
    links: Links,
    most: u64,
) -> Result<Option<String>, Failure> {
    let problem = |what: &str| Failure::at(shown, what);
    let cannot = |error: std::io::Error| problem(&format!("cannot read the file: {error}"));
    // Non-blocking, because opening a FIFO would wait forever.
    let mut flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    flags.set(rustix::fs::OFlags::NOFOLLOW, links == Links::Refused);
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(cannot(error)),
    };
    let kind = file.metadata().map_err(cannot)?;
    if kind.is_dir() {
        return Err(problem("is a folder, not a file"));
    }
    if !kind.is_file() {
        return Err(problem("is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > most {
        let most = most >> 20;
        return Err(problem(&format!(
            "is larger than {most}MB, which is too large for a configuration file"
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        })),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let line = 1 + error
                .as_bytes()
                .iter()
                .take(good)
                .filter(|byte| **byte == b'\n')
                .count();
            Err(problem(&format!("line {line} is not UTF-8 text")))
        }
    }
}
