//! An agent with a scripted model; everything else is real.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use haft::commands::CommandLocation;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::Network;
use haft::ops::{Access, FilePath};
use haft::{
    Call, Commands, Context, Effect, Filled, FromSchema, MemoryJournal, Policy, Reply, Rule,
    RuleDraft, RuleFile, RuleLocation, RuleOwner, Runtime, Verdict,
};
use haft_agent::{AgentEvent, EventKind, Usage};
use haft_chat::{
    ChatEvent, Driver, EarlierPrompt, EndReason, EventStream, Greeting, QuestionContext, Recalled,
    SavedPrompt, SessionEntry, Setup, TerminalFeatures, Theme,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
struct Script {
    work: PathBuf,
    state: PathBuf,
    /// Tools that need approval.
    #[serde(default)]
    ask: Vec<String>,
    /// Steps of the model for each prompt.
    #[serde(default)]
    prompts: Vec<Vec<Step>>,
    /// Whether an earlier run is unfinished.
    #[serde(default)]
    left: bool,
    /// Theme of the chat.
    #[serde(default = "terminal")]
    theme: String,
    /// Last prompt and answer in it.
    before: Option<(String, String)>,
    /// A prompt to send at once.
    first_prompt: Option<String>,
    /// Text in the input line.
    #[serde(default)]
    draft: String,
    /// The plan, in plan mode; empty if there is none yet.
    plan: Option<String>,
    /// Whether there is something to undo.
    #[serde(default)]
    has_changes: bool,
}

fn terminal() -> String {
    "terminal".to_owned()
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "snake_case")]
enum Step {
    Say(String),
    Think(String),
    Call {
        tool: String,
        with: Value,
    },
    /// Two concurrent calls.
    Both(Vec<(String, Value)>),
    /// Waits for a message of the user, and repeats it.
    Steered,
    /// Waits to be stopped.
    Wait,
    Fail(String),
    Retry(String),
    /// A call of a sub-agent.
    Child {
        tool: String,
        with: Value,
    },
    /// A call of a sub-agent in the background.
    Behind {
        tool: String,
        with: Value,
    },
    Panic(String),
}

type Sink = mpsc::UnboundedSender<ChatEvent>;

struct Actor {
    runtime: Runtime,
    prompts: Mutex<std::vec::IntoIter<Vec<Step>>>,
    log: PathBuf,
    sink: Arc<Mutex<Option<Sink>>>,
    /// Events in the background.
    behind: Sink,
    happened: Mutex<Option<mpsc::UnboundedReceiver<ChatEvent>>>,
    /// Contains a call's reply before its end is reported.
    journal: Arc<MemoryJournal>,
    steering: Arc<Mutex<Vec<String>>>,
    steered: Arc<Notify>,
    stop: Mutex<CancellationToken>,
    model: Mutex<String>,
    spent: Mutex<Usage>,
    calls: Arc<std::sync::atomic::AtomicU64>,
    left: std::sync::atomic::AtomicBool,
    effort: Mutex<Option<String>>,
    plan: Option<PathBuf>,
    has_changes: bool,
}

/// Runs the chat with a script file, and returns its exit code.
pub(crate) fn play(script: &Path) -> i32 {
    let script: Script = serde_json::from_slice(&std::fs::read(script).unwrap()).unwrap();
    // Clears the output of the test harness.
    std::io::stdout().write_all(b"\x1b[H\x1b[2J").unwrap();
    std::io::stdout().flush().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = runtime.block_on(async {
        let (person, requests) = haft_chat::approver();
        let actor = Arc::new(Actor::new(&script, person));
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let colour = variable("NO_COLOR").is_none();
        let setup = Setup {
            greeting: Greeting {
                version: "1.2.3".to_owned(),
                model: "scripted".to_owned(),
                folder: "/work".to_owned(),
                sandbox: "sandbox full".to_owned(),
                network: String::new(),
                notes: vec!["a note on trust".to_owned()],
                conversation: match script.before.clone() {
                    Some((prompt, answer)) => {
                        vec![Recalled::Prompt(prompt), Recalled::Answer(answer)]
                    }
                    None => Vec::new(),
                },
            },
            terminal: TerminalFeatures::detect(
                is_terminal,
                variable("TERM").as_deref(),
                colour,
                true,
            )
            .themed(
                Theme::named(&script.theme).unwrap(),
                variable("COLORTERM").as_deref(),
                None,
            ),
            history_file: Some(script.state.join("history")),
            scratch_folder: Some(script.state.clone()),
            editor: std::env::var_os("EDITOR"),
            question_context: QuestionContext {
                sandbox: Some("sandbox: full, no network".to_owned()),
            },
            prompts: vec![SavedPrompt {
                name: "review".to_owned(),
                description: "Reviews a file".to_owned(),
                hint: Some("FILE".to_owned()),
                prompt: "Review $ARGUMENTS.".to_owned(),
            }],
            first_prompt: script.first_prompt.clone(),
            draft: script.draft.clone(),
        };
        haft_chat::run(actor, setup, requests).await.unwrap()
    });
    runtime.shutdown_background();
    match ended {
        EndReason::Quit => 0,
        EndReason::Switch(next) => {
            let next = json!({
                "id": next.id, "planning": next.is_planning, "prompt": next.prompt,
                "draft": next.draft,
            });
            std::fs::write(script.state.join("next.json"), next.to_string()).unwrap();
            70
        }
        EndReason::Signal(number) => 128 + i32::from(number),
    }
}

impl Actor {
    fn new(script: &Script, person: Arc<dyn haft::Approver>) -> Self {
        let place = |line| RuleLocation {
            file: "haft.yaml".to_owned(),
            line,
        };
        let rules = script.ask.iter().zip(2..).map(|(tool, line)| {
            Rule::new(RuleDraft::new(Verdict::Ask, tool, place(line))).unwrap()
        });
        let policy = Policy::new(vec![RuleFile {
            owner: RuleOwner::User,
            rules: rules.collect(),
        }]);
        let sink: Arc<Mutex<Option<Sink>>> = Arc::default();
        let theirs = Arc::clone(&sink);
        let (behind, happened) = mpsc::unbounded_channel();
        let aside = behind.clone();
        let journal = Arc::new(MemoryJournal::new(1000));
        let haft = Itself::at(env!("CARGO_BIN_EXE_haft").into());
        let runtime = Runtime::builder()
            .dir(&script.work)
            .every_tool()
            .folders(haft::Folders {
                state: Some(script.state.clone()),
                ..haft::Folders::default()
            })
            .commands(Commands {
                executor: Arc::new(haft.executor()),
                environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
                place: CommandLocation::Here {
                    helper: haft.helper(),
                    network: Network::Off,
                    sockets: Vec::new(),
                    readable: Vec::new(),
                },
                gateway: None,
                caches: None,
            })
            .journal(journal.clone())
            .policy(policy)
            .approver(person)
            .on_event(move |event| {
                let is_of = |who: &str| {
                    matches!(&event.kind,
                        haft::EventKind::ToolStart { call_id, .. }
                        | haft::EventKind::ToolUpdate { call_id, .. }
                        | haft::EventKind::ToolEnd { call_id, .. } if call_id.starts_with(who))
                };
                let children = ["child", "behind"].into_iter();
                let seen = ChatEvent {
                    kind: EventKind::Tool(event.kind.clone()),
                    sub_agent: children.map(str::to_owned).find(|who| is_of(who)),
                    is_background: is_of("behind"),
                };
                if seen.is_background {
                    let _ = aside.send(seen);
                    return;
                }
                if let Some(sink) = &*theirs.lock().unwrap() {
                    let _ = sink.send(seen);
                }
            })
            .build()
            .unwrap();
        runtime
            .tools()
            .add_any(Arc::new(form(&script.work)))
            .unwrap();
        Self {
            runtime,
            prompts: Mutex::new(script.prompts.clone().into_iter()),
            log: script.state.join("prompts.jsonl"),
            sink,
            behind,
            happened: Mutex::new(Some(happened)),
            journal,
            steering: Arc::default(),
            steered: Arc::default(),
            stop: Mutex::default(),
            model: Mutex::new("scripted".to_owned()),
            spent: Mutex::default(),
            calls: Arc::default(),
            left: script.left.into(),
            effort: Mutex::default(),
            plan: script.plan.as_ref().map(|text| {
                let file = script.state.join("plan.md");
                std::fs::write(&file, text).unwrap();
                file
            }),
            has_changes: script.has_changes,
        }
    }

    fn log(&self, line: &Value) {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.log)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn stage(&self) -> (Hand, mpsc::UnboundedReceiver<ChatEvent>) {
        let (sink, seen) = mpsc::unbounded_channel();
        *self.sink.lock().unwrap() = Some(sink.clone());
        let stop = CancellationToken::new();
        *self.stop.lock().unwrap() = stop.clone();
        let hand = Hand {
            runtime: self.runtime.clone(),
            sink,
            behind: self.behind.clone(),
            slot: Arc::clone(&self.sink),
            steering: Arc::clone(&self.steering),
            steered: Arc::clone(&self.steered),
            stop,
            calls: Arc::clone(&self.calls),
        };
        (hand, seen)
    }
}

/// A tool that sends a form, and records the result.
fn form(work: &Path) -> FromSchema {
    let file = work.join("filled");
    let schema = json!({
        "type": "object",
        "properties": {
            "message": { "type": "string", "description": "What is asked." },
            "fields": { "type": "object", "description": "The fields." },
            "until": { "type": "string", "description": "A file that ends the waiting." },
        },
    });
    let fill = move |with: Value, cx: Context| {
        let file = file.clone();
        async move {
            let message = with["message"].as_str().unwrap_or("What is it?");
            let filled = cx.fill(message, with["fields"].clone());
            let enough = with["until"].as_str().map(|name| file.with_file_name(name));
            let filled = tokio::select! {
                filled = filled => match filled {
                    Filled::Accepted(fields) => fields.to_string(),
                    other => format!("{other:?}"),
                },
                () = exists(enough) => "nobody was waited for".to_owned(),
            };
            std::fs::write(file, filled).unwrap();
            Ok(Reply::from("It was asked."))
        }
    };
    FromSchema::new("form", "Asks for fields.", schema, Effect::Pure, fill).unwrap()
}

async fn exists(file: Option<PathBuf>) {
    while !file.as_ref().is_some_and(|file| file.exists()) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Player of one prompt.
struct Hand {
    runtime: Runtime,
    sink: Sink,
    behind: Sink,
    slot: Arc<Mutex<Option<Sink>>>,
    steering: Arc<Mutex<Vec<String>>>,
    steered: Arc<Notify>,
    stop: CancellationToken,
    calls: Arc<std::sync::atomic::AtomicU64>,
}

impl Hand {
    fn tell(&self, event: AgentEvent) {
        let _ = self.sink.send(ChatEvent {
            kind: EventKind::Agent(event),
            sub_agent: None,
            is_background: false,
        });
    }

    fn piece(&self, kind: &'static str, text: &str) {
        // In the smallest possible pieces.
        let letters: Vec<char> = text.chars().collect();
        for some in letters.chunks(3) {
            let delta = some.iter().collect();
            self.tell(AgentEvent::MessageUpdate { kind, delta });
        }
    }

    async fn call(&self, prefix: &str, tool: &str, with: &Value) {
        let number = self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let id = format!("{prefix}{number}");
        let call = Call::new(tool, with.clone())
            .id(id)
            .cancel(self.stop.clone());
        self.runtime.run(call).await;
    }

    async fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Say(text) => self.piece("text", text),
            Step::Think(text) => self.piece("reasoning", text),
            Step::Call { tool, with } => {
                self.piece("call", tool);
                self.call("call", tool, with).await;
            }
            Step::Both(calls) => {
                let calls = calls
                    .iter()
                    .map(|(tool, with)| self.call("call", tool, with));
                futures::future::join_all(calls).await;
            }
            Step::Child { tool, with } => self.call("child", tool, with).await,
            Step::Behind { tool, with } => {
                let (runtime, behind) = (self.runtime.clone(), self.behind.clone());
                let tell = move |status| {
                    let event = AgentEvent::BackgroundTask {
                        task_id: "t1".to_owned(),
                        agent: "researcher".to_owned(),
                        description: "find the tests".to_owned(),
                        status,
                    };
                    let _ = behind.send(ChatEvent {
                        kind: EventKind::Agent(event),
                        sub_agent: None,
                        is_background: true,
                    });
                };
                let call = Call::new(tool, with.clone()).id("behind");
                tokio::spawn(async move {
                    tell("running");
                    runtime.run(call).await;
                    tell("done");
                });
            }
            Step::Steered => {
                let printed = loop {
                    let printed = std::mem::take(&mut *self.steering.lock().unwrap());
                    if !printed.is_empty() {
                        break printed;
                    }
                    self.steered.notified().await;
                };
                for text in printed {
                    self.tell(AgentEvent::Steering { text: text.clone() });
                    self.piece("text", &format!("You said: {text}"));
                }
            }
            Step::Wait => std::future::pending().await,
            Step::Fail(message) => return Err(message.clone()),
            Step::Retry(reason) => self.tell(AgentEvent::Retry {
                attempt: 1,
                of: 3,
                delay_ms: 2000,
                reason: reason.clone(),
            }),
            Step::Panic(message) => panic!("{message}"),
        }
        Ok(())
    }

    async fn play(self, steps: Vec<Step>) {
        self.tell(AgentEvent::TurnStart { turn: 1 });
        let mut reason = "done";
        for step in &steps {
            let done = match step {
                Step::Steered | Step::Wait => tokio::select! {
                    done = self.step(step) => done,
                    () = self.stop.cancelled() => Ok(()),
                },
                // A stopped call reports that itself.
                _ => self.step(step).await,
            };
            if self.stop.is_cancelled() {
                reason = "interrupted";
            }
            if let Err(message) = done {
                self.tell(AgentEvent::Error { message });
                reason = "failed";
            }
            if reason != "done" {
                break;
            }
        }
        self.tell(AgentEvent::AgentEnd {
            response: None,
            reason,
            text: String::new(),
            usage: Usage::default(),
            cost: None,
        });
    }
}

/// The stream ends with the player, even on a panic.
impl Drop for Hand {
    fn drop(&mut self) {
        *self.slot.lock().unwrap() = None;
    }
}

fn streamed(seen: mpsc::UnboundedReceiver<ChatEvent>) -> EventStream {
    let next = async |mut seen: mpsc::UnboundedReceiver<ChatEvent>| {
        seen.recv().await.map(|one| (one, seen))
    };
    stream::unfold(seen, next).boxed()
}

#[async_trait]
impl Driver for Actor {
    async fn prompt(&self, text: String) -> Result<EventStream, String> {
        self.log(&json!({ "prompt": text }));
        self.left.store(false, std::sync::atomic::Ordering::Relaxed);
        let Some(steps) = self.prompts.lock().unwrap().next() else {
            return Err("the script is over".to_owned());
        };
        self.spent.lock().unwrap().add(&Usage {
            input: 1200,
            output: 34,
            cost: Some(0.0125),
            ..Usage::default()
        });
        let (hand, seen) = self.stage();
        tokio::spawn(hand.play(steps));
        Ok(streamed(seen))
    }

    fn background_events(&self) -> EventStream {
        streamed(self.happened.lock().unwrap().take().unwrap())
    }

    async fn run_command(&self, line: String) -> Result<EventStream, String> {
        let (hand, seen) = self.stage();
        tokio::spawn(async move {
            hand.call("own", "bash", &json!({ "command": line })).await;
        });
        Ok(streamed(seen))
    }

    async fn changes(&self, words: String) -> Result<String, String> {
        Ok(format!("changes of {words}\n    -old\n    +new\n"))
    }

    async fn undo_preview(&self, words: String) -> Result<String, String> {
        match words.as_str() {
            "nothing" => Err("nothing to undo".to_owned()),
            words => Ok(format!("undo of {words}\n  remove   new.txt")),
        }
    }

    async fn undo(&self, words: String) -> Result<String, String> {
        self.log(&json!({ "undo": words }));
        Ok(format!("undid {words}: 1 file"))
    }

    async fn redo_preview(&self) -> Result<String, String> {
        Ok("redo of c1".to_owned())
    }

    async fn redo(&self) -> Result<String, String> {
        self.log(&json!({ "redo": true }));
        Ok("redid c1: 1 file".to_owned())
    }

    fn has_unfinished_run(&self) -> bool {
        self.left.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn steer(&self, text: String) {
        self.log(&json!({ "steer": text }));
        self.steering.lock().unwrap().push(text);
        self.steered.notify_one();
    }

    fn abort(&self) {
        self.log(&json!("abort"));
        self.stop.lock().unwrap().cancel();
    }

    async fn compact(&self) -> Result<String, String> {
        Ok("there was nothing to make shorter".to_owned())
    }

    async fn set_model(&self, name: &str) -> Result<(), String> {
        if name == "nobody" {
            return Err("there is no model nobody".to_owned());
        }
        *self.model.lock().unwrap() = name.to_owned();
        Ok(())
    }

    fn model(&self) -> String {
        self.model.lock().unwrap().clone()
    }

    fn efforts(&self) -> Vec<String> {
        ["low", "high"].map(str::to_owned).to_vec()
    }

    fn effort(&self) -> Option<String> {
        self.effort.lock().unwrap().clone()
    }

    async fn set_effort(&self, level: &str) -> Result<(), String> {
        *self.effort.lock().unwrap() = Some(level.to_owned());
        Ok(())
    }

    async fn earlier_prompts(&self) -> Result<Vec<EarlierPrompt>, String> {
        let prompt = |id: &str, text: &str| EarlierPrompt {
            id: id.to_owned(),
            text: text.to_owned(),
            about: "today".to_owned(),
        };
        Ok(vec![
            prompt("p2", "Then mend it"),
            prompt("p1", "Look at it"),
        ])
    }

    async fn fork(&self, before: Option<String>) -> Result<Option<String>, String> {
        self.log(&json!({ "fork": before }));
        Ok(Some("copy".to_owned()))
    }

    async fn undo_since_preview(&self, prompt: String) -> Result<Option<String>, String> {
        let preview = format!("undo of all since {prompt}");
        Ok(self.has_changes.then_some(preview))
    }

    async fn undo_since(&self, prompt: String) -> Result<String, String> {
        self.log(&json!({ "undo_since": prompt }));
        Ok("undid 2 files".to_owned())
    }

    async fn add_instruction(&self, line: String) -> Result<String, String> {
        Ok(format!("added to AGENTS.md: {line}"))
    }

    fn plan_file(&self) -> Option<PathBuf> {
        self.plan.clone()
    }

    async fn plan(&self) -> Result<String, String> {
        let file = self.plan.as_ref().unwrap();
        match std::fs::read_to_string(file).unwrap() {
            text if text.is_empty() => Err("there is no plan yet".to_owned()),
            text => Ok(text),
        }
    }

    fn usage(&self) -> Usage {
        *self.spent.lock().unwrap()
    }

    fn tools(&self) -> Vec<(String, String)> {
        let definitions = self.runtime.definitions();
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        definitions
            .iter()
            .map(|tool| (tool.name.to_string(), first(&tool.description)))
            .collect()
    }

    async fn list_sessions(&self) -> Result<Vec<SessionEntry>, String> {
        let entry = |id: &str, title: &str| SessionEntry {
            id: id.to_owned(),
            title: title.to_owned(),
            about: "yesterday".to_owned(),
        };
        Ok(vec![
            entry("s1", "fix the test"),
            entry("s0", "write the docs"),
        ])
    }

    fn session_id(&self) -> Option<String> {
        (self.usage().total() > 0).then(|| "s2".to_owned())
    }

    fn reply_text(&self, call_id: &str) -> Option<String> {
        let calls = self.journal.calls();
        let (_, outcome) = calls
            .into_iter()
            .find(|(call, _)| call.call_id == call_id)?;
        let reply = outcome?.reply;
        Some(reply["content"][0]["text"].as_str()?.to_owned())
    }

    fn work_folder(&self) -> Option<FilePath> {
        self.runtime.scope().resolve(".", Access::Read).ok()
    }
}
