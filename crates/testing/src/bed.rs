//! Folders for tests of a program: a work folder, a home folder beside it, and the program
//! started between them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A temporary folder that contains `work` and `home`, and the program under test.
#[derive(Debug)]
pub struct Bed {
    root: TempDir,
    program: PathBuf,
}

/// Exit code, output and run time of a program.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Time from start to end.
    pub took: Duration,
}

impl Bed {
    /// Creates the folders below `temp`, which must not be a shared temp folder: the
    /// sandbox covers those. `program` is the binary that [`Bed::command`] starts.
    #[must_use]
    pub fn new(program: impl AsRef<Path>, temp: impl AsRef<Path>) -> Self {
        let root = tempfile::tempdir_in(temp).unwrap();
        for folder in ["work", "home"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self {
            root,
            program: program.as_ref().to_owned(),
        }
    }

    /// Returns a path anywhere in the bed.
    #[must_use]
    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Returns a path in the work folder.
    #[must_use]
    pub fn work(&self, below: &str) -> PathBuf {
        self.path("work").join(below)
    }

    /// Returns a path in the home folder.
    #[must_use]
    pub fn home(&self, below: &str) -> PathBuf {
        self.path("home").join(below)
    }

    /// Returns a path in haft's state folder.
    #[must_use]
    pub fn state(&self, below: &str) -> PathBuf {
        self.home(".local/state/haft").join(below)
    }

    /// Writes a file anywhere in the bed, with its folders.
    pub fn write(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Writes the user's haft.yaml.
    pub fn user(&self, text: &str) {
        self.write("home/.config/haft/haft.yaml", text);
    }

    /// Returns the program in the work folder, with an empty standard input and no more of
    /// the environment than `HOME`, `PATH` and the limit of git's search for a repository.
    #[must_use]
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.program, args)
    }

    /// The same with another program.
    #[must_use]
    pub fn command_of(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .args(args)
            .current_dir(self.work(""))
            .env_clear()
            .env("HOME", self.home(""))
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            // The bed may lie inside a checkout, which no git command of a test may touch.
            .env("GIT_CEILING_DIRECTORIES", self.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn haft(&self, args: &[&str]) -> Ended {
        Ended::of(&mut self.command(args))
    }

    /// Runs a command that must succeed and returns its output.
    #[track_caller]
    pub fn says(&self, args: &[&str]) -> String {
        let ended = self.haft(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:#?}");
        ended.out
    }
}

impl Ended {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Self {
        let begun = Instant::now();
        Self::new(command.output().unwrap(), begun.elapsed())
    }

    /// Runs a command to its end with this on standard input, which it need not read.
    pub fn reading(command: &mut Command, input: &[u8]) -> Self {
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(input);
        Self::new(child.wait_with_output().unwrap(), begun.elapsed())
    }

    fn new(output: Output, took: Duration) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            took,
        }
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self::new(output, Duration::ZERO)
    }
}
