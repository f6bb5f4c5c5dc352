//! Hidden commands with which the program starts itself again: to supervise a command, or
//! to find out which confinement the machine supports.

use super::Local;
use super::sandbox::{self, Helper, Level};
#[cfg(target_os = "linux")]
use super::supervise;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const SUPERVISE: &str = "__supervise";
const REHEARSE: &str = "__rehearse";

/// Runs the hidden command if the program's arguments are one. Must be called first in
/// `main`, because every command waits for it and there must not be a second thread.
pub fn hidden(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut words = arguments.into_iter().skip(1);
    let first = words.next()?;
    #[cfg(target_os = "linux")]
    if first == SUPERVISE {
        return Some(supervise());
    }
    if first == REHEARSE {
        let words: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let answer = sandbox::rehearse(&Itself::new().helper(), &words);
        // If the reader is gone, the result is not needed.
        let _ = std::io::stdout().write_all(format!("{answer}\n").as_bytes());
        return Some(ExitCode::SUCCESS);
    }
    None
}

/// The running program, which calls [`hidden`] when it starts.
#[derive(Debug, Clone)]
pub struct Itself {
    program: PathBuf,
}

impl Default for Itself {
    fn default() -> Self {
        Self::new()
    }
}

impl Itself {
    /// Uses this binary even if its file was replaced meanwhile, because a supervisor of
    /// another version would not understand its orders.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        return Self::at(PathBuf::from("/proc/self/exe"));
        #[cfg(not(target_os = "linux"))]
        return Self::at(std::env::current_exe().unwrap_or_default());
    }

    /// Uses another binary that does the same.
    #[must_use]
    pub fn at(program: PathBuf) -> Self {
        Self { program }
    }

    /// Returns an executor that uses this binary as its supervisor.
    #[must_use]
    pub fn executor(&self) -> Local {
        Local::new(self.program.clone(), vec![SUPERVISE.into()])
    }

    /// Returns the command that tests the machine's confinement.
    #[must_use]
    pub fn helper(&self) -> Helper {
        Helper {
            program: self.program.clone(),
            args: vec![REHEARSE.into()],
            ceiling: Some(Level::Full),
        }
    }
}
