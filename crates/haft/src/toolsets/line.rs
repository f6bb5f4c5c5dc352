//! A command line, as the tools take it that run one with a shell.

use crate::Error;

/// Refuses what no shell can be given.
pub(super) fn check(command: &str) -> Result<(), Error> {
    if command.trim().is_empty() {
        return Err(Error::invalid("parameter \"command\" is empty"));
    }
    if command.contains('\0') {
        return Err(Error::invalid(
            "parameter \"command\" contains a NUL character",
        ));
    }
    Ok(())
}
