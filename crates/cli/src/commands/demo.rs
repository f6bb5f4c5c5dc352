//! `haft demo`: a recorded model with real tools, in a folder that is gone afterwards.

use crate::agent::driver::Live;
use crate::args::Shared;
use crate::chat::{self, Around, Stage};
use crate::config::model::Model as Chosen;
use crate::exit::{Exit, Failure};
use crate::output::{self, Paint};
use crate::signals::{self, Signals};
use crate::{env, log, session};
use async_trait::async_trait;
use haft::ops::executor::sandbox::Network;
use haft::{Answer, Draft, Place, Policy, Rule, RuleFile, Runtime, Verdict, Whose};
use haft_agent::provider::Recording;
use haft_agent::{
    Agent, Message, Model, ModelError, ModelId, Piece, Prompt, Request, system_prompt,
};
use haft_store::sessions::{Kind, New, Sessions, new_id};
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// The model's side.
const RECORDING: &str = include_str!("../demo/session.jsonl");

/// The session in it that has the last words for somebody who said no.
const DECLINED: &str = "declined";

/// The person's side.
const PROMPT: &str = "The check fails. Find out why, mend it, and note it in CHANGELOG.md.";

/// What lies in the folder: name, text, whether it can be run.
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

/// How long the person may think about a question before the demo answers.
const THINKS: Duration = Duration::from_secs(30);

/// Plays it.
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    log::start(shared.log.as_deref().unwrap_or("warn"), &[]);
    let failed =
        |error: std::io::Error| Failure::failed(format!("cannot make a scratch folder: {error}"));
    let folder = tempfile::Builder::new()
        .prefix("haft-demo-")
        .tempdir()
        .map_err(failed)?;
    // The umask may have taken away what the owner needs.
    haft::ops::private::folder(folder.path()).map_err(failed)?;
    let work = folder.path().join("work");
    lay_out(&work).map_err(failed)?;
    let exit = signals::block_on(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            played = play(folder.path(), &work) => played.map(|()| Exit::Done),
            exit = signals.next() => Ok(exit),
        }
    })?;
    folder
        .close()
        .map_err(|error| Failure::failed(format!("cannot remove the scratch folder: {error}")))?;
    if exit == Exit::Done {
        goodbye()?;
    } else if output::can_ask() {
        // The prompt of the shell is not to stand behind ours.
        output::note("");
    }
    Ok(exit)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the scratch folder is made before there is a scope"
)]
fn lay_out(work: &Path) -> std::io::Result<()> {
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
        "{}\nThe model's words are a recording. The tools, the sandbox, the question and the\nsession are real, in a scratch folder: no key, no network.\n",
        paint.bold("An agent at work with haft.")
    ))?;
    let failed = |error: String| Failure::failed(error);
    let (approver, mut questions) = chat::person();
    let id = new_id();
    let runtime = Runtime::builder()
        .dir(work)
        .session(&id)
        .folders(haft::Folders {
            // It leaves nothing behind, outputs neither.
            state: Some(folder.join("state")),
            ..env::folders()
        })
        .preset("all")
        .commands(session::here(Network::Off, &[]))
        .policy(policy().map_err(failed)?)
        .approver(approver)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    let recording = Recording::parse(RECORDING).map_err(|error| failed(error.to_string()))?;
    let pace = Duration::from_millis(if on_terminal { 25 } else { 0 });
    let recording = recording.pace(pace);
    let declined = recording.session(DECLINED);
    let model = Arc::new(Played {
        usual: recording.model(),
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
    let begun = sessions.begin(New {
        id: Some(id),
        kind: Kind::Agent,
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
        chosen: Chosen::default(),
        sessions: Some(sessions),
        work_dir: work.to_owned(),
        is_left: AtomicBool::new(false),
        commands: AtomicU64::new(0),
        outputs: Arc::default(),
    };
    let stage = Stage {
        paint: chat::Look::of(
            on_terminal,
            env::text("TERM").as_deref(),
            env::colour_welcome(),
            false,
        )
        .paint,
        columns: output::width().unwrap_or(80).clamp(40, 100),
        around: Around {
            file: None,
            sandbox: Some(
                "it would run in the sandbox: only this folder can be written, no network"
                    .to_owned(),
            ),
        },
        is_screen: on_terminal,
        answers: &|_| Box::pin(answered()),
    };
    match chat::play(&live, PROMPT, &stage, &mut questions).await {
        // The reader has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        played => played.map_err(|error| failed(error.to_string())),
    }
}

/// The recording. It does not claim to have done what the person did not allow.
struct Played {
    usual: Arc<dyn Model>,
    declined: Arc<dyn Model>,
}

#[async_trait]
impl Model for Played {
    fn id(&self) -> ModelId {
        self.usual.id()
    }

    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<haft_agent::Answer, ModelError> {
        let was_refused = match request.history.last().map(|said| &said.message) {
            Some(Message::Tool { results }) => results
                .iter()
                .any(|result| result.tool == "write" && result.is_error),
            _ => false,
        };
        match was_refused {
            true => self.declined.answer(request, show).await,
            false => self.usual.answer(request, show).await,
        }
    }
}

/// The log of changes is the person's: writing to it is asked about.
fn policy() -> Result<Policy, String> {
    let place = Place {
        file: "haft.yaml".to_owned(),
        line: 2,
    };
    let mut draft = Draft::new(Verdict::Ask, "write", place);
    draft.path = Some("CHANGELOG.md".to_owned());
    let rule = Rule::new(draft).map_err(|error| error.to_string())?;
    Ok(Policy::new(vec![RuleFile {
        whose: Whose::Person,
        rules: vec![rule],
    }]))
}

/// What the person says; the demo says yes where nobody is, or nobody answers.
async fn answered() -> Answer {
    if !output::can_ask() {
        let _ = output::raw("  y (nobody is here to be asked, so the demo says yes)\n\n");
        return Answer::Approve;
    }
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    let mut says = typed();
    loop {
        output::prompt("y approve · n reject, then Enter › ");
        let word = match tokio::time::timeout(THINKS, says.recv()).await {
            Ok(Some(word)) => word.trim().to_ascii_lowercase(),
            Ok(None) => return Answer::Reject { reason: None },
            Err(_) => {
                output::note("y (the demo goes on)");
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

/// The lines that are typed, read by a thread that keeps nobody from leaving.
fn typed() -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (said, says) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                break;
            }
        }
    });
    says
}

fn goodbye() -> Result<(), Failure> {
    let paint = Paint::for_stdout();
    output::raw(&format!(
        "\n{}\n  export ANTHROPIC_API_KEY=…   then `haft` is this, live, in your folder\n  \
         haft mcp                     the same tools for the agent you have\n  \
         haft call ls path=.          one tool, from the shell\n",
        paint.bold("The scratch folder and all it started are gone. Next:")
    ))
}
