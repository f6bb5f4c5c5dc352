//! Opens, lists, copies and deletes sessions for an editor.

use super::super::sessions::{delete, failure as store_failure};
use super::offers;
use super::seat::EditorSeat;
use crate::agent::{self, Past};
use crate::args::Shared;
use crate::exit;
use crate::{effects, log};
use async_trait::async_trait;
use futures::FutureExt;
use haft::Approve;
use haft_acp::{
    Choices, Failure, FailureKind, Host, Listed, Mode, Opened, ProgramInfo, Server, Start, Wanted,
};
use haft_agent::Message;
use haft_config::{FolderChoice, Settings};
use haft_store::sessions::{Error, Filter, Loaded, SessionKind, Sessions};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Once};

/// The sessions and settings of the user who runs the editor.
pub(super) struct EditorHost {
    shared: Shared,
    log_started: Once,
}

/// Converts an error of a command.
fn failed(kind: FailureKind, failure: &exit::Failure) -> Failure {
    let message = failure.message.strip_prefix("error: ");
    let mut message = message.unwrap_or(&failure.message).to_owned();
    for hint in &failure.hints {
        message.push_str(&format!("\n{hint}"));
    }
    Failure { kind, message }
}

fn other(failure: impl Into<exit::Failure>) -> Failure {
    failed(FailureKind::Failed, &failure.into())
}

fn of_store(error: Error) -> Failure {
    match &error {
        Error::InUse { id, .. } => Failure {
            kind: FailureKind::InUse,
            message: format!(
                "session {id} is in use by another editor or terminal; close it there, or fork it"
            ),
        },
        _ => failed(FailureKind::Failed, &store_failure(error)),
    }
}

/// Returns the folder that a path leads to, through links too.
#[expect(
    clippy::disallowed_methods,
    reason = "the editor's own folders, before a scope exists"
)]
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.components().collect())
}

/// Returns a folder as it is recorded: as the editor writes it, so that its paths stay those of
/// the editor, but without slashes at the end and without steps back.
fn recorded_folder(path: &Path) -> PathBuf {
    let steps_back = path.components().any(|part| part == Component::ParentDir);
    match steps_back {
        true => real(path),
        false => path.components().collect(),
    }
}

/// Everything that is needed to open a session, apart from its record.
struct Prepared {
    settings: Settings,
    model: Arc<dyn haft_agent::Model>,
    /// Remark for the user.
    note: Option<String>,
}

impl EditorHost {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            log_started: Once::new(),
        }
    }

    /// Reads the configuration, which may have changed since the last session.
    fn settings(&self, folder: Option<&Path>, choices: &Choices) -> Result<Settings, Failure> {
        let chosen = |own: &Option<String>, given: &Option<String>| own.clone().or(given.clone());
        let is_default = choices.effort.as_deref() == Some(offers::DEFAULT_EFFORT);
        let level = choices.effort.clone().filter(|_| !is_default);
        let mut shared = Shared {
            dir: folder.map(Path::to_owned).or(self.shared.dir.clone()),
            model: chosen(&choices.model, &self.shared.model),
            effort: chosen(&level, &self.shared.effort),
            sandbox: chosen(&choices.sandbox, &self.shared.sandbox),
            network: chosen(&choices.network, &self.shared.network),
            ..self.shared.clone()
        };
        if choices.is_read_only {
            shared.sandbox = Some("read-only".to_owned());
        }
        let mut settings = haft_config::load(&shared.flags(), crate::env::read()).map_err(other)?;
        if let (true, Ok(model)) = (is_default, &mut settings.model) {
            model.effort = None;
        }
        self.log_started
            .call_once(|| log::start(&settings.log, &settings.secrets));
        crate::session::note_warnings(&settings);
        if folder.is_some() {
            // The editor names every folder; the user did not choose this one for haft.
            settings.paths.folder_choice = FolderChoice::Default;
        }
        Ok(settings)
    }

    /// Opens the record of sessions.
    fn sessions(&self) -> Result<(Settings, Sessions, PathBuf), Failure> {
        let settings = self.settings(None, &Choices::default())?;
        let state = settings.folders.state.clone().ok_or_else(|| Failure {
            kind: FailureKind::Failed,
            message: "sessions need a state folder: set HOME".to_owned(),
        })?;
        let sessions = agent::sessions(&settings).map_err(other)?;
        let sessions = sessions.ok_or_else(|| Failure {
            kind: FailureKind::Failed,
            message: "sessions need a state folder: set HOME".to_owned(),
        })?;
        Ok((settings, sessions, state))
    }
}

impl EditorHost {
    /// Reads the configuration for a session. `own` is the folder of a recorded one.
    fn prepare(&self, wanted: &Wanted, own: Option<&Path>) -> Result<Prepared, Failure> {
        let asked = recorded_folder(&wanted.folder);
        // A session stays in its folder, as long as that exists.
        let own = own.filter(|own| own.is_dir());
        let folder = own.map_or_else(|| asked.clone(), Path::to_owned);
        let note = (real(&folder) != real(&asked)).then(|| {
            format!(
                "the session works in {}, not in {}",
                folder.display(),
                asked.display()
            )
        });
        for path in std::iter::once(&folder).chain(&wanted.roots) {
            if !path.is_dir() {
                return Err(Failure {
                    kind: FailureKind::Invalid,
                    message: format!("not a folder: {}", path.display()),
                });
            }
        }
        let mut settings = self.settings(Some(&folder), &wanted.choices)?;
        settings.paths.open_to_tools().map_err(other)?;
        for root in &wanted.roots {
            // Tools may do in them what they may do in the work folder.
            let work_dir = std::mem::replace(&mut settings.paths.work_dir, root.clone());
            let checked = settings.paths.open_to_tools();
            settings.paths.work_dir = work_dir;
            checked.map_err(|failure| failed(FailureKind::Invalid, &failure.into()))?;
        }
        settings.paths.roots.extend(wanted.roots.iter().cloned());
        for server in wanted.servers.iter().cloned() {
            let (name, entry) = entry(server);
            settings
                .add_server(&name, entry)
                .map_err(|failure| failed(FailureKind::Invalid, &exit::Failure::from(failure)))?;
        }
        let model = model(&settings)?;
        Ok(Prepared {
            settings,
            model,
            note,
        })
    }
}

/// Returns a session's full id. Editors never shorten ids.
fn exact(sessions: &Sessions, id: &str) -> Result<String, Failure> {
    let missing = || Failure {
        kind: FailureKind::NotFound,
        message: format!("session {id} does not exist"),
    };
    match sessions.find(id) {
        Ok(found) if found == id => Ok(found),
        Ok(_) | Err(Error::Unknown { .. } | Error::Ambiguous { .. } | Error::TooShort { .. }) => {
            Err(missing())
        }
        Err(error) => Err(of_store(error)),
    }
}

/// Returns the conversation from its beginning, including what was compacted away.
pub(super) fn messages(loaded: &Loaded) -> Vec<Message> {
    let stored = loaded.messages.iter();
    stored
        .filter(|message| message.role != "compaction")
        .filter_map(|message| serde_json::from_str(&message.body).ok())
        .collect()
}

/// Returns an entry as in `tools.mcp`.
fn entry(server: Server) -> (String, Value) {
    let map = |pairs: Vec<(String, String)>| {
        let pairs = pairs.into_iter();
        Value::Object(
            pairs
                .map(|(name, value)| (name, value.into()))
                .collect::<Map<_, _>>(),
        )
    };
    match server {
        Server::Program {
            name,
            command,
            arguments,
            environment,
        } => {
            let command = command.to_string_lossy();
            let entry = json!({ "command": [command], "args": arguments, "env": map(environment) });
            (name, entry)
        }
        Server::Address {
            name,
            url,
            headers,
            is_sse,
        } => {
            let kind = if is_sse { "sse" } else { "http" };
            let entry = json!({ "type": kind, "url": url, "headers": map(headers) });
            (name, entry)
        }
    }
}

#[async_trait]
impl Host for EditorHost {
    fn info(&self) -> ProgramInfo {
        ProgramInfo {
            name: "haft".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    async fn check_model(&self) -> Result<(), Failure> {
        let settings = self.settings(None, &Choices::default())?;
        model(&settings).map(drop)
    }

    async fn check_open(&self, wanted: &Wanted) -> Result<(), Failure> {
        let own = match &wanted.start {
            Start::New(_) => None,
            Start::Recorded(id) => {
                let (_, sessions, _) = self.sessions()?;
                let loaded = sessions.load(&exact(&sessions, id)?).map_err(of_store)?;
                Some(loaded.info.work_dir)
            }
        };
        self.prepare(wanted, own.as_deref()).map(drop)
    }

    async fn open(&self, wanted: Wanted) -> Result<Opened, Failure> {
        let (past, own) = match &wanted.start {
            Start::New(None) => (Past::New, None),
            Start::New(Some(id)) => (Past::NewWithId(id.clone()), None),
            Start::Recorded(id) => {
                let (_, sessions, _) = self.sessions()?;
                let past = sessions.resume(&exact(&sessions, id)?).map_err(of_store)?;
                let own = past.1.info.work_dir.clone();
                (Past::Session(Box::new(past)), Some(own))
            }
        };
        let Prepared {
            mut settings,
            model,
            note,
        } = self.prepare(&wanted, own.as_deref())?;
        let modes = match settings.approve {
            Approve::Never => vec![Mode::Plan, Mode::Ask],
            Approve::Ask | Approve::Auto => Mode::ALL.to_vec(),
        };
        let mode = match settings.approve {
            Approve::Auto => Mode::Auto,
            Approve::Ask | Approve::Never => Mode::Ask,
        };
        if settings.approve == Approve::Auto {
            // The mode decides, which the user can change at any time.
            settings.approve = Approve::Ask;
        }
        let sessions = agent::sessions(&settings).map_err(other)?;
        let (title, history) = match &past {
            Past::Session(past) => (past.1.info.title.clone(), messages(&past.1)),
            _ => (None, Vec::new()),
        };
        let is_resumed = matches!(past, Past::Session(_));
        let agent = agent::agent(
            &settings,
            model,
            past,
            sessions.as_ref(),
            wanted.approver,
            agent::ToolsWait::Briefly,
        );
        let agent = agent.await.map_err(other)?;
        let chosen = settings.model.clone().map_err(other)?;
        let has_unfinished_run = is_resumed && agent.has_work();
        let offers = offers::of(&settings, &agent);
        let runtime = agent.runtime().clone();
        let problems = async move {
            let found = runtime.ready().await.iter().cloned();
            note.into_iter().chain(found).collect()
        };
        Ok(Opened {
            folder: settings.paths.work_dir.clone(),
            offers,
            interrupt_on: settings.interrupt_on.clone(),
            seat: Arc::new(EditorSeat::new(
                agent,
                chosen,
                sessions,
                settings.paths.work_dir.clone(),
                settings.folders.config.clone(),
                has_unfinished_run,
            )),
            messages: history,
            problems: problems.boxed(),
            title,
            modes,
            mode,
        })
    }

    async fn list(&self, folder: Option<&Path>) -> Result<Vec<Listed>, Failure> {
        let (_, sessions, _) = self.sessions()?;
        let filter = Filter {
            kinds: vec![SessionKind::Agent],
            ..Filter::default()
        };
        let mut found = sessions.list(&filter).map_err(of_store)?;
        if let Some(folder) = folder.map(real) {
            // Sessions are recorded with the path as it was given.
            let mut known = HashMap::new();
            found.retain(|one| {
                let own = known.entry(one.work_dir.clone());
                *own.or_insert_with(|| real(&one.work_dir)) == folder
            });
        }
        let listed = found.into_iter().map(|one| Listed {
            updated: haft::ops::text::moment::to_millis(one.updated),
            id: one.id,
            folder: one.work_dir,
            title: one.title,
        });
        Ok(listed.collect())
    }

    async fn fork(&self, session: &str) -> Result<String, Failure> {
        let (_, sessions, _) = self.sessions()?;
        let id = exact(&sessions, session)?;
        sessions.fork(&id, None).map_err(of_store)
    }

    async fn delete(&self, session: &str) -> Result<(), Failure> {
        let (settings, sessions, state) = self.sessions()?;
        let id = exact(&sessions, session)?;
        let store = effects::store(&settings);
        let deleted = delete(&sessions, store.as_ref(), &state, &id);
        deleted.map(drop).map_err(of_store)
    }
}

/// Connects to the model. Every problem with it is one that the user has to set up.
fn model(settings: &Settings) -> Result<Arc<dyn haft_agent::Model>, Failure> {
    let model = agent::model(settings).and_then(|model| model.ok_or_else(agent::no_model));
    model.map_err(|failure| failed(FailureKind::NeedsSetup, &failure))
}
