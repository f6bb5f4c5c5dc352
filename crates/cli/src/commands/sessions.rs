//! `haft sessions`: lists, shows, exports and deletes recorded sessions.

mod delete;
pub(crate) mod export;
mod files;
mod fork;
mod html;
mod list;
mod markdown;
mod outputs;
mod page;
mod todos;
mod transcript;

use crate::args::Shared;
use crate::args::sessions::Sessions as Command;
use crate::exit::{Exit, Failure};
use crate::{effects, record, session};
use haft_config::Settings;
use haft_store::sessions::{Error, Sessions};
pub(crate) use list::age;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Command) -> Result<Exit, Failure> {
    if let Command::Resume(args) = command {
        return super::resume::run(shared, args);
    }
    let settings = session::settings(shared)?;
    let state = settings
        .folders
        .state
        .as_deref()
        .ok_or_else(|| Failure::usage("sessions need a state folder: set HOME"))?;
    if let Command::List(args) = command {
        let found = match open(&settings, state)? {
            Some(sessions) => list::find(&sessions, &settings, args)?,
            None => Vec::new(),
        };
        return list::show(&found, args).map(|()| Exit::Done);
    }
    let Some(sessions) = open(&settings, state)? else {
        return Err(Failure::usage("no sessions found"));
    };
    let store = effects::store(&settings);
    match command {
        Command::List(_) | Command::Resume(_) => {}
        Command::Show { session } => page::show(&sessions, store.as_ref(), session)?,
        Command::Fork { session, at, files } => {
            let at = at.as_deref();
            fork::run(&sessions, store.as_ref(), session, at, files.as_deref())?;
        }
        Command::Export { session, format } => {
            export::run(&sessions, store.as_ref(), session, format)?;
        }
        Command::Output { call, session } => {
            let folders = (state, settings.paths.work_dir.as_path());
            outputs::show(&sessions, folders, call, session.as_deref())?;
        }
        Command::Files {
            session,
            path,
            json,
        } => files::show(&sessions, session, path.as_deref(), *json)?,
        Command::Todos { session, json } => todos::show(&sessions, session, *json)?,
        Command::Delete {
            sessions: given,
            yes,
        } => return delete::run(&sessions, store.as_ref(), state, given, *yes),
    }
    Ok(Exit::Done)
}

/// Opens the session database; `None` if it does not exist yet.
fn open(settings: &Settings, state: &Path) -> Result<Option<Sessions>, Failure> {
    if !state.join(record::FILE).exists() {
        return Ok(None);
    }
    record::open(state, &settings.secrets)
        .map(Some)
        .map_err(Failure::failed)
}

pub(super) use delete::delete;

/// Converts a database error into an error of the command.
pub(super) fn failure(error: Error) -> Failure {
    let text = error.to_string();
    match error {
        Error::Unknown { .. } | Error::Ambiguous { .. } | Error::TooShort { .. } => {
            Failure::usage(text).hint("`haft sessions list --all` lists all sessions")
        }
        Error::UnknownMessage { .. } => {
            Failure::usage(text).hint("`haft sessions show` prints the number of each message")
        }
        Error::AmbiguousCall { .. } => Failure::usage(text).hint("choose one with --session"),
        Error::UnknownCall { .. } => Failure::usage(text),
        Error::InUse { id, .. } => Failure::failed(text).hint(format!(
            "end it there first, or continue in a copy: `haft sessions fork {id}`"
        )),
        _ => Failure::failed(text),
    }
}
