//! A scratch folder with a home, and the command in it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Folders of one test: `work` is the current folder, `home` the home folder.
pub(crate) struct Scratch {
    root: TempDir,
}

/// Exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(root.path().join("work")).unwrap();
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        Self { root }
    }

    /// A path in the work folder.
    pub(crate) fn work(&self, below: &str) -> PathBuf {
        self.root.path().join("work").join(below)
    }

    /// A path in the home folder.
    pub(crate) fn home(&self, below: &str) -> PathBuf {
        self.root.path().join("home").join(below)
    }

    /// A file in the work folder.
    pub(crate) fn file(&self, below: &str, content: impl AsRef<[u8]>) {
        put(&self.work(below), content.as_ref());
    }

    /// Writes the user's configuration.
    pub(crate) fn user(&self, content: &str) {
        put(&self.home(".config/haft/haft.yaml"), content.as_bytes());
    }

    /// The command, without the environment of the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haft"));
        command
            .args(args)
            .current_dir(self.work(""))
            .env_clear()
            .env("HOME", self.home(""))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Ended {
        self.command(args).output().unwrap().into()
    }

    pub(crate) fn haft_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ended {
        let mut command = self.command(args);
        command.envs(variables.iter().copied());
        command.output().unwrap().into()
    }

    pub(crate) fn haft_reading(&self, stdin: &[u8], args: &[&str]) -> Ended {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        child.wait_with_output().unwrap().into()
    }

    /// Returns one value of `haft config show --json`, and its source.
    pub(crate) fn shown(
        &self,
        key: &str,
        variables: &[(&str, &str)],
        flags: &[&str],
    ) -> (serde_json::Value, String) {
        let mut args = vec!["config", "show", "--json"];
        args.extend(flags);
        let ended = self.haft_with(variables, &args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let all: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        (
            all[key]["value"].clone(),
            all[key]["from"].as_str().unwrap().to_owned(),
        )
    }
}

fn put(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
