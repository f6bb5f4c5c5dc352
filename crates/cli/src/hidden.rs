//! The commands that no person types: haft starts itself with them.

use haft::ops::executor::sandbox::{self, Helper};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Watches over a command that is run.
const SUPERVISE: &str = "__supervise";

/// Tries what this machine can confine, in a process that is thrown away.
const REHEARSE: &str = "__rehearse";

/// Does what a hidden command says, if that is what haft was started with.
pub(crate) fn run() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let first = words.next()?;
    if first == SUPERVISE {
        #[cfg(target_os = "linux")]
        return Some(haft::ops::executor::supervise());
    }
    if first == REHEARSE {
        let words: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        // A reader that is gone has no use for the answer.
        let _ = crate::output::raw(&format!("{}\n", sandbox::rehearse(&helper()?, &words)));
        return Some(ExitCode::SUCCESS);
    }
    None
}

/// How a supervisor is started.
pub(crate) fn supervisor() -> Option<(PathBuf, Vec<OsString>)> {
    Some((myself()?, vec![SUPERVISE.into()]))
}

/// How a trial is started.
pub(crate) fn helper() -> Option<Helper> {
    Some(Helper {
        program: myself()?,
        args: vec![REHEARSE.into()],
        ceiling: Some(sandbox::Level::Full),
    })
}

/// This very binary, also when its file was replaced meanwhile: a supervisor of
/// another version would not understand its order.
fn myself() -> Option<PathBuf> {
    if cfg!(target_os = "linux") {
        Some(PathBuf::from("/proc/self/exe"))
    } else {
        std::env::current_exe().ok()
    }
}
