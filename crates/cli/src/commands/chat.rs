//! `haft` in a terminal: a chat with an agent.

use super::resume;
use super::sessions::told;
use crate::agent::driver::Live;
use crate::agent::{self, Past};
use crate::args::Shared;
use crate::args::agent::Resume;
use crate::chat::{self, Around, Before, Ended, Greeting, Look, Setup};
use crate::config::{FILE, Settings};
use crate::exit::{Exit, Failure};
use crate::{env, output, place, session, signals, text};
use haft::Content;
use haft::ops::text::brief;
use haft_agent::{Message, Origin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a chat begins with.
pub(crate) enum Begin {
    /// Nothing.
    New,
    /// A session; the newest of this folder if it is not named.
    Session(Option<String>),
}

/// Talks until the person has had enough.
pub(crate) fn run(shared: &Shared, begin: Begin) -> Result<Exit, Failure> {
    let mut settings = session::settings_of_chat(shared)?;
    if agent::model(&settings)?.is_none() {
        return Err(agent::no_model());
    }
    let sessions = agent::sessions(&settings)?;
    let past = match begin {
        Begin::New => Past::New,
        Begin::Session(session) => {
            let sessions = sessions.as_ref().ok_or_else(|| {
                Failure::usage("there is no state folder, so no sessions: set HOME")
            })?;
            let args = Resume {
                session,
                ..Resume::default()
            };
            let (id, _) = resume::which(sessions, &settings, &args)?;
            let looked = sessions.look(&id).map_err(told)?;
            settings = resume::in_its_folder(shared, settings, &looked.info.work_dir)?;
            Past::Session(Box::new(sessions.take(&id).map_err(told)?))
        }
    };
    settings.open_to_tools()?;
    let is_resumed = matches!(past, Past::Session(_));
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let chosen = settings.model.clone()?;
    let ended = signals::block_on(async {
        let (approver, questions) = chat::person();
        let agent = agent::agent(&settings, model, past, sessions.as_ref(), approver).await?;
        let is_left = is_resumed && agent.has_work();
        let notes = notes(&agent, is_resumed, is_left);
        let mut setup = setup(&settings, agent.model().id().model, notes);
        setup.greeting.before = before(&agent);
        let live = Arc::new(Live {
            agent,
            chosen,
            sessions: sessions.clone(),
            work_dir: settings.work_dir.clone(),
            is_left: AtomicBool::new(is_left),
            commands: AtomicU64::new(0),
            outputs: Arc::default(),
        });
        let ended = chat::run(live.clone(), setup, questions).await;
        note_background(&live.agent.background_tasks(), live.agent.session());
        agent::close_now(&live.agent).await;
        ended.map_err(|error| Failure::failed(format!("the terminal cannot be used: {error}")))
    })?;
    Ok(match ended {
        Ended::Quit => Exit::Done,
        Ended::Signal(number) => Exit::Signal(number),
    })
}

/// Says that sub-agents in the background end with the chat.
fn note_background(tasks: &[String], session: &str) {
    let plural = if tasks.len() == 1 { "" } else { "s" };
    if !tasks.is_empty() {
        output::note(&format!(
            "stopped {} background sub-agent{plural}: {}; haft resume {session} goes on with the session",
            tasks.len(),
            tasks.join(", ")
        ));
    }
}

/// Pending calls that are named.
const NAMED: usize = 3;

/// Characters of a pending call that are shown.
const CALL: usize = 100;

/// What somebody should know who goes on with a session.
fn notes(agent: &haft_agent::Agent, is_resumed: bool, is_left: bool) -> Vec<String> {
    if !is_resumed {
        return Vec::new();
    }
    let mut notes = vec![format!(
        "resumed session {} ({} messages)",
        agent.session(),
        agent.history().len()
    )];
    // Those of sub-agents too, also where they work in the background.
    let questions = agent.questions();
    let questions: Vec<_> = questions
        .iter()
        .map(|asked| {
            (
                format!("{} {}", asked.tool, asked.about),
                asked.agent.as_deref(),
            )
        })
        .collect();
    notes.extend(pending(&questions));
    if questions.is_empty() && is_left {
        notes.push("interrupted: press Enter to continue".to_owned());
    }
    notes
}

/// Names the calls that need the user's approval, each with its sub-agent, and says how to
/// answer.
fn pending(questions: &[(String, Option<&str>)]) -> Vec<String> {
    let mut notes = Vec::new();
    for (call, agent) in questions.iter().take(NAMED) {
        let of = agent.map_or_else(String::new, |agent| format!(" (sub-agent {agent})"));
        let call = brief(text::on_one_line(call), CALL);
        notes.push(format!("waiting for your approval: {call}{of}"));
    }
    if let Some(more @ 1..) = questions.len().checked_sub(NAMED) {
        notes.push(format!("and {more} more"));
    }
    if !questions.is_empty() {
        notes.push("press Enter to be asked again".to_owned());
    }
    notes
}

/// What was said last.
fn before(agent: &haft_agent::Agent) -> Option<Before> {
    let mut before = Before::default();
    for said in agent.history().iter().rev() {
        match &said.message {
            Message::Assistant(answer) if before.answer.is_empty() => before.answer = answer.text(),
            Message::User {
                content,
                origin: Origin::Prompt,
            } => {
                let texts = content.iter().filter_map(|block| match block {
                    Content::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                before.prompt = texts.collect::<Vec<_>>().join("\n");
                return Some(before);
            }
            _ => {}
        }
    }
    None
}

fn setup(settings: &Settings, model: String, notes: Vec<String>) -> Setup {
    let sandbox = match place::is_off(settings) {
        true => "off".to_owned(),
        false => settings.mode.clone(),
    };
    let home = settings.folders.home.as_deref();
    let folder = match home.and_then(|home| settings.work_dir.strip_prefix(home).ok()) {
        Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Some(below) => format!("~/{}", below.display()),
        None => settings.work_dir.display().to_string(),
    };
    let config = settings.folders.config.as_ref();
    Setup {
        greeting: Greeting {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model,
            folder,
            sandbox,
            notes,
            before: None,
        },
        look: Look::of(
            output::can_chat(),
            env::text("TERM").as_deref(),
            env::colour_welcome(),
            true,
        ),
        history: settings
            .folders
            .state
            .as_ref()
            .map(|state| state.join("history")),
        scratch: settings.folders.state.clone(),
        editor: env::editor(),
        around: Around {
            file: config.map(|config| config.join(FILE)),
            sandbox: Some(place::on_a_line(settings)),
        },
    }
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
        assert_eq!(many.len(), NAMED + 2);
        assert_eq!(many[NAMED], "and 2 more");
    }
}
