//! A scratch folder with a home, plugins in it, and the command.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Folders of one test.
pub(crate) struct Bed {
    root: TempDir,
}

/// Exit code and output of the command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir_all(root.path().join("work")).unwrap();
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        Self { root }
    }

    pub(crate) fn work(&self, below: &str) -> PathBuf {
        self.root.path().join("work").join(below)
    }

    pub(crate) fn home(&self, below: &str) -> PathBuf {
        self.root.path().join("home").join(below)
    }

    pub(crate) fn file(&self, below: &str, content: &str) {
        std::fs::write(self.work(below), content).unwrap();
    }

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

    /// Tests a Python plugin, with short timeouts.
    pub(crate) fn test(&self, program: &str) -> Ended {
        self.file("tool.py", program);
        self.haft(&["plugin", "test", "--timeout", "2", "python3", "tool.py"])
    }
}

impl Ended {
    /// The verdict and the text after it.
    pub(crate) fn verdict(&self) -> &str {
        let at = self
            .out
            .rfind("\ngood: ")
            .or_else(|| self.out.rfind("\nbad: "));
        self.out.get(at.unwrap() + 1..).unwrap()
    }

    /// Checks that the plugin is good, by the first line.
    pub(crate) fn is_good(&self, words: &str) {
        assert_eq!(
            (self.code, self.err.as_str()),
            (Some(0), ""),
            "{}",
            self.out
        );
        assert_eq!(self.verdict().lines().next(), Some(words), "{}", self.out);
    }

    /// Checks that the plugin is bad, and that the verdict contains these words.
    pub(crate) fn is_bad(&self, words: &[&str]) {
        assert_eq!(
            (self.code, self.err.as_str()),
            (Some(1), ""),
            "{}",
            self.out
        );
        // Long lines are wrapped.
        let verdict = self
            .verdict()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(verdict.starts_with("bad: "), "{}", self.out);
        for words in words {
            assert!(verdict.contains(words), "{words}\n\n{}", self.out);
        }
    }

    /// Checks that a line is printed.
    pub(crate) fn has(&self, words: &str) {
        assert!(self.out.contains(words), "{words}\n\n{}", self.out);
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
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

/// A Python plugin with these lines as message handler: `message` is the request, and `say`
/// answers.
pub(crate) fn python(answers: &str) -> String {
    let answers: String = answers
        .lines()
        .map(|line| format!("    {line}\n"))
        .collect();
    format!(
        r#"
import json, sys, os, time
DEFINITION = {{"name": "shout", "description": "Turn a text into upper case.", "parameters": {{
    "type": "object", "required": ["text"],
    "properties": {{"text": {{"type": "string", "description": "The text"}}}}}}}}
def say(message):
    print(json.dumps(message), flush=True)
def reply(text, error=False):
    return {{"content": [{{"type": "text", "text": text}}], "error": error}}
def shout(message):
    text = message.get("params", {{}}).get("text")
    return reply(text.upper()) if isinstance(text, str) else reply("text must be a string", True)
for line in sys.stdin:
    if not line.strip():
        continue
    try:
        message = json.loads(line)
    except ValueError as problem:
        say(reply(str(problem), True))
        continue
{answers}"#
    )
}

/// Message handling of a working plugin.
pub(crate) const GOOD: &str = "\
if message['type'] == 'describe': say(DEFINITION)
elif message['type'] == 'call': say(shout(message))
else: say(reply('unknown type', True))
";
