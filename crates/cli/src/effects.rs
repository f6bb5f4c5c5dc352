//! Finding what calls changed: the store of the state folder, and the sessions in it.

pub(crate) mod plan;
pub(crate) mod words;

use crate::exit::Failure;
use crate::record;
use haft::effects::{printed_path, shown_path, stands};
use haft::ops::effects::{Bounds, Change, ChangeKind, ChangeSet, Session, SetSummary, Skip, Store};
use haft_config::Settings;
use haft_config::effects::Effects;
use haft_store::sessions::{Filter, Sessions};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Name of the store's folder in the state folder.
pub(crate) const FOLDER: &str = "effects";

/// Returns where changes are recorded; `None` if they are not.
pub(crate) fn recording(settings: &Settings) -> Option<Store> {
    settings.effects.record.then(|| store(settings))?
}

/// Returns the store of the state folder, even if nothing is recorded now.
pub(crate) fn store(settings: &Settings) -> Option<Store> {
    let state = settings.folders.state.as_ref()?;
    Some(store_in(state, &settings.effects))
}

/// Returns the store of a state folder.
pub(crate) fn store_in(state: &Path, effects: &Effects) -> Store {
    let bounds = Bounds {
        max_file: effects.max_file,
        max_session: effects.max_session,
        keep: effects.keep,
        // The configuration has checked the patterns.
        skip: Skip::new(&effects.skip).unwrap_or_default(),
    };
    Store::new(state.join(FOLDER), bounds)
}

/// The sessions that have changes.
pub(crate) struct Changed {
    store: Store,
    work_dir: PathBuf,
    parents: Parents,
}

/// The session and the call that started each sub-agent's session, by its id.
type Parents = HashMap<String, (String, String)>;

/// Returns the calls within which a session works, innermost first, each with its session. A
/// session that no sub-agent works in has none.
fn ancestors<'a>(parents: &'a Parents, id: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let parent = |id: &str| {
        let (session, call) = parents.get(id)?;
        Some((session.as_str(), call.as_str()))
    };
    // Bounded, because the record might be broken.
    std::iter::successors(parent(id), move |(id, _)| parent(id)).take(64)
}

/// Returns the sessions of the sub-agents below a session.
pub(crate) fn descendants(sessions: &Sessions, id: &str) -> Vec<String> {
    let parents = parents(sessions);
    let is_below = |child: &&String| ancestors(&parents, child).any(|(one, _)| one == id);
    parents.keys().filter(is_below).cloned().collect()
}

/// Converts an error of the system.
#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
pub(crate) fn unreadable(error: std::io::Error) -> Failure {
    Failure::failed(format!("cannot read what calls changed: {error}"))
}

impl Changed {
    /// Opens the store.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Failure> {
        let store = store(settings)
            .ok_or_else(|| Failure::usage("changes are kept in the state folder: set HOME"))?;
        let sessions = recorded(settings).and_then(Result::ok);
        Ok(Self::new(
            store,
            &settings.paths.work_dir,
            sessions.as_ref(),
        ))
    }

    /// Creates it for a folder, with the record of sessions if there is one.
    pub(crate) fn new(store: Store, work_dir: &Path, sessions: Option<&Sessions>) -> Self {
        Self {
            store,
            work_dir: work_dir.to_owned(),
            parents: sessions.map(parents).unwrap_or_default(),
        }
    }

    /// Returns the session that a session belongs to: itself, or that of the agent which
    /// started it.
    pub(crate) fn outermost<'a>(&'a self, id: &'a str) -> &'a str {
        self.outermost_call(id, "").0
    }

    /// Returns the outermost session and call that a call belongs to.
    pub(crate) fn outermost_call<'a>(&'a self, id: &'a str, call: &'a str) -> (&'a str, &'a str) {
        ancestors(&self.parents, id).last().unwrap_or((id, call))
    }

    /// Returns the sessions that changed something, newest first: of this folder, or of
    /// all folders.
    pub(super) fn sessions(&self, everywhere: bool) -> Result<Vec<Session>, Failure> {
        let folder = (!everywhere).then_some(self.work_dir.as_path());
        let found = self.store.sessions(folder).map_err(unreadable)?;
        let open = |info: haft::ops::effects::SessionInfo| {
            self.store.session(&info.id, &info.work_dir, &info.roots)
        };
        Ok(found.into_iter().map(open).collect())
    }

    /// Returns a session and those of its sub-agents.
    pub(crate) fn family(&self, id: &str) -> Result<Vec<Session>, Failure> {
        let outermost = self.outermost(id).to_owned();
        let mut all = self.sessions(true)?;
        all.retain(|session| self.outermost(session.id()) == outermost);
        Ok(all)
    }

    /// Returns the newest session of this folder that changed something.
    pub(crate) fn newest(&self) -> Result<Option<String>, Failure> {
        let sessions = self.sessions(false)?;
        Ok(sessions.first().map(|session| session.id().to_owned()))
    }

    /// Finds a session by its id or the start of it.
    pub(crate) fn session(&self, given: &str) -> Result<Option<String>, Failure> {
        let sessions = self.sessions(true)?;
        let ids = sessions.iter().map(Session::id);
        if ids.clone().any(|id| id == given) {
            return Ok(Some(given.to_owned()));
        }
        let mut matching = ids.filter(|id| given.len() >= 4 && id.starts_with(given));
        Ok(match (matching.next(), matching.next()) {
            (Some(id), None) => Some(id.to_owned()),
            _ => None,
        })
    }

    /// Finds the sets of a call and of the sub-agents that it started, in the newest session
    /// of this folder that has any, or else of another folder.
    pub(crate) fn call(&self, id: &str) -> Result<Vec<(Session, SetSummary)>, Failure> {
        let mut sessions = self.sessions(false)?;
        sessions.extend(self.sessions(true)?);
        let mut root = None;
        for session in &sessions {
            let mut within = ancestors(&self.parents, session.id());
            let outer = within.find(|(_, call)| *call == id).map(|(outer, _)| outer);
            let is_own = || -> Result<bool, Failure> {
                let sets = session.summaries().map_err(unreadable)?;
                Ok(sets.iter().any(|set| set.call_id == id))
            };
            if outer.is_some() || is_own()? {
                root = Some(outer.unwrap_or(session.id()).to_owned());
                break;
            }
        }
        let Some(root) = root else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for session in self.sessions(true)? {
            let is_within = ancestors(&self.parents, session.id()).any(|one| one == (&root, id));
            if session.id() != root && !is_within {
                continue;
            }
            let sets = session.summaries().map_err(unreadable)?;
            let sets = sets.into_iter();
            match is_within {
                true => found.extend(sets.map(|set| (session.clone(), set))),
                false => {
                    let own = sets.rev().find(|set| set.call_id == id);
                    found.extend(own.map(|set| (session.clone(), set)));
                }
            }
        }
        Ok(found)
    }

    /// Returns the absolute path that a word of the user means. The word may be a path as
    /// haft prints it.
    pub(crate) fn path(&self, word: &str) -> Result<PathBuf, Failure> {
        let mut whole = PathBuf::new();
        for part in self.work_dir.join(word).components() {
            match part {
                std::path::Component::ParentDir => _ = whole.pop(),
                std::path::Component::CurDir => {}
                part => whole.push(part),
            }
        }
        let needs_search = word.contains(['\\', char::REPLACEMENT_CHARACTER]);
        if !needs_search || whole.symlink_metadata().is_ok() {
            return Ok(whole);
        }
        for (_, set) in Self::sets(&self.sessions(false)?)?.into_iter().rev() {
            let mut paths = set.changes.iter().flat_map(changed_paths);
            let is_meant = |path: &&Path| {
                printed_path(&self.work_dir, path) == word
                    || shown_path(&self.work_dir, path) == word
            };
            if let Some(path) = paths.find(is_meant) {
                return Ok(path.to_owned());
            }
        }
        Ok(whole)
    }

    /// Prints a note about each set of this folder that cannot be read.
    pub(crate) fn note_unreadable(&self) {
        for session in self.sessions(false).unwrap_or_default() {
            for (path, why) in session.unreadable().unwrap_or_default() {
                crate::output::note(&format!(
                    "the changes of one call are left out: {}: {why}",
                    printed_path(Path::new(""), &path)
                ));
            }
        }
    }

    /// Finds the newest set in this folder of which this holds.
    pub(crate) fn last(
        &self,
        wanted: impl Fn(&SetSummary) -> bool,
    ) -> Result<Option<(Session, SetSummary)>, Failure> {
        let mut newest: Option<(Session, SetSummary)> = None;
        let infos = self
            .store
            .sessions(Some(&self.work_dir))
            .map_err(unreadable)?;
        for info in infos {
            // Sessions are sorted, so the rest is older.
            if newest
                .as_ref()
                .is_some_and(|(_, set)| set.time >= info.time)
            {
                break;
            }
            let session = self.store.session(&info.id, &info.work_dir, &info.roots);
            let sets = session.summaries().map_err(unreadable)?;
            if let Some(set) = sets.into_iter().rev().find(&wanted)
                && newest
                    .as_ref()
                    .is_none_or(|(_, known)| set.time > known.time)
            {
                newest = Some((session, set));
            }
        }
        Ok(newest)
    }

    /// Finds the last call whose changes stand, or that still changes something.
    pub(crate) fn last_call(&self) -> Result<Option<(Session, SetSummary)>, Failure> {
        self.last(stands)
    }

    /// Returns the sets of some sessions, oldest first.
    pub(crate) fn sets(sessions: &[Session]) -> Result<Vec<(Session, ChangeSet)>, Failure> {
        let mut all = Vec::new();
        for session in sessions {
            let sets = session.sets().map_err(unreadable)?;
            all.extend(sets.into_iter().map(|set| (session.clone(), set)));
        }
        all.sort_by_key(|(_, set)| (set.summary.time, set.summary.number));
        Ok(all)
    }

    /// Returns some sets with their changes, oldest first.
    pub(crate) fn sets_of(
        wanted: &[(Session, SetSummary)],
    ) -> Result<Vec<(Session, ChangeSet)>, Failure> {
        let mut sessions: Vec<Session> = Vec::new();
        for (session, _) in wanted {
            if !sessions.iter().any(|known| known.id() == session.id()) {
                sessions.push(session.clone());
            }
        }
        let mut sets = Self::sets(&sessions)?;
        sets.retain(|(session, set)| {
            let is_it = |(other, summary): &(Session, SetSummary)| {
                other.id() == session.id() && summary.number == set.summary.number
            };
            wanted.iter().any(is_it)
        });
        Ok(sets)
    }

    /// Returns the work folder.
    pub(crate) fn work_dir(&self) -> &Path {
        &self.work_dir
    }
}

/// Returns the path of a change, and the one before if it was renamed.
pub(crate) fn changed_paths(change: &Change) -> impl Iterator<Item = &Path> {
    let from = match &change.kind {
        ChangeKind::Renamed { from } => Some(from.as_path()),
        _ => None,
    };
    std::iter::once(change.path.as_path()).chain(from)
}

/// Whether a change is at or below one of the paths. Without paths, every change is.
pub(crate) fn is_within(change: &Change, paths: &[PathBuf]) -> bool {
    let is_below = |path: &Path| paths.iter().any(|wanted| path.starts_with(wanted));
    paths.is_empty() || changed_paths(change).any(is_below)
}

/// Returns the session that started each sub-agent's session. Without a record there are
/// none.
fn parents(sessions: &Sessions) -> Parents {
    let filter = Filter {
        sub_agents: true,
        ..Filter::default()
    };
    match sessions.list(&filter) {
        Ok(listed) => listed
            .into_iter()
            .filter_map(|one| Some((one.id, one.parent?)))
            .collect(),
        Err(error) => {
            tracing::warn!(%error, "cannot tell which sessions belong to sub-agents");
            HashMap::new()
        }
    }
}

/// Opens the record of sessions; `None` if it does not exist yet.
pub(crate) fn recorded(settings: &Settings) -> Option<Result<Sessions, String>> {
    let state = settings.folders.state.as_ref()?;
    if !state.join(record::FILE).exists() {
        return None;
    }
    Some(record::open(state, &settings.secrets))
}
