//! Checks command lines for tools that run a shell.

use crate::Error;

/// Refuses commands that no shell can run.
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
