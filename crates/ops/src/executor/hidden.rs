//! What a program that runs commands does when it starts itself again: it
//! watches over a command, or tries what the machine can confine.

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

/// Does what a hidden command says, if the arguments of the program are one.
/// To be asked first thing in `main`: every command waits for it, and there must
/// be no second thread.
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
        // A reader that is gone has no use for the answer.
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
    /// This very binary, also when its file was replaced meanwhile: a supervisor
    /// of another version would not understand its order.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        return Self::at(PathBuf::from("/proc/self/exe"));
        #[cfg(not(target_os = "linux"))]
        return Self::at(std::env::current_exe().unwrap_or_default());
    }

    /// Another binary that does the same.
    #[must_use]
    pub fn at(program: PathBuf) -> Self {
        Self { program }
    }

    /// An executor whose supervisors it is.
    #[must_use]
    pub fn executor(&self) -> Local {
        Local::new(self.program.clone(), vec![SUPERVISE.into()])
    }

    /// How trials are started.
    #[must_use]
    pub fn helper(&self) -> Helper {
        Helper {
            program: self.program.clone(),
            args: vec![REHEARSE.into()],
            ceiling: Some(Level::Full),
        }
    }
}
