//! Taking back what calls changed.
//!
//! An undo compares first and changes nothing unless everything selected can be taken back.
//! It is recorded as a set of its own by the same recorder, so a redo is the undo of an undo.
//! A file `undo` in the session's folder says that one is in progress. Restoring states can be
//! repeated, so the next process that opens the session after a kill runs it again to its end.

use super::combine;
use super::library::{self, Head};
use super::outcome::{Calls, Selection, UndoError, UndoMode, Undone};
use super::picture::Picture;
use super::plan::{self, Attempt};
use super::record::{Header, Record, Target};
use super::recorder::{End, Recorder};
use super::restore;
use super::session::Session;
use super::set_file::SetFile;
use super::space;
use super::state::Time;
use super::summaries;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time to wait for another undo of the same session. Most take milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// Turns an error of the store into one of an undo.
pub(super) fn store_error(session: &Session) -> impl Fn(io::Error) -> UndoError {
    let path = session.folder().to_owned();
    move |source| UndoError::Io {
        action: "read",
        path: path.clone(),
        source,
    }
}

pub(super) fn undo(
    session: &Session,
    what: &Selection,
    how: UndoMode,
    group: &str,
) -> Result<Undone, UndoError> {
    let fail = store_error(session);
    let _lock = locked(session, how)?;
    let heads = library::heads(session).map_err(&fail)?;
    let selected = select(session, &heads, &what.calls)?;
    run(
        session,
        &heads,
        &selected,
        &what.paths,
        how,
        ("undo", group),
    )
}

pub(super) fn redo(session: &Session, how: UndoMode) -> Result<Undone, UndoError> {
    let fail = store_error(session);
    let _lock = locked(session, how)?;
    let heads = library::heads(session).map_err(&fail)?;
    let undone = summaries::undone(&heads);
    let last = heads.iter().rev().find(|head| {
        head.header.tool == "undo" && undone.get(&head.number).is_none_or(Vec::is_empty)
    });
    let Some(last) = last else {
        return Err(UndoError::Nothing);
    };
    run(session, &heads, &[last], &[], how, ("redo", ""))
}

/// Locks the session, and completes an undo that was killed. A dry run needs no lock.
fn locked(session: &Session, how: UndoMode) -> Result<Option<space::Lock>, UndoError> {
    let fail = store_error(session);
    if how == UndoMode::DryRun {
        recover(session).map_err(&fail)?;
        return Ok(None);
    }
    let lock = space::lock(session, PATIENCE).map_err(&fail)?;
    let lock = lock.ok_or(UndoError::Busy)?;
    complete(session).map_err(&fail)?;
    Ok(Some(lock))
}

/// Sets of the selected calls, oldest first.
pub(super) fn select<'a>(
    session: &Session,
    heads: &'a [Head],
    calls: &Calls,
) -> Result<Vec<&'a Head>, UndoError> {
    let undone = summaries::undone(heads);
    let is_settled = |head: &&Head| {
        let partly = undone.get(&head.number);
        partly.is_some_and(|paths| is_settled(session, head, paths))
    };
    let is_in_force = |head: &&Head| {
        let undone = undone.get(&head.number);
        !undone.is_some_and(|undone| undone.iter().any(Vec::is_empty))
    };
    let is_call = |head: &&Head| head.header.undoes.is_empty();
    let mut in_force = heads.iter().filter(is_in_force);
    let selected: Vec<&Head> = match calls {
        Calls::Last => in_force
            .filter(is_call)
            .rfind(|head| !head.is_unchanged() && !is_settled(head))
            .into_iter()
            .collect(),
        Calls::Ids(ids) => {
            for id in ids {
                if !heads.iter().any(|head| head.header.call_id == *id) {
                    return Err(UndoError::UnknownCall(id.clone()));
                }
            }
            in_force
                .filter(|head| ids.contains(&head.header.call_id))
                .collect()
        }
        Calls::Since(id) => {
            let Some(first) = heads.iter().find(|head| head.header.call_id == *id) else {
                return Err(UndoError::UnknownCall(id.clone()));
            };
            in_force
                .by_ref()
                .filter(|head| head.number >= first.number)
                .filter(is_call)
                .collect()
        }
        Calls::All => in_force.filter(is_call).collect(),
    };
    if selected.is_empty() {
        return Err(UndoError::Nothing);
    }
    can_be_taken_back(&selected)?;
    Ok(selected)
}

/// Whether everything that can be taken back of a call was taken back path by path. What was not
/// kept is left.
pub(super) fn is_settled(session: &Session, head: &Head, undone: &[Vec<Box<[u8]>>]) -> bool {
    if undone.is_empty() || head.finished.as_ref().is_none_or(|end| end.evicted) {
        return false;
    }
    let is_taken_back = |path: &Path| {
        let mut wanted = undone.iter().flatten();
        wanted.any(|wanted| path.starts_with(super::state::name(wanted)))
    };
    let plan = combine::combined(session, &[head.number])
        .and_then(|picture| plan::plan(session, picture, &[], Attempt::First));
    plan.is_ok_and(|plan| {
        plan.todo.iter().all(|at| {
            let entry = plan.picture.entry(*at);
            plan.not_kept.contains(at)
                || entry.is_some_and(|entry| {
                    is_taken_back(&plan.picture.original_path(entry))
                        || is_taken_back(&plan.picture.path_after(entry))
                })
        })
    })
}

/// Refuses sets that are still written, or whose content was removed by a limit.
pub(super) fn can_be_taken_back(selected: &[&Head]) -> Result<(), UndoError> {
    if let Some(running) = selected.iter().find(|head| head.finished.is_none()) {
        return Err(UndoError::Running(running.header.call_id.clone()));
    }
    let gone: Vec<String> = selected
        .iter()
        .filter(|head| head.finished.as_ref().is_some_and(|end| end.evicted))
        .map(|head| head.header.call_id.clone())
        .collect();
    if !gone.is_empty() {
        return Err(UndoError::NoLongerKept(gone));
    }
    Ok(())
}

fn run(
    session: &Session,
    heads: &[Head],
    selected: &[&Head],
    paths: &[PathBuf],
    how: UndoMode,
    (tool, group): (&'static str, &str),
) -> Result<Undone, UndoError> {
    let fail = store_error(session);
    let numbers: Vec<u64> = selected.iter().map(|head| head.number).collect();
    let picture = combine::combined(session, &numbers).map_err(&fail)?;
    let plan = plan::plan(session, picture, paths, Attempt::First).map_err(&fail)?;
    // An undo that found everything as it should be can be redone all the same.
    if plan.is_empty && tool == "undo" {
        return Err(UndoError::Nothing);
    }
    let checked = plan.check(session, heads, &numbers, how);
    if let Err(UndoError::NotKept { .. }) = &checked
        && tool == "undo"
        && paths.is_empty()
        && let Some(redo) = redo_of(heads, selected)
    {
        // The redo has moved a version by others aside, which comes back with it.
        return run(session, heads, &[redo], paths, how, (tool, group));
    }
    checked?;
    let mut undone = Undone {
        calls: selected
            .iter()
            .rev()
            .map(|head| head.header.call_id.clone())
            .collect(),
        ..Undone::default()
    };
    if how == UndoMode::DryRun {
        undone.changes = plan.preview();
        undone.left.clone_from(&plan.left);
        undone.edited = plan.edited_paths();
        undone.aside = plan.asides();
        return Ok(undone);
    }
    let count = heads.iter().filter(|head| head.header.tool == tool).count();
    undone.call_id = format!("{tool}-{}", count + 1);
    let header = Header {
        call_id: undone.call_id.clone(),
        tool: tool.to_owned(),
        time: Time::now(),
        undoes: selected
            .iter()
            .map(|head| Target {
                number: head.number,
                call_id: head.header.call_id.clone(),
                paths: paths
                    .iter()
                    .map(|path| path.as_os_str().as_bytes().into())
                    .collect(),
            })
            .collect(),
        group: group.to_owned(),
    };
    let set = session.create_set(&header).map_err(&fail)?;
    let number = set.number();
    journal(session, &set).map_err(&fail)?;
    let recorder = Recorder::resume(session.clone(), header, set).map_err(&fail)?;
    let aside = plan.asides();
    undone.edited = plan.edited_paths();
    let restored = restore::restore(session, plan, &recorder);
    recorder.finish(End::Done);
    match restored {
        Ok(left) => undone.left = left,
        Err(error) => {
            if let Err(second) = take_back(session, number, &undone.call_id) {
                tracing::warn!(%second, "an undo failed half-way and could not be taken back");
            }
            settled(session).map_err(&fail)?;
            return Err(error);
        }
    }
    undone.aside = aside;
    settled(session).map_err(&fail)?;
    if let Some(set) = library::load(session, number).map_err(&fail)? {
        let picture = Picture::new(&[set], &[]).map_err(&fail)?;
        undone.changes = super::compare::changes(&picture);
    }
    Ok(undone)
}

/// Finds the redo of which these calls are in force again.
fn redo_of<'a>(heads: &'a [Head], selected: &[&Head]) -> Option<&'a Head> {
    let find = |number: u64| heads.iter().find(|head| head.number == number);
    let undone = summaries::undone(heads);
    heads.iter().rev().find(|head| {
        let undos = head.header.undoes.iter();
        let mut undos = undos.filter_map(|undo| find(undo.number));
        let is_of = |undo: &Head| {
            let calls = undo.header.undoes.iter();
            let calls: Vec<u64> = calls.map(|target| target.number).collect();
            selected.iter().all(|call| calls.contains(&call.number))
        };
        head.header.tool == "redo"
            && undone.get(&head.number).is_none_or(Vec::is_empty)
            && undos.any(is_of)
    })
}

fn journal_path(session: &Session) -> PathBuf {
    session.folder().join("undo")
}

/// Writes down that an undo is in progress. After a loss of power this is on disk before any
/// change is.
fn journal(session: &Session, set: &SetFile) -> io::Result<()> {
    let path = journal_path(session);
    library::write_file(&path, set.number().to_string().as_bytes())?;
    if session.store().is_durable() {
        set.sync()?;
        sync_file(&path)?;
        sync_file(session.folder())?;
    }
    Ok(())
}

fn sync_file(path: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "haft's own file")]
    File::open(path)?.sync_all()
}

/// The undo is done.
fn settled(session: &Session) -> io::Result<()> {
    library::remove_file(&journal_path(session))
}

/// Takes back an undo that failed half-way. This is recorded too: what the undo had put back is
/// kept again.
fn take_back(session: &Session, number: u64, call_id: &str) -> Result<(), UndoError> {
    let fail = store_error(session);
    let picture = combine::combined(session, &[number]).map_err(&fail)?;
    let plan = plan::plan(session, picture, &[], Attempt::Again).map_err(&fail)?;
    let header = Header {
        call_id: format!("{call_id}-failed"),
        tool: "redo".to_owned(),
        time: Time::now(),
        undoes: vec![Target {
            number,
            call_id: call_id.to_owned(),
            paths: Vec::new(),
        }],
        group: String::new(),
    };
    let set = session.create_set(&header).map_err(&fail)?;
    let recorder = Recorder::resume(session.clone(), header, set).map_err(&fail)?;
    let done = restore::restore(session, plan, &recorder);
    recorder.finish(End::Done);
    done.map(drop)
}

/// Completes an undo whose process was killed. Does nothing while one is in progress.
pub(super) fn recover(session: &Session) -> io::Result<()> {
    if !journal_path(session).exists() {
        return Ok(());
    }
    match space::lock(session, Duration::ZERO)? {
        Some(_lock) => complete(session),
        None => Ok(()),
    }
}

/// Completes an undo that was killed. The session is locked.
fn complete(session: &Session) -> io::Result<()> {
    let path = journal_path(session);
    let number = match library::read_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => String::from_utf8_lossy(&bytes?).trim().parse::<u64>(),
    };
    let Ok(number) = number else {
        return settled(session);
    };
    let file = library::set_path(session, number);
    let set = match SetFile::take_over(file, number) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return settled(session),
        set => set?,
    };
    let Some(set) = set else {
        return Ok(());
    };
    let records = set.records()?;
    let header = records.iter().find_map(|record| match record {
        Record::Header(header) => Some(header.clone()),
        _ => None,
    });
    let is_finished = records
        .iter()
        .any(|record| matches!(record, Record::Finished(_)));
    let Some(header) = header.filter(|_| !is_finished) else {
        return settled(session);
    };
    let mut numbers: Vec<u64> = header.undoes.iter().map(|target| target.number).collect();
    numbers.push(number);
    let paths = header.undoes.first().map(|target| target.paths.clone());
    let paths: Vec<PathBuf> = paths
        .iter()
        .flatten()
        .map(|path| PathBuf::from(super::state::name(path)))
        .collect();
    let picture = combine::combined(session, &numbers)?;
    let plan = plan::plan(session, picture, &paths, Attempt::Again)?;
    let recorder = Recorder::resume(session.clone(), header, set)?;
    restore::restore(session, plan, &recorder).map_err(io::Error::other)?;
    recorder.finish(End::Done);
    settled(session)
}
