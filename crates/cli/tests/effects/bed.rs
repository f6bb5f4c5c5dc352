//! A work folder, a home beside it, a scripted model, and the command.

use haft_testing::bed::Ended;
use haft_testing::model::{Script, Scripted};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
    pub(crate) server: Option<Scripted>,
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

/// Everything in a folder: type, mode, and content or target, by path.
pub(crate) type Tree = BTreeMap<String, (char, u32, Vec<u8>)>;

impl Bed {
    pub(crate) fn new() -> Self {
        Self {
            base: haft_testing::bed::Bed::new(
                env!("CARGO_BIN_EXE_haft"),
                env!("CARGO_TARGET_TMPDIR"),
            ),
            server: None,
        }
    }

    /// With a model that follows a script, and more settings.
    pub(crate) fn with_model(script: impl Script + 'static, more: &str) -> Self {
        Self::new().and_model(script, more)
    }

    /// Adds a model that follows a script, and more settings.
    pub(crate) fn and_model(self, script: impl Script + 'static, more: &str) -> Self {
        let server = Scripted::start(script);
        let url = server.url();
        let bed = Self {
            server: Some(server),
            ..self
        };
        bed.user(&format!(
            "provider: openai-completions\nmodel: scripted\nbase_url: \"{url}\"\napi_key: k\n{more}"
        ));
        bed
    }

    pub(crate) fn put(&self, below: &str, content: impl AsRef<[u8]>) {
        self.write(&format!("work/{below}"), content);
    }

    pub(crate) fn read(&self, below: &str) -> Option<String> {
        let bytes = std::fs::read(self.work(below)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `haft call TOOL ARGUMENTS --json` without a terminal.
    pub(crate) fn call_with(&self, more: &[&str], tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let args = [&["call", tool, &arguments, "--json"], more].concat();
        let mut command = self.command(&args);
        command.stdin(Stdio::null());
        let ended = Ended::of(&mut command);
        serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"))
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.call_with(&[], tool, arguments)
    }

    /// Runs a command line, which must succeed.
    pub(crate) fn bash(&self, line: &str) -> Value {
        let reply = self.call("bash", &json!({ "command": line }));
        assert_eq!(reply["is_error"], false, "{line}: {reply}");
        reply
    }

    /// The sets that `haft changes` shows.
    pub(crate) fn changes(&self, more: &[&str]) -> Vec<Value> {
        lines(&self.says(&[&["changes", "--json"], more].concat()))
    }

    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        add(&self.work(""), &self.work(""), &mut tree);
        tree
    }
}

fn add(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().to_string_lossy();
        let (kind, content) = if about.is_dir() {
            add(root, &path, tree);
            ('d', Vec::new())
        } else if about.is_symlink() {
            let target = std::fs::read_link(&path).unwrap();
            ('l', target.into_os_string().into_encoded_bytes())
        } else {
            ('f', std::fs::read(&path).unwrap())
        };
        let mode = if kind == 'l' {
            0
        } else {
            about.mode() & 0o7777
        };
        tree.insert(name.into_owned(), (kind, mode, content));
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn within(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Parses JSON lines.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    text.lines().map(parse).collect()
}

/// The text of a reply.
pub(crate) fn text(reply: &Value) -> String {
    let blocks = reply["content"].as_array().unwrap().iter();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// The change of a path in a set.
pub(crate) fn change<'a>(set: &'a Value, path: &str) -> &'a Value {
    let mut changes = set["changes"].as_array().unwrap().iter();
    let found = changes.find(|change| change["path"] == path);
    found.unwrap_or_else(|| panic!("no change of {path}: {set}"))
}
