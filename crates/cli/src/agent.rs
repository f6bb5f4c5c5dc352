//! Builds an agent from settings: its model, tools, system prompt and recorded session.

mod branch;
mod children;
pub(crate) mod driver;
pub(crate) mod earlier;
mod headless;
mod instructions;
mod last_run;
pub(crate) mod model_choice;
pub(crate) mod plan;
mod progress;
pub(crate) mod seed;

pub(crate) use headless::{DeferApprovals, OutputMode, Task, work};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::record;
use crate::session;
use crate::signals::Signals;
use haft::Approver;
use haft_agent::provider::{self, Provider, Recording};
use haft_agent::{Agent, Model, ResponseFormat};
use haft_config::provider::{default_model, key_of, prefix};
use haft_config::{Settings, format, model};
use haft_store::sessions::{Loaded, NewSession, Session, SessionKind, Sessions, new_id};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Connects to the configured model; `None` if no model is configured.
pub(crate) fn model(settings: &Settings) -> Result<Option<Arc<dyn Model>>, Failure> {
    let model = settings.model.as_ref().map_err(Clone::clone)?;
    model_of(model, model.model.as_deref())
}

/// Connects to a model by name, with the other settings of `model`.
pub(crate) fn model_of(
    model: &model::Model,
    name: Option<&str>,
) -> Result<Option<Arc<dyn Model>>, Failure> {
    if model.provider.as_deref() == Some("replay") {
        let file = model.replay.as_ref().ok_or_else(|| {
            Failure::usage("provider replay needs a recording: `replay` is not set")
                .hint("set `replay: session.jsonl` to a file written by `haft sessions export`")
        })?;
        let recording = Recording::read(file).map_err(|error| Failure::usage(error.to_string()))?;
        return Ok(Some(recording.model()));
    }
    let requested = name;
    let (provider, name) = match (&model.provider, name) {
        (Some(provider), name) => {
            let provider = named(provider)?;
            // The prefix of `anthropic/claude-…` may repeat the provider.
            let rest = name
                .and_then(prefix)
                .filter(|(named, _)| *named == provider);
            (provider, rest.map(|(_, rest)| rest).or(name))
        }
        (None, name) => match (name.and_then(prefix), &model.fallback_provider) {
            // `anthropic/claude-…` names both.
            (Some((provider, rest)), _) => (provider, Some(rest)),
            (None, Some(provider)) => (named(provider)?, name),
            (None, None) => match name.and_then(|name| name.split_once('/')) {
                // Without a provider, the part before the slash should be one; if it is
                // not, the error says so.
                Some((provider, _)) => (named(provider)?, None),
                None => return Ok(None),
            },
        },
    };
    let name = name.or(default_model(provider)).unwrap_or_default();
    let mut settings = provider::Settings::new(provider, name);
    let address = model.base_url.as_ref();
    settings.base_url = address.and_then(|given| given.for_provider(provider).cloned());
    let key = model.api_key.as_ref();
    settings.api_key = key.and_then(|given| given.for_provider(provider).cloned());
    if requested == model.model.as_deref() {
        settings.context_window = model.context_window;
    }
    settings.effort = model.effort;
    if settings.api_key.is_none() && !model.is_keyless {
        settings.api_key = key_of(provider, crate::env::read());
    }
    let connected = provider::connect(settings);
    connected
        .map(Some)
        .map_err(|error| Failure::usage(error.to_string()))
}

fn named(name: &str) -> Result<Provider, Failure> {
    name.parse::<Provider>()
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Returns the format of the final answer, from the command line or the configuration.
pub(crate) fn response_format(
    settings: &Settings,
    file: Option<&Path>,
) -> Result<Option<ResponseFormat>, Failure> {
    let schema = match file {
        Some(file) => Some(format::read(file)?),
        None => {
            let model = settings.model.as_ref().map_err(Clone::clone)?;
            model.response_format.clone()
        }
    };
    let place = file.map_or("haft.yaml".into(), Path::to_string_lossy);
    let format = schema.map(|schema| format::compile(&schema, &place));
    Ok(format.transpose()?)
}

/// Error for a missing model, with the ways to get one.
pub(crate) fn no_model() -> Failure {
    Failure::usage("no model configured: found neither an API key nor a provider")
        .hint("with a key: export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)")
        .hint("with a local model: set `provider: ollama` and `model: NAME` in haft.yaml")
        .hint("without a model: `haft demo` plays a recorded session with real tools")
}

/// Starting point of an agent.
pub(crate) enum Past {
    /// An empty conversation.
    New,
    /// An empty conversation with this id.
    NewWithId(String),
    /// An empty conversation, and files to store in the session, by path.
    Files(Vec<(String, Vec<u8>)>),
    /// A recorded session to resume.
    Session(Box<(Session, Loaded)>),
}

/// Whether the model's price is known.
fn has_price(provider: &str, model: &str) -> bool {
    let known = provider.parse::<Provider>().ok();
    known.is_some_and(|provider| provider::price(provider, model).is_some())
}

/// Opens the user's sessions; `None` without a state folder.
pub(crate) fn sessions(settings: &Settings) -> Result<Option<Sessions>, Failure> {
    let Some(state) = settings.folders.state.as_deref() else {
        return Ok(None);
    };
    let opened = record::open(state, &settings.secrets).map_err(|reason| {
        Failure::failed(format!(
            "cannot record the session, so it was not started: {reason}"
        ))
    })?;
    Ok(Some(opened))
}

/// Ends everything the agent started; prints and records the result of the last check of
/// protected files.
pub(crate) async fn close_now(agent: &Agent) {
    for note in agent.close().await {
        output::note(&haft::ops::text::decode::visible(&note));
    }
}

/// Closes the agent unless a signal comes first.
pub(crate) async fn close(agent: &Agent, signals: &mut Signals) -> Option<Exit> {
    tokio::select! {
        () = close_now(agent) => None,
        exit = signals.next() => Some(exit),
    }
}

/// Time that the chat waits for tools of servers and plugins before it starts.
const CHAT_WAIT: Duration = Duration::from_secs(2);

/// Time to wait for the tools of servers and plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolsWait {
    /// Until all are there, because the first answer may need them.
    All,
    /// Briefly. Later ones are there from the next turn on.
    Briefly,
}

/// Builds the agent.
pub(crate) async fn agent(
    settings: &Settings,
    model: Arc<dyn Model>,
    past: Past,
    sessions: Option<&Sessions>,
    approver: Arc<dyn Approver>,
    wait: ToolsWait,
) -> Result<Agent, Failure> {
    let limits = settings.model.as_ref().map_err(Clone::clone)?;
    let mut seeds = Vec::new();
    let mut given_id = None;
    let (session, loaded) = match past {
        Past::Session(past) => {
            let (session, loaded) = *past;
            (Some(session), Some(loaded))
        }
        Past::New => (None, None),
        Past::NewWithId(id) => {
            given_id = Some(id);
            (None, None)
        }
        Past::Files(files) => {
            seeds = files;
            (None, None)
        }
    };
    let files = match (&session, sessions) {
        (Some(session), Some(sessions)) => {
            let files = sessions.files(session.id());
            files.map_err(|error| Failure::failed(error.to_string()))?
        }
        _ => Vec::new(),
    };
    let state = loaded.as_ref().and_then(|loaded| loaded.state.as_deref());
    let state = state.and_then(|state| serde_json::from_str(state).ok());
    let saved = session::SessionState {
        id: match &session {
            Some(session) => session.id().to_owned(),
            None => given_id.unwrap_or_else(new_id),
        },
        state: state.unwrap_or_default(),
        files,
    };
    let runtime = session::build_for_agent(settings, approver, saved)?;
    seed::seed(&runtime, seeds).await?;
    let is_loaded = match wait {
        ToolsWait::All => {
            session::ready(&runtime, settings.quiet).await;
            true
        }
        ToolsWait::Briefly => {
            let loading = session::ready_later(settings, &runtime);
            tokio::time::timeout(CHAT_WAIT, loading).await.is_ok()
        }
    };
    let parts = instructions::collect(settings, limits, &runtime).await;
    let id = model.id();
    let mut agent = Agent::new(model, runtime)
        .max_tokens(limits.max_tokens)
        .max_cost(limits.max_cost);
    if let Some(turns) = limits.max_turns {
        agent = agent.max_turns(turns);
    }
    if let Some(retries) = limits.max_retries {
        agent = agent.max_retries(retries);
    }
    let surroundings = parts.surroundings();
    let agent = children::with_children(agent, settings, limits, sessions, surroundings).await?;
    let stored = loaded
        .as_ref()
        .and_then(|loaded| loaded.info.system.clone());
    // Built last: sub-agents are tools too, and the section about tools lists them.
    let system = stored.unwrap_or_else(|| parts.system_prompt(agent.runtime()));
    let new = NewSession {
        id: Some(agent.session().to_owned()),
        kind: SessionKind::Agent,
        work_dir: settings.paths.work_dir.clone(),
        toolset: settings.toolset.clone(),
        provider: id.provider,
        model: id.model,
        title: None,
        parent: None,
        system: Some(system.clone()),
    };
    if limits.max_cost.is_some() && !settings.quiet && !has_price(&new.provider, &new.model) {
        output::note(&format!(
            "warning: max_cost has no effect: the price of {} is not known",
            settings.as_written("model").unwrap_or(&new.model)
        ));
    }
    let agent = agent.system(system);
    let failed = |reason: String| Failure::failed(reason);
    let agent = match (session, loaded, sessions) {
        (Some(session), Some(loaded), sessions) => {
            // The user may have undone what sub-agents changed.
            if let Some(sessions) = &sessions {
                let inner = crate::effects::descendants(sessions, &loaded.info.id);
                agent.runtime().add_inner_sessions(inner);
            }
            agent
                .resuming(session, &loaded)
                .map_err(|error| failed(error.to_string()))?
        }
        (_, _, Some(sessions)) => {
            let begun = sessions.begin(new);
            agent.recorded(begun.map_err(|error| failed(error.to_string()))?)
        }
        _ => agent,
    };
    if is_loaded {
        session::note_interrupts(settings, agent.runtime());
    }
    Ok(agent)
}
