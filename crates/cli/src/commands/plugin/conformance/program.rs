//! Finds the program under test, and explains why it cannot be started.

use super::advice;
use super::report::Check;
use crate::env;
use haft::ops::executor::Refusal;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn unstartable(reason: String, fix: impl Into<String>) -> Check {
    Check::failed("start", "starts").detail(reason).fix(fix)
}

/// Finds the file that a word refers to, as a shell would: a path, or a name on PATH. The
/// error explains why it was not found.
pub(super) fn locate(word: &OsStr, current: &Path) -> Result<PathBuf, Check> {
    let shown = word.to_string_lossy();
    let here = current.join(word);
    let is_path = shown.contains('/');
    let found = match is_path {
        true => Some(here.clone()),
        false => {
            let mut files = env::read()
                .paths("PATH")
                .into_iter()
                .map(|folder| folder.join(word));
            files.find(|file| is_executable(file))
        }
    };
    Err(match found {
        Some(path) if is_executable(&path) => return Ok(path),
        Some(path) if path.is_dir() => unstartable(
            format!("{shown} is a folder"),
            "Name the program in this folder.",
        ),
        Some(path) if path.is_file() => unstartable(
            format!("{shown} is not executable"),
            format!(
                "Run chmod +x {shown}, or name its interpreter: haft plugin test python3 {shown}"
            ),
        ),
        None if here.is_file() => unstartable(
            format!("{shown} not found on PATH"),
            format!("Use ./ for the file in this folder: haft plugin test ./{shown}"),
        ),
        _ if shown.contains(' ') => unstartable(
            format!("program \"{shown}\" not found"),
            format!("Remove the quotes: haft plugin test {shown}"),
        ),
        _ => unstartable(
            format!("{shown} not found{}", if is_path { "" } else { " on PATH" }),
            "Check the name and the current folder. Write a path (./tool.py) or a name on PATH \
             (python3), followed by its arguments.",
        ),
    })
}

/// Explains why an executable file could not be started.
pub(super) fn not_started(shown: &str, refusal: Option<Refusal>, detail: &str) -> Check {
    let fix = match refusal {
        Some(Refusal::NotExecutable) => format!(
            "The first line must name the interpreter, such as `#!/usr/bin/env python3`, with \
             nothing before it. Or name the interpreter here: haft plugin test python3 {shown}"
        ),
        Some(Refusal::Missing) => "The file exists, but the interpreter in its first line (#!…) \
             does not, or that line ends in CRLF. Install the interpreter, or correct the line."
            .to_owned(),
        _ => advice::ENDED.to_owned(),
    };
    unstartable(format!("cannot run {shown}: {detail}"), fix)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
