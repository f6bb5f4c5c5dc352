//! `haft demo`: plays a recorded model with real tools, in a temporary folder.

use crate::agent::driver::Live;
use crate::agent::model_choice::ModelChoice;
use crate::args::Shared;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::signals::{self, Signals};
use crate::{effects, log, session};
use async_trait::async_trait;
use haft::ops::effects::{Calls, Selection, UndoMode};
use haft::ops::executor::sandbox::Network;
use haft::{
    ApprovalAnswer as Answer, Policy, Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Runtime,
    Verdict,
};
use haft_agent::provider::Recording;
use haft_agent::{
    Agent, Chunk, Message, Model, ModelError, ModelId, Prompt, Request, system_prompt,
};
use haft_chat::{QuestionContext, SinglePromptOptions, TerminalFeatures, Theme, run_single_prompt};
use haft_config::effects::Effects;
use haft_store::sessions::{NewSession, SessionKind, Sessions, new_id};
use serde_json::json;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// Recording of the model.
const RECORDING: &str = include_str!("../demo/session.jsonl");

/// Session in the recording with the model's answer to a rejected call.
const DECLINED: &str = "declined";

/// The user's prompt.
const PROMPT: &str = "The check fails. Find out why, fix it, and note it in CHANGELOG.md.";

/// Files in the folder: name, text, and whether it is executable.
const FILES: [(&str, &str, bool); 3] = [
    (
        "greet.sh",
        "#!/bin/bash\n# Greets somebody.\ngreet() {\n\techo \"hello $1\"\n}\ngreet \"${1:-you}\"\n",
        true,
    ),
    (
        "check.sh",
        "#!/bin/bash\ngot=$(./greet.sh Ada)\nif [ \"$got\" = \"hello, Ada\" ]; then echo ok; exit 0; fi\necho \"expected: hello, Ada\"\necho \"got:      $got\"\nexit 1\n",
        true,
    ),
    (
        "serve.sh",
        "#!/bin/bash\necho serving\nexec sleep 1000\n",
        true,
    ),
];

/// Time for the user to answer; after that the demo approves by itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Plays the demo.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    log::start(shared.log.as_deref().unwrap_or("warn"), &[]);
    let failed = |error: std::io::Error| {
        Failure::failed(format!("cannot create a temporary folder: {error}"))
    };
    let folder = tempfile::Builder::new()
        .prefix("haft-demo-")
        .tempdir()
        .map_err(failed)?;
    // The umask may have removed permissions that the owner needs.
    haft::ops::private::folder(folder.path()).map_err(failed)?;
    let work = folder.path().join("work");
    create_files(&work).map_err(failed)?;
    let exit = signals::block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            played = play(folder.path(), &work) => played.map(|()| Exit::Done),
            exit = signals.next() => Ok(exit),
        }
    })?;
    folder
        .close()
        .map_err(|error| Failure::failed(format!("cannot remove the temporary folder: {error}")))?;
    if exit == Exit::Done {
        goodbye()?;
    } else if output::can_ask() {
        // The shell's prompt must start on a new line.
        output::note("");
    }
    Ok(exit)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the temporary folder is filled before a scope exists"
)]
fn create_files(work: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    haft::ops::private::folder(work)?;
    for (name, text, runs) in FILES {
        let path = work.join(name);
        std::fs::write(&path, text)?;
        let mode = if runs { 0o755 } else { 0o644 };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

async fn play(folder: &Path, work: &Path) -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    let on_terminal = output::is_terminal();
    output::raw(&format!(
        "{}\nThe model's answers are recorded. The tools, the sandbox, the question and the\nsession are real, in a temporary folder: no key, no network.\n",
        paint.bold("An agent at work with haft.")
    ))?;
    let failed = |error: String| Failure::failed(error);
    let (approver, mut requests) = haft_chat::approver();
    let id = new_id();
    let store = effects::store_in(&folder.join("state"), &Effects::default());
    let runtime = Runtime::builder()
        .dir(work)
        .session(&id)
        .folders(haft::Folders {
            // Leaves nothing behind, not even saved outputs.
            state: Some(folder.join("state")),
            ..env::read().folders()
        })
        .preset("all")
        .commands(session::local_commands(Network::Session, &[]))
        .policy(policy().map_err(failed)?)
        .approver(approver)
        .effects(store)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let recording = Recording::parse(RECORDING).map_err(|error| failed(error.to_string()))?;
    let pace = Duration::from_millis(if on_terminal { 25 } else { 0 });
    let recording = recording.pace(pace);
    let declined = recording.session(DECLINED);
    let model = Arc::new(RecordedModel {
        approved: recording.model(),
        declined: declined.map_err(|error| failed(error.to_string()))?,
    });
    let tools = runtime.prompt_section();
    let system = system_prompt(&Prompt {
        own: None,
        work_dir: work,
        platform: std::env::consts::OS,
        date: "today",
        tools: &tools,
        skills: "",
        instructions: "",
    });
    let sessions = Sessions::open(folder.join("state").join("sessions.db"))
        .map_err(|error| failed(error.to_string()))?;
    let begun = sessions.begin(NewSession {
        id: Some(id),
        kind: SessionKind::Agent,
        work_dir: work.to_owned(),
        toolset: "standard".to_owned(),
        provider: "replay".to_owned(),
        model: "recorded".to_owned(),
        title: None,
        parent: None,
        system: Some(system.clone()),
    });
    let begun = begun.map_err(|error| failed(error.to_string()))?;
    let agent = Agent::new(model, runtime).system(system).recorded(begun);
    let live = Live {
        agent,
        model_choice: ModelChoice::default(),
        sessions: Some(sessions),
        work_dir: work.to_owned(),
        has_unfinished_run: AtomicBool::new(false),
        commands: AtomicU64::new(0),
        outputs: Arc::default(),
        run_started: std::sync::Mutex::default(),
        plan: None,
        settings: None,
    };
    let options = SinglePromptOptions {
        terminal: TerminalFeatures::detect(
            on_terminal,
            env::read().text("TERM").as_deref(),
            env::allows_colour(),
            false,
        )
        .themed(
            Theme::Auto,
            env::read().text("COLORTERM").as_deref(),
            env::read().text("COLORFGBG").as_deref(),
        )
        .ask_background(),
        columns: output::width().unwrap_or(80).clamp(40, 100),
        wraps_all_lines: on_terminal,
        question_context: QuestionContext {
            sandbox: Some(
                "it would run in the sandbox: it can write only this folder and has no network"
                    .to_owned(),
            ),
        },
        answer: &|_| Box::pin(answer()),
    };
    match run_single_prompt(&live, PROMPT, &options, &mut requests).await {
        // The reader of stdout closed it early.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(failed(error.to_string())),
        Ok(()) => show_undo(live.agent.runtime(), paint).await,
    }
}

/// Deletes the folder's files with a command, and takes that back.
async fn show_undo(runtime: &Runtime, paint: Paint) -> Result<(), Failure> {
    let run = async |line: &str| {
        let reply = runtime.call("bash", json!({ "command": line })).await;
        let text = reply.text();
        let output: String = text
            .trim_end()
            .lines()
            .map(|row| format!("  {row}\n"))
            .collect();
        output::raw(&format!(
            "{} {}\n{}",
            paint.cyan("$"),
            paint.bold(line),
            paint.dim(&output)
        ))
    };
    output::raw(&format!(
        "\n{}\n",
        paint.bold("If a command destroys something, it can be undone.")
    ))?;
    run("rm -rf *; ls").await?;
    let Some(session) = runtime.effects().cloned() else {
        return Ok(());
    };
    let undo = move || {
        let last = Selection {
            calls: Calls::Last,
            paths: Vec::new(),
        };
        session.undo(&last, UndoMode::Careful)
    };
    let (sign, undo_line) = (paint.cyan("$"), paint.bold("haft undo"));
    output::raw(&format!("{sign} {undo_line}\n"))?;
    match haft::ops::blocking::on_a_thread(undo).await {
        Ok(Ok(undone)) => {
            let files = haft::effects::files(&undone.changes);
            output::raw(&paint.dim(&format!("  undid {}: {files}\n", undone.calls.join(", "))))?;
        }
        // Commands cannot be recorded on every machine.
        Ok(Err(error)) => output::raw(&format!("not undone here: {error}\n"))?,
        Err(error) => return Err(Failure::failed(error)),
    }
    run("ls; ./check.sh").await
}

/// The recording. If the user rejects a call, it switches to an answer that does not
/// claim the call was made.
struct RecordedModel {
    approved: Arc<dyn Model>,
    declined: Arc<dyn Model>,
}

#[async_trait]
impl Model for RecordedModel {
    fn id(&self) -> ModelId {
        self.approved.id()
    }

    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<haft_agent::ModelAnswer, ModelError> {
        let was_refused = match request.history.last().map(|message| &**message) {
            Some(Message::Tool { results }) => results
                .iter()
                .any(|result| result.tool == "write" && result.is_error),
            _ => false,
        };
        match was_refused {
            true => self.declined.answer(request, show).await,
            false => self.approved.answer(request, show).await,
        }
    }
}

/// Asks before writes to CHANGELOG.md. Commands run without a question, because the demo shows
/// how to undo one.
fn policy() -> Result<Policy, String> {
    let place = |line| RuleLocation {
        file: "haft.yaml".to_owned(),
        line,
    };
    let mut ask = RuleDraft::new(Verdict::Ask, "write", place(2));
    ask.path = Some("CHANGELOG.md".to_owned());
    let allow = RuleDraft::new(Verdict::Allow, "bash", place(3));
    let rules = [ask, allow].map(Rule::new).into_iter();
    let rules: Result<Vec<_>, _> = rules.collect();
    Ok(Policy::new(vec![RuleFile {
        owner: RuleOwner::User,
        rules: rules.map_err(|error| error.to_string())?,
    }]))
}

/// Returns the user's answer; approves by itself if the user cannot be asked or does not
/// answer.
async fn answer() -> Answer {
    if !output::can_ask() || !is_in_foreground() {
        let _ = output::raw("  y (no terminal to ask on, so the demo approves)\n\n");
        return Answer::Approve;
    }
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut lines = typed_lines();
    loop {
        output::prompt("y approve · n reject, then Enter › ");
        let word = match tokio::time::timeout(ANSWER_TIMEOUT, lines.recv()).await {
            Ok(Some(word)) => word.trim().to_ascii_lowercase(),
            Ok(None) => return Answer::Reject { reason: None },
            Err(_) => {
                output::note("y (no answer, so the demo approves)");
                return Answer::Approve;
            }
        };
        match word.as_str() {
            "y" | "yes" => return Answer::Approve,
            "n" | "no" => return Answer::Reject { reason: None },
            _ => {}
        }
    }
}

/// Whether the shell lets this process read from the terminal; a job in the background would
/// be stopped.
fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(std::io::stdin());
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Reads lines on a separate thread, which does not keep the demo from ending.
fn typed_lines() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn goodbye() -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    output::raw(&format!(
        "\nThe temporary folder and everything started in it are gone.\n\n{}\n  \
         {}   then type {} in your folder\n  \
         {}                     the same tools for the agent you already use\n  \
         {}          one tool, from the shell\n",
        paint.bold("Next:"),
        paint.cyan("export ANTHROPIC_API_KEY=…"),
        paint.cyan("haft"),
        paint.cyan("haft mcp"),
        paint.cyan("haft call ls path=."),
    ))
}
