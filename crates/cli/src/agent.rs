//! From settings to an agent: its model, its tools, its record.

mod children;
pub(crate) mod driver;
mod headless;
mod progress;
mod told;

pub(crate) use told::skills_of_project;

pub(crate) use headless::{Away, Manner, Task, work};

use crate::config::{Settings, model};
use crate::env;
use crate::exit::Failure;
use crate::output;
use crate::record;
use crate::session;
use haft::Approver;
use haft_agent::provider::{self, Provider, Recording, Secret};
use haft_agent::{Agent, Model};
use haft_store::sessions::{Kind, Loaded, New, Session, Sessions, new_id};
use std::sync::Arc;

/// Models that are asked where nobody names one.
const USUAL: [(Provider, &str); 4] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenaiResponses, "gpt-5"),
    (Provider::OpenaiCompletions, "gpt-5"),
    (Provider::Google, "gemini-2.5-pro"),
];

/// The model that answers; nothing if nobody has said which.
pub(crate) fn model(settings: &Settings) -> Result<Option<Arc<dyn Model>>, Failure> {
    let model = settings.model.as_ref().map_err(Failure::clone)?;
    model_of(model, model.model.as_deref())
}

/// The same with another name.
pub(crate) fn model_of(
    model: &model::Model,
    name: Option<&str>,
) -> Result<Option<Arc<dyn Model>>, Failure> {
    if model.provider.as_deref() == Some("replay") {
        let file = model.replay.as_ref().ok_or_else(|| {
            Failure::usage("provider replay needs a recording")
                .hint("`replay: session.jsonl`, as `haft sessions export` makes it")
        })?;
        let recording = Recording::read(file).map_err(|error| Failure::usage(error.to_string()))?;
        return Ok(Some(recording.model()));
    }
    // A key that nobody said the owner of is for whom it would be used without a name.
    let mut is_for_it = true;
    let (provider, name) = match (&model.provider, name) {
        (Some(provider), name) => (named(provider)?, name),
        // `anthropic/claude-…` names both.
        (None, Some(name)) => match name.split_once('/') {
            Some((provider, rest)) if provider.parse::<Provider>().is_ok() => {
                let provider = named(provider)?;
                is_for_it = found(model).is_none_or(|usual| usual == provider);
                (provider, Some(rest))
            }
            _ => match found(model) {
                Some(provider) => (provider, Some(name)),
                None => return Ok(None),
            },
        },
        (None, None) => match found(model) {
            Some(provider) => (provider, None),
            None => return Ok(None),
        },
    };
    let usual = USUAL.iter().find(|(known, _)| *known == provider);
    let name = name.or(usual.map(|(_, name)| *name)).unwrap_or_default();
    let mut settings = provider::Settings::new(provider, name);
    settings.base_url.clone_from(&model.base_url);
    settings.api_key = model.api_key.clone().filter(|_| is_for_it);
    if settings.api_key.is_none() && !model.is_keyless {
        settings.api_key = key_of(provider);
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

/// The first provider whose key is there.
fn found(model: &model::Model) -> Option<Provider> {
    if model.base_url.is_some() {
        // An address without a provider: what most of them speak.
        return Some(Provider::OpenaiCompletions);
    }
    let known = USUAL.iter().map(|(provider, _)| *provider);
    let mut keyed = known.filter(|provider| key_of(*provider).is_some());
    keyed.next()
}

/// The key that the environment has for a provider.
fn key_of(provider: Provider) -> Option<Secret> {
    let variable = provider.key_variable()?;
    let value = env::text(variable).filter(|value| !value.trim().is_empty());
    value.map(Secret::new)
}

/// What to do where there is no model.
pub(crate) fn no_model() -> Failure {
    Failure::usage("no model to ask: there is neither a key nor a configuration")
        .hint("a key: export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)")
        .hint("a model of your own: `provider: ollama` and `model: NAME` in haft.yaml")
        .hint("neither: `haft demo` plays a recorded session with real tools")
}

/// What an agent begins with.
pub(crate) enum Past {
    /// Nothing.
    New,
    /// A recorded session.
    Session(Box<(Session, Loaded)>),
}

/// Whether it is known what a model costs.
fn has_price(provider: &str, model: &str) -> bool {
    let known = provider.parse::<Provider>().ok();
    known.is_some_and(|provider| provider::price(provider, model).is_some())
}

/// The sessions of this person; nothing without a state folder.
pub(crate) fn sessions(settings: &Settings) -> Result<Option<Sessions>, Failure> {
    let Some(state) = settings.folders.state.as_deref() else {
        return Ok(None);
    };
    let opened = record::open(state, &settings.secrets).map_err(|reason| {
        Failure::failed(format!(
            "nothing can be recorded, so nothing is begun: {reason}"
        ))
    })?;
    Ok(Some(opened))
}

/// Makes the agent.
pub(crate) async fn agent(
    settings: &Settings,
    model: Arc<dyn Model>,
    past: Past,
    sessions: Option<&Sessions>,
    approver: Arc<dyn Approver>,
) -> Result<Agent, Failure> {
    let limits = settings.model.as_ref().map_err(Failure::clone)?;
    let (session, loaded) = match past {
        Past::Session(past) => {
            let (session, loaded) = *past;
            (Some(session), Some(loaded))
        }
        Past::New => (None, None),
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
    let going_on = session::GoingOn {
        id: match &session {
            Some(session) => session.id().to_owned(),
            None => new_id(),
        },
        state: state.unwrap_or_default(),
        files,
    };
    let runtime = session::build_for_agent(settings, approver, going_on)?;
    session::ready(&runtime, settings.quiet).await;
    let told = told::told(settings, limits, &runtime).await;
    let stored = loaded
        .as_ref()
        .and_then(|loaded| loaded.info.system.clone());
    let system = stored.unwrap_or(told.system);
    let id = model.id();
    let new = New {
        id: Some(runtime.session().to_owned()),
        kind: Kind::Agent,
        work_dir: settings.work_dir.clone(),
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
    let mut agent = Agent::new(model, runtime)
        .system(system)
        .max_tokens(limits.max_tokens)
        .max_cost(limits.max_cost);
    if let Some(turns) = limits.max_turns {
        agent = agent.max_turns(turns);
    }
    if let Some(retries) = limits.max_retries {
        agent = agent.max_retries(retries);
    }
    let failed = |reason: String| Failure::failed(reason);
    let agent = match (session, loaded, sessions) {
        (Some(session), Some(loaded), _) => agent
            .resuming(session, &loaded)
            .map_err(|error| failed(error.to_string()))?,
        (_, _, Some(sessions)) => {
            let begun = sessions.begin(new);
            agent.recorded(begun.map_err(|error| failed(error.to_string()))?)
        }
        _ => agent,
    };
    let surroundings = told.surroundings;
    let agent = children::with_children(agent, settings, limits, sessions, surroundings).await?;
    session::note_interrupts(settings, agent.runtime());
    Ok(agent)
}
