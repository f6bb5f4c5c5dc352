//! `haft` in a terminal: a chat with the agent.

use super::resume;
use super::sessions::failure;
use crate::agent::driver::Live;
use crate::agent::model_choice::ModelChoice;
use crate::agent::plan::PlanFile;
use crate::agent::{self, Past, earlier};
use crate::args::Shared;
use crate::args::agent::Resume;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::{confinement, output, saved_prompts, session, signals, text};
use haft::ops::executor::sandbox::Network;
use haft::ops::text::brief;
use haft_chat::{
    Driver, EndReason, Greeting, NextSession, QuestionContext, Setup, TerminalFeatures, Theme,
};
use haft_config::Settings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Session that a chat starts with.
pub(crate) enum StartSession {
    New,
    /// An existing session by id; the latest in this folder if `None`.
    Existing(Option<String>),
}

/// Runs a chat until the user quits; the user may go from one session to another.
pub(crate) fn run(shared: &Shared, start: StartSession) -> Result<Exit, Failure> {
    let mut shared = shared.clone();
    let mut ended = run_session(&shared, start, NextSession::default())?;
    loop {
        let next = match ended.reason {
            EndReason::Quit => return Ok(Exit::Done),
            EndReason::Signal(number) => return Ok(Exit::Signal(number)),
            EndReason::Switch(next) => next,
        };
        // What the user has chosen stays.
        shared.model = ended.model.or(shared.model);
        shared.effort = ended.effort.or(shared.effort);
        ended = match run_session(&shared, start_of(next.id.clone()), next) {
            Ok(next) => next,
            // Such as a session that another process has open: back to the one before.
            Err(failure) => {
                output::failure(&failure);
                run_session(&shared, start_of(ended.session), NextSession::default())?
            }
        };
    }
}

fn start_of(session: Option<String>) -> StartSession {
    match session {
        Some(id) => StartSession::Existing(Some(id)),
        None => StartSession::New,
    }
}

/// The end of a session.
struct Ended {
    reason: EndReason,
    /// Id of the session, if it can be resumed.
    session: Option<String>,
    /// The model and the effort that the user had chosen in the end.
    model: Option<String>,
    effort: Option<String>,
}

/// Runs a chat in one session; `next` says how it begins.
fn run_session(shared: &Shared, start: StartSession, next: NextSession) -> Result<Ended, Failure> {
    let planning = Shared {
        sandbox: Some("read-only".to_owned()),
        ..shared.clone()
    };
    let shared = if next.is_planning { &planning } else { shared };
    let mut settings = session::settings_of_chat(shared)?;
    if agent::model(&settings)?.is_none() {
        return Err(agent::no_model());
    }
    let sessions = agent::sessions(&settings)?;
    let mut conversation = Vec::new();
    let past = match start {
        StartSession::New => Past::New,
        StartSession::Existing(session) => {
            let sessions = sessions
                .as_ref()
                .ok_or_else(|| Failure::usage("sessions need a state folder: set HOME"))?;
            let args = Resume {
                session,
                ..Resume::default()
            };
            let (id, _) = resume::session_and_prompt(sessions, &settings, &args)?;
            let stored = sessions.load(&id).map_err(failure)?;
            settings = resume::in_its_folder(shared, settings, &stored.info.work_dir)?;
            conversation = earlier::recalled(sessions, &stored);
            Past::Session(Box::new(sessions.resume(&id).map_err(failure)?))
        }
    };
    settings.paths.open_to_tools()?;
    let is_resumed = matches!(past, Past::Session(_));
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let chosen = settings.model.clone()?;
    let settings = Arc::new(settings);
    signals::block_on(async {
        let (approver, requests) = haft_chat::approver();
        let wait = agent::ToolsWait::Briefly;
        let agent = agent::agent(&settings, model, past, sessions.as_ref(), approver, wait).await?;
        let has_unfinished_run = is_resumed && agent.has_work();
        let notes = notes(&agent, is_resumed, has_unfinished_run);
        let mut setup = setup(&settings, agent.model().id().model, notes);
        setup.greeting.conversation = conversation;
        setup.first_prompt = next.prompt;
        setup.draft = next.draft;
        let state = settings.folders.state.as_deref();
        let state = state.filter(|_| next.is_planning);
        let live = Arc::new(Live {
            plan: state.map(|state| PlanFile::new(state, agent.session())),
            agent,
            model_choice: ModelChoice::new(chosen),
            sessions: sessions.clone(),
            work_dir: settings.paths.work_dir.clone(),
            has_unfinished_run: AtomicBool::new(has_unfinished_run),
            commands: AtomicU64::new(0),
            outputs: Arc::default(),
            run_started: std::sync::Mutex::default(),
            settings: Some(Arc::clone(&settings)),
        });
        output::use_screen(true);
        let ended = haft_chat::run(live.clone(), setup, requests).await;
        output::use_screen(false);
        note_background(&live.agent.background_tasks(), live.agent.session());
        agent::close_now(&live.agent).await;
        let ended =
            ended.map_err(|error| Failure::failed(format!("cannot use the terminal: {error}")))?;
        Ok(Ended {
            reason: ended,
            session: live.session_id(),
            model: live.model_choice.name(),
            effort: live.effort(),
        })
    })
}

/// Reports background sub-agents that are stopped because the chat ends.
fn note_background(tasks: &[String], session: &str) {
    let plural = if tasks.len() == 1 { "" } else { "s" };
    if !tasks.is_empty() {
        output::note(&format!(
            "stopped {} background sub-agent{plural}: {}; to resume the session: haft resume {session}",
            tasks.len(),
            tasks.join(", ")
        ));
    }
}

/// Number of pending calls that are listed.
const MAX_LISTED: usize = 3;

/// Maximum characters shown of a pending call.
const MAX_CALL_CHARS: usize = 100;

/// Returns the notes shown when a session is resumed.
fn notes(agent: &haft_agent::Agent, is_resumed: bool, has_unfinished_run: bool) -> Vec<String> {
    if !is_resumed {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "resumed session {} ({} messages)",
        agent.session(),
        agent.history().len()
    )];
    // Includes calls of sub-agents, even those in the background.
    let questions = agent.pending_approvals();
    let questions: Vec<_> = questions
        .iter()
        .map(|pending| {
            (
                format!("{} {}", pending.tool, pending.about),
                pending.agent.as_deref(),
            )
        })
        .collect();
    notes.extend(pending(&questions));
    if questions.is_empty() && has_unfinished_run {
        notes.push("interrupted: press Enter to continue".to_owned());
    }
    notes
}

/// Lists the calls that need the user's approval and says how to answer them.
fn pending(questions: &[(String, Option<&str>)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (call, agent) in questions.iter().take(MAX_LISTED) {
        let origin = agent.map_or_else(String::new, |agent| format!(" (sub-agent {agent})"));
        let call = brief(text::on_one_line(call), MAX_CALL_CHARS);
        notes.push(format!("waiting for your approval: {call}{origin}"));
    }
    if let Some(more @ 1..) = questions.len().checked_sub(MAX_LISTED) {
        notes.push(format!("and {more} more"));
    }
    if !questions.is_empty() {
        notes.push("press Enter to be asked again".to_owned());
    }
    notes
}

fn setup(settings: &Settings, model: String, notes: Vec<String>) -> Setup {
    let sandbox = match confinement::is_off(settings) {
        true => "off".to_owned(),
        false => settings.mode.clone(),
    };
    let home = settings.folders.home.as_deref();
    let folder = match home.and_then(|home| settings.paths.work_dir.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => settings.paths.work_dir.display().to_string(),
    };
    Setup {
        greeting: Greeting {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model,
            folder,
            sandbox: format!("sandbox {sandbox}"),
            network: network(settings),
            notes,
            conversation: Vec::new(),
        },
        terminal: themed(
            settings,
            TerminalFeatures::detect(
                output::can_chat(),
                env::read().text("TERM").as_deref(),
                env::allows_colour(),
                true,
            ),
        ),
        history_file: settings
            .folders
            .state
            .as_ref()
            .map(|state| state.join("history")),
        scratch_folder: settings.folders.state.clone(),
        editor: env::editor(),
        question_context: QuestionContext {
            sandbox: Some(confinement::summary(settings)),
        },
        prompts: saved_prompts::read(settings.folders.config.as_deref()),
        first_prompt: None,
        draft: String::new(),
    }
}

/// Chooses the theme: the user's, or the one that fits the terminal.
fn themed(settings: &Settings, terminal: TerminalFeatures) -> TerminalFeatures {
    let theme = settings.chat.theme.as_deref().and_then(Theme::named);
    let environment = env::read();
    terminal.themed(
        theme.unwrap_or_default(),
        environment.text("COLORTERM").as_deref(),
        environment.text("COLORFGBG").as_deref(),
    )
}

/// The network of commands in a word or two.
fn network(settings: &Settings) -> String {
    let network = match settings.commands.network {
        _ if confinement::is_off(settings) => return String::new(),
        Network::On => "on",
        Network::Session if settings.policy.opens_hosts() => "by host",
        Network::Session | Network::Off => "off",
    };
    format!("network {network}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_calls_are_named_when_a_session_is_resumed() {
        let call = || "bash make".to_owned();
        assert!(pending(&[]).is_empty());
        assert_eq!(
            pending(&[(call(), Some("researcher"))]),
            [
                "waiting for your approval: bash make (sub-agent researcher)",
                "press Enter to be asked again",
            ]
        );
        let many: Vec<_> = (0..5).map(|_| (call(), None)).collect();
        let many = pending(&many);
        assert_eq!(many.len(), MAX_LISTED + 2);
        assert_eq!(many[MAX_LISTED], "and 2 more");
    }
}
