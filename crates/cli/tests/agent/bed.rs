//! A work folder, a home beside it, a scripted model, and the command.

use crate::events;
pub(crate) use haft_testing::bed::Ended;
use haft_testing::model::{Script, Scripted};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Key that only the provider may receive.
pub(crate) const KEY: &str = "sk-canary-7f3a9b2c51";

pub(crate) struct Bed {
    base: haft_testing::bed::Bed,
    pub(crate) server: Scripted,
}

/// A run with `--json`.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) events: Vec<Value>,
    pub(crate) err: String,
}

impl Bed {
    /// With a model that speaks as most do.
    pub(crate) fn new(script: impl Script + 'static) -> Self {
        Self::of("openai-completions", script)
    }

    /// With a model that speaks this protocol.
    pub(crate) fn of(provider: &str, script: impl Script + 'static) -> Self {
        let bed = Self::bare(script);
        bed.user(&bed.model_lines(provider));
        bed
    }

    /// A bed whose model is not configured.
    pub(crate) fn bare(script: impl Script + 'static) -> Self {
        let base =
            haft_testing::bed::Bed::new(env!("CARGO_BIN_EXE_haft"), env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir(base.path("elsewhere")).unwrap();
        let server = Scripted::start(script);
        Self { base, server }
    }

    /// The settings that lead to the model.
    pub(crate) fn model_lines(&self, provider: &str) -> String {
        format!(
            "provider: {provider}\nmodel: scripted\nbase_url: \"{}\"\napi_key: ${{MODEL_KEY}}\n",
            self.server.url()
        )
    }

    /// Writes the usual settings of the user, and more.
    pub(crate) fn and(self, more: &str) -> Self {
        let text = self.model_lines("openai-completions") + more;
        self.user(&text);
        self
    }

    /// The settings of the project.
    pub(crate) fn project(&self, text: &str) {
        std::fs::write(self.work("haft.yaml"), text).unwrap();
    }

    pub(crate) fn elsewhere(&self) -> PathBuf {
        self.path("elsewhere")
    }

    pub(crate) fn read(&self, below: &str) -> String {
        std::fs::read_to_string(self.work(below)).unwrap_or_default()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.base.command(args);
        command.env("MODEL_KEY", KEY);
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Ended {
        Ended::of(&mut self.command(args))
    }

    /// Runs a command that must succeed and returns its output.
    pub(crate) fn says(&self, args: &[&str]) -> String {
        let ended = self.haft(args);
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended.out
    }

    /// The same with something on stdin.
    pub(crate) fn haft_reading(&self, args: &[&str], stdin: &[u8]) -> Ended {
        Ended::reading(&mut self.command(args), stdin)
    }

    /// `haft run --json`, whose events are as they should be.
    pub(crate) fn run(&self, more: &[&str]) -> Ran {
        self.watched(&[&["run", "Go on", "--json"], more].concat())
    }

    /// `haft resume --json`, the same way.
    pub(crate) fn resume(&self, more: &[&str]) -> Ran {
        self.watched(&[&["resume", "--json"], more].concat())
    }

    fn watched(&self, args: &[&str]) -> Ran {
        ran(self.haft(args))
    }

    /// The lines of the export of the newest session.
    pub(crate) fn exported(&self) -> Vec<Value> {
        lines(&self.says(&["sessions", "export", &self.newest()]))
    }

    /// The messages of the newest session.
    pub(crate) fn messages(&self) -> Vec<Value> {
        messages_of(&self.exported())
    }

    pub(crate) fn newest(&self) -> String {
        let listed = lines(&self.says(&["sessions", "list", "--json"]));
        listed[0]["id"].as_str().unwrap().to_owned()
    }

    /// The last request to the model.
    pub(crate) fn last_request(&self) -> Value {
        self.server.received().last().unwrap().json()
    }
}

impl std::ops::Deref for Bed {
    type Target = haft_testing::bed::Bed;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl Ran {
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        let is_it = |event: &&Value| event["type"] == kind;
        self.events.iter().filter(is_it).collect()
    }

    /// Reason for the end of the run.
    pub(crate) fn reason(&self) -> &str {
        self.events.last().unwrap()["reason"].as_str().unwrap()
    }

    /// Error message of the run.
    pub(crate) fn error(&self) -> &str {
        let errors = self.of("error");
        assert_eq!(errors.len(), 1, "{self:?}");
        errors[0]["message"].as_str().unwrap()
    }
}

/// A run from what it printed.
pub(crate) fn ran(ended: Ended) -> Ran {
    let events = lines(&ended.out);
    events::are_right(&events, &ended.err);
    Ran {
        code: ended.code,
        events,
        err: ended.err,
    }
}

/// Lines of JSON.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    text.lines().map(read).collect()
}

pub(crate) fn messages_of(exported: &[Value]) -> Vec<Value> {
    let messages = exported.iter().filter(|line| line["type"] == "message");
    messages.map(|line| line["message"].clone()).collect()
}

/// Every result of the messages, by the id of its call.
pub(crate) fn results(messages: &[Value]) -> Vec<(String, String)> {
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    let results = tools.flat_map(|message| message["results"].as_array().unwrap());
    let result = |result: &Value| {
        let content = result["content"].as_array().unwrap().iter();
        let text: String = content.filter_map(|block| block["text"].as_str()).collect();
        (result["call_id"].as_str().unwrap().to_owned(), text)
    };
    results.map(result).collect()
}

/// The ids of every call of the messages.
pub(crate) fn calls(messages: &[Value]) -> Vec<String> {
    let parts = messages
        .iter()
        .filter_map(|message| message["parts"].as_array())
        .flatten();
    let calls = parts.filter(|part| part["type"] == "call");
    calls
        .map(|call| call["id"].as_str().unwrap().to_owned())
        .collect()
}
