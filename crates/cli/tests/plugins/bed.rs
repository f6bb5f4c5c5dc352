//! A home, a work folder and plugins, and haft in them.

use crate::session::Session;
pub(crate) use haft_testing::bed::Ended;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Start of every Python plugin. Plugins run in the work folder, where they log each
/// start and each line they receive.
const PYTHON: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, time
me = os.path.basename(sys.argv[0])
def note(file, text):
    try:
        with open(file + "-" + me, "a") as out: out.write(text + "\n")
    except OSError: pass
note("starts", str(os.getpid()))
def raw(text):
    sys.stdout.write(text)
    sys.stdout.flush()
def say(message): raw(json.dumps(message) + "\n")
def text(words, **more): say(dict({"content": [{"type": "text", "text": words}]}, **more))
def tool(name, properties={}, **more):
    schema = {"type": "object", "properties": properties}
    return dict({"name": name, "description": "Tests.", "parameters": schema}, **more)
def lines():
    for line in iter(sys.stdin.readline, ""):
        note("got", line.rstrip("\n"))
        yield json.loads(line)
def serve(definition, call):
    for message in lines():
        if message["type"] == "describe": say(definition)
        elif message["type"] == "call": call(message)
"#;

/// Folders of a test.
pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
}

/// A reply, and haft's notes on stderr.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) is_error: bool,
    pub(crate) text: String,
    pub(crate) beside: String,
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        let base =
            haft_testing::bed::Bed::new(env!("CARGO_BIN_EXE_haft"), env!("CARGO_TARGET_TMPDIR"));
        for folder in ["home/.config/haft", "outside", "plugins"] {
            std::fs::create_dir_all(base.path(folder)).unwrap();
        }
        Self { base }
    }

    /// A bed with these plugins in the user's configuration.
    pub(crate) fn with(plugins: &[(&str, &str)]) -> Self {
        let bed = Self::new();
        let mut all = Vec::new();
        for (name, body) in plugins {
            bed.python(name, body);
            all.push(bed.plugin(name));
        }
        bed.configure(&json!({ "tools": { "plugins": all } }));
        bed
    }

    /// Writes an executable file.
    pub(crate) fn program(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.write(below, content);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes a Python plugin of the user.
    pub(crate) fn python(&self, name: &str, body: &str) -> PathBuf {
        self.program(&format!("plugins/{name}"), format!("{PYTHON}{body}\n"))
    }

    /// Its entry in a configuration file.
    pub(crate) fn plugin(&self, name: &str) -> Value {
        json!({ "path": self.path("plugins").join(name) })
    }

    /// Writes the user's configuration.
    pub(crate) fn configure(&self, config: &Value) {
        self.write("home/.config/haft/haft.yaml", config.to_string());
    }

    /// Writes the project's configuration.
    pub(crate) fn project(&self, config: &Value) {
        self.write("work/haft.yaml", config.to_string());
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> Ended {
        let ran = self.haft(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:#?}");
        ran
    }

    /// Makes one call in a new process.
    #[track_caller]
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Answer {
        self.call_with(&[], tool, arguments)
    }

    #[track_caller]
    pub(crate) fn call_with(&self, flags: &[&str], tool: &str, arguments: &Value) -> Answer {
        let arguments = arguments.to_string();
        let ran = self.haft(&[flags, &["call", tool, arguments.as_str()]].concat());
        let is_answer = matches!(ran.code, Some(0 | 1));
        assert!(is_answer, "{tool}: {ran:#?}");
        Answer {
            is_error: ran.code == Some(1),
            text: ran.out.trim_end().to_owned(),
            beside: ran.err,
        }
    }

    /// The text of a call that must succeed.
    #[track_caller]
    pub(crate) fn reply_text(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        assert!(!answer.is_error, "{tool} {arguments}: {answer:#?}");
        answer.text
    }

    /// Tools that the model gets, and haft's notes.
    #[track_caller]
    pub(crate) fn tools(&self) -> (Vec<Value>, String) {
        let ran = self.done(&["tools", "--json"]);
        (serde_json::from_str(&ran.out).unwrap(), ran.err)
    }

    #[track_caller]
    pub(crate) fn names(&self) -> (Vec<String>, String) {
        let (tools, beside) = self.tools();
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
        (names.map(str::to_owned).collect(), beside)
    }

    /// A session over MCP.
    pub(crate) fn session(&self, flags: &[&str]) -> Session {
        Session::start(self.command(&[flags, &["mcp"]].concat()))
    }

    /// Lines that a plugin logged.
    pub(crate) fn noted(&self, what: &str, plugin: &str) -> Vec<String> {
        let noted = std::fs::read_to_string(self.work(&format!("{what}-{plugin}")));
        noted
            .unwrap_or_default()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The calls that a plugin got.
    pub(crate) fn calls(&self, plugin: &str) -> Vec<Value> {
        let got = self.noted("got", plugin);
        let parsed = got.iter().map(|line| serde_json::from_str(line).unwrap());
        parsed
            .filter(|message: &Value| message["type"] == "call")
            .collect()
    }

    /// Waits for a plugin to end, with everything haft started for it.
    #[track_caller]
    pub(crate) fn gone(&self, plugin: &str) {
        self.gone_within(plugin, Duration::from_secs(5));
    }

    #[track_caller]
    pub(crate) fn gone_within(&self, plugin: &str, time: Duration) {
        let name = format!("plugins/{plugin}");
        let gone = within(time, || {
            let all = alive(&self.path(""));
            !all.iter().any(|line| line.contains(&name))
        });
        assert!(gone, "{plugin} is still there");
    }

    /// Waits for every process started from this bed to end.
    #[track_caller]
    pub(crate) fn nobody_left(&self) {
        let mut found = Vec::new();
        let gone = within(Duration::from_secs(3), || {
            found = alive(&self.path(""));
            found.is_empty()
        });
        assert!(gone, "still alive: {found:#?}");
    }
}

/// Whether a condition becomes true in time.
pub(crate) fn within(time: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if is_true() {
            return true;
        }
        if begun.elapsed() > time {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Command lines of processes that have this folder in their command line or environment,
/// or run in it.
pub(crate) fn alive(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let place = entry.path();
        let bytes = |file: &str| std::fs::read(place.join(file)).unwrap_or_default();
        let line = bytes("cmdline");
        let needle = folder.as_os_str().as_encoded_bytes();
        let holds = |all: &[u8]| all.windows(needle.len()).any(|part| part == needle);
        let is_there =
            std::fs::read_link(place.join("cwd")).is_ok_and(|path| path.starts_with(folder));
        if !line.is_empty() && (is_there || holds(&line) || holds(&bytes("environ"))) {
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}
