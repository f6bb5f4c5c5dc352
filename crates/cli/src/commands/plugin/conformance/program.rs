//! The plugin under test: finds and starts the program.

use super::advice;
use super::report::Check;
use crate::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// The program to start.
pub(super) struct Program {
    /// Words of the command line.
    pub(super) words: Vec<OsString>,
    path: PathBuf,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

/// Reason why the program cannot be started, and what to do.
pub(super) struct Unstartable {
    reason: String,
    fix: String,
}

impl Unstartable {
    pub(super) fn check(self) -> Check {
        Check::failed("start", "starts")
            .detail(self.reason)
            .fix(self.fix)
    }
}

impl Program {
    /// Finds the program as a shell would: a path, or a name on PATH.
    pub(super) fn find(
        words: &[OsString],
        current: &Path,
        folder: PathBuf,
        granted: &[String],
    ) -> Result<Self, Unstartable> {
        let first = words.first().map(OsString::as_os_str).unwrap_or_default();
        let path = locate(first, current)?;
        Ok(Self {
            words: words.to_vec(),
            path,
            folder,
            environment: env::for_programs(granted),
        })
    }

    /// Starts the program in a new process group.
    #[expect(
        clippy::disallowed_methods,
        reason = "the user names the program on the command line"
    )]
    pub(super) fn start(&self) -> Result<Child, Unstartable> {
        Command::new(&self.path)
            .args(self.words.iter().skip(1))
            .current_dir(&self.folder)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.unstartable(&error))
    }

    fn unstartable(&self, error: &std::io::Error) -> Unstartable {
        let shown = self.path.display();
        // "Exec format error": a script without `#!`.
        let is_format_error = error.raw_os_error() == Some(8);
        let fix = if is_format_error {
            format!(
                "The first line must name the interpreter, such as `#!/usr/bin/env python3`, with \
                 nothing before it. Or name the interpreter here: haft plugin test python3 {shown}"
            )
        } else if error.kind() == std::io::ErrorKind::NotFound {
            "The file exists, but the interpreter in its first line (#!…) does not, or that line \
             ends in CRLF. Install the interpreter, or correct the line."
                .to_owned()
        } else {
            advice::ENDED.to_owned()
        };
        Unstartable {
            reason: format!("cannot run {shown}: {error}"),
            fix,
        }
    }
}

/// Finds the file that a word refers to.
fn locate(word: &OsStr, current: &Path) -> Result<PathBuf, Unstartable> {
    let shown = word.to_string_lossy();
    let here = current.join(word);
    let is_path = shown.contains('/');
    let on_path = || {
        let mut folders = env::paths("PATH").into_iter();
        folders.find_map(|folder| Some(folder.join(word)).filter(|path| is_executable(path)))
    };
    let found = if is_path {
        Some(here.clone())
    } else {
        on_path()
    };
    let unstartable = |reason: String, fix: String| Err(Unstartable { reason, fix });
    match found {
        Some(path) if is_executable(&path) => Ok(path),
        Some(path) if path.is_dir() => unstartable(
            format!("{shown} is a folder"),
            "Name the program in this folder.".to_owned(),
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
             (python3), followed by its arguments."
                .to_owned(),
        ),
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
