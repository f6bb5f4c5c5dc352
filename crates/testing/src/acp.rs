//! A client of the Agent Client Protocol that drives an agent over standard input and output,
//! and a table of cases that any agent has to pass: see [`conformance`].

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout of each step, generous for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A client and the agent that it started. The agent is killed when this is dropped.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
    /// Messages of the agent other than answers to requests, in order.
    pub seen: Vec<Value>,
    /// Answers that were not waited for yet.
    answers: Vec<Value>,
    /// Id of the option that answers every question; `None` leaves questions open.
    pub chooses: Option<&'static str>,
}

impl Client {
    /// Starts an agent.
    ///
    /// # Panics
    /// Panics if it does not start.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().expect("the agent starts");
        let stdout = child.stdout.take().expect("its output");
        let stdin = child.stdin.take();
        if let Some(mut stderr) = child.stderr.take() {
            thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            next: 0,
            seen: Vec::new(),
            answers: Vec::new(),
            chooses: Some("allow"),
        }
    }

    /// Starts an agent and initializes the connection.
    #[must_use]
    pub fn connect(command: &mut Command) -> Self {
        let mut client = Self::start(command);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        client.ok("initialize", params);
        client
    }

    /// Process id of the agent.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are. The agent need not read them.
    pub fn raw(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
        }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Reads the next message; `None` at the end or after `patience`. Answers questions, and
    /// keeps everything else in `seen` or for [`Client::answer`].
    ///
    /// # Panics
    /// Panics if the agent writes anything but messages.
    pub fn read(&mut self, patience: Duration) -> Option<Value> {
        let line = match self.lines.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        if message.get("method").is_none() {
            self.answers.push(message.clone());
            return Some(message);
        }
        if let (Some(choice), "session/request_permission") =
            (self.chooses, message["method"].as_str().unwrap_or_default())
        {
            self.choose(&message, choice);
        }
        self.seen.push(message.clone());
        Some(message)
    }

    /// Answers a question.
    pub fn choose(&mut self, question: &Value, option: &str) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    }

    /// Waits for the answer to a request.
    ///
    /// # Panics
    /// Panics if none comes.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.answers.iter().position(|answer| answer["id"] == id);
            if let Some(found) = found {
                return self.answers.remove(found);
            }
            let left = PATIENCE.checked_sub(begun.elapsed()).unwrap_or_default();
            if self.read(left).is_none() {
                panic!("no answer to request {id}; seen: {:#?}", self.seen);
            }
        }
    }

    /// Sends a request and returns its answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request that must succeed and returns its result.
    ///
    /// # Panics
    /// Panics if it fails.
    #[track_caller]
    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request that must fail and returns the code and the message.
    ///
    /// # Panics
    /// Panics if it succeeds.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        let answer = self.call(method, params);
        let error = &answer["error"];
        let code = error["code"].as_i64();
        let code = code.unwrap_or_else(|| panic!("{method} succeeded: {answer}"));
        (
            code,
            error["message"].as_str().unwrap_or_default().to_owned(),
        )
    }

    /// Opens a new session and returns its id.
    #[track_caller]
    pub fn session(&mut self, folder: &Path) -> String {
        let opened = self.ok("session/new", json!({ "cwd": folder, "mcpServers": [] }));
        opened["sessionId"].as_str().expect("an id").to_owned()
    }

    /// Sends a prompt without waiting, and returns the id of the request.
    pub fn begin_prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
    }

    /// Sends a prompt and returns the reason for its end.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let id = self.begin_prompt(session, text);
        self.stop_reason(id)
    }

    /// Waits for the end of a prompt.
    #[track_caller]
    pub fn stop_reason(&mut self, id: u64) -> String {
        let answer = self.answer(id);
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Reads until a message that is not an answer matches.
    ///
    /// # Panics
    /// Panics if none comes.
    #[track_caller]
    pub fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.checked_sub(begun.elapsed()).unwrap_or_default();
            match self.read(left) {
                Some(message) if message.get("method").is_some() && is_it(&message) => {
                    return message;
                }
                Some(_) => {}
                None => panic!("it never came; seen: {:#?}", self.seen),
            }
        }
    }

    /// Waits for the next question.
    #[track_caller]
    pub fn question(&mut self) -> Value {
        self.wait(|message| message["method"] == "session/request_permission")
    }

    /// Updates of a kind, so far.
    #[must_use]
    pub fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// Text of the chunks of a kind, so far.
    #[must_use]
    pub fn text(&self, kind: &str) -> String {
        let mut text = String::new();
        for update in self.updates(kind) {
            let chunk = update["content"]["text"].as_str().unwrap_or_default();
            let _ = text.write_str(chunk);
        }
        text
    }

    /// The latest state of a tool call: the fields of all its updates.
    #[must_use]
    pub fn tool_call(&self, id: &str) -> Value {
        let mut call = serde_json::Map::new();
        for message in &self.seen {
            let update = &message["params"]["update"];
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            if kind.starts_with("tool_call") && update["toolCallId"] == id {
                let fields = update.as_object().into_iter().flatten();
                call.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        Value::Object(call)
    }

    /// Closes standard input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the agent.
    ///
    /// # Panics
    /// Panics if it goes on.
    #[track_caller]
    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(begun.elapsed() < within, "the agent goes on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The cases, as JSON. Each is a list of steps on one connection: `send` (a message, with
/// `{session}` and `{folder}` filled in) or `line` (a line as it is), and `expect`, a part of
/// the answer to it. Everything that `expect` has must be in the answer; `"*"` stands for any
/// value, and a text of the form `"<type>"` for any value of that type.
pub const CASES: &str = include_str!("acp/cases.json");

/// Runs all cases against an agent, each in a process of its own. Returns one line per failure.
/// `start` creates its command; `folder` is an existing work folder. A case with
/// `"needs": "model"` prompts a model.
///
/// # Panics
/// Panics if the table is not valid.
pub fn conformance(start: &dyn Fn() -> Command, folder: &Path) -> Vec<String> {
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("the table is JSON");
    let mut failures = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        if let Err(problem) = run_case(case, &mut start(), folder) {
            failures.push(format!("{name}: {problem}"));
        }
    }
    failures
}

fn run_case(case: &Value, command: &mut Command, folder: &Path) -> Result<(), String> {
    let mut client = Client::start(command.stderr(Stdio::null()));
    let mut session = String::new();
    for step in case["steps"].as_array().expect("steps") {
        let filled = step
            .to_string()
            .replace("{session}", &session)
            .replace("{folder}", &folder.to_string_lossy());
        let step: Value = serde_json::from_str(&filled).expect("a step");
        match step.get("line").and_then(Value::as_str) {
            Some(line) => client.raw(format!("{line}\n").as_bytes()),
            None => client.send(&step["send"]),
        }
        let Some(expected) = step.get("expect") else {
            continue;
        };
        let begun = Instant::now();
        let answer = loop {
            if let Some(answer) = client.answers.pop() {
                break answer;
            }
            if begun.elapsed() > PATIENCE || client.read(Duration::from_secs(10)).is_none() {
                return Err(format!("no answer to {}", step["send"]));
            }
        };
        matches(expected, &answer).map_err(|what| format!("{what} in {answer}"))?;
        if let Some(id) = answer["result"]["sessionId"].as_str() {
            id.clone_into(&mut session);
        }
    }
    Ok(())
}

/// Checks that `found` has everything that `expected` has.
fn matches(expected: &Value, found: &Value) -> Result<(), String> {
    let is_type = |name: &str| match name {
        "*" => true,
        "<string>" => found.is_string(),
        "<number>" => found.is_number(),
        "<array>" => found.is_array(),
        "<object>" => found.is_object(),
        _ => false,
    };
    match (expected, found) {
        (Value::String(name), found) if !found.is_null() && is_type(name) => Ok(()),
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().try_for_each(|(name, expected)| {
                let found = found.get(name).unwrap_or(&Value::Null);
                matches(expected, found).map_err(|what| format!("{name}: {what}"))
            })
        }
        (expected, found) if expected == found => Ok(()),
        (expected, found) => Err(format!("expected {expected}, found {found}")),
    }
}
