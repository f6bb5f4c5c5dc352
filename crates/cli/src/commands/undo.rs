//! `haft undo` and `haft redo`: take back what calls changed, and take that back.

use crate::args::Shared;
use crate::args::effects::{Redo, Undo};
use crate::effects::Changed;
use crate::effects::plan::{self, Plan, Preview, Wanted, last_undo, turn};
use crate::effects::words::{done_lines, failure, preview_lines};
use crate::exit::{Exit, Failure};
use crate::{ask, output, session};
use haft::effects::printed_path;
use haft::ops::effects::{ChangedPath, UndoError, UndoMode};
use std::path::Path;

/// Maximum number of files that a question lists.
const MAX_LINES: usize = 40;

/// Undoes the calls that the user chose.
pub(crate) fn run(shared: &Shared, args: &Undo) -> Result<Exit, Failure> {
    let settings = session::settings_for_changes(shared)?;
    let changed = Changed::open(&settings)?;
    changed.note_unreadable();
    let work_dir = changed.work_dir();
    let (wanted, paths): (_, &[String]) = match &args.session {
        Some(id) => {
            if let Some(given) = id
                && changed.session(given)?.is_none()
            {
                return Err(
                    Failure::usage(format!("no session \"{given}\" has changed anything"))
                        .hint("`haft sessions list --all` lists all sessions"),
                );
            }
            (Wanted::Session(id.as_deref()), &args.what)
        }
        None if args.turn => (Wanted::Sets(turn(&settings, &changed)?), &args.what),
        None => (Wanted::Given(&args.what), &[]),
    };
    let plan = Plan::new(&changed, wanted, paths)?;
    // A single step changes nothing unless it can take back everything. Several steps are
    // tried first, so that none has to be taken back.
    if args.dry_run || output::can_ask() || !plan.is_single_step() {
        match plan.preview() {
            Ok(preview) if args.dry_run => {
                output::text(&preview_lines(work_dir, "undo", &preview, usize::MAX).join("\n"))?;
                return Ok(Exit::Done);
            }
            Ok(preview) => {
                if !confirmed(work_dir, "undo", &preview)? {
                    return Ok(Exit::Failed);
                }
            }
            Err(UndoError::Changed { paths }) if args.force && !args.dry_run => {
                if !confirmed_by_force(work_dir, &paths)? {
                    return Ok(Exit::Failed);
                }
            }
            Err(error) => return Err(failure(work_dir, error)),
        }
    }
    let undone = plan
        .run(mode(args.force))
        .map_err(|error| failure(work_dir, error))?;
    report(&done_lines(work_dir, "undid", &undone, plan.unrecorded()))?;
    // The undo is not complete, unless the user limited it.
    Ok(match plan.unrecorded().is_empty() || plan.is_limited() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// Takes the last undo back.
pub(crate) fn redo(shared: &Shared, args: &Redo) -> Result<Exit, Failure> {
    let settings = session::settings_for_changes(shared)?;
    let changed = Changed::open(&settings)?;
    let work_dir = changed.work_dir();
    let nothing =
        || Failure::failed("nothing to redo").hint("`haft redo` takes the last undo back, once");
    let parts = last_undo(&changed)?;
    if parts.is_empty() {
        return Err(nothing());
    }
    let failed = |error| match error {
        UndoError::Nothing => nothing(),
        error => failure(work_dir, error),
    };
    if args.dry_run || output::can_ask() {
        match plan::redo(&parts, UndoMode::DryRun) {
            Ok(undone) => {
                let preview = Preview {
                    undone,
                    ..Preview::default()
                };
                if args.dry_run {
                    let lines = preview_lines(work_dir, "redo", &preview, usize::MAX);
                    output::text(&lines.join("\n"))?;
                    return Ok(Exit::Done);
                }
                if !confirmed(work_dir, "redo", &preview)? {
                    return Ok(Exit::Failed);
                }
            }
            Err(UndoError::Changed { paths }) if args.force && !args.dry_run => {
                if !confirmed_by_force(work_dir, &paths)? {
                    return Ok(Exit::Failed);
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let undone = plan::redo(&parts, mode(args.force)).map_err(failed)?;
    report(&done_lines(work_dir, "redid", &undone, &[]))
}

fn mode(force: bool) -> UndoMode {
    match force {
        true => UndoMode::Force,
        false => UndoMode::Careful,
    }
}

/// Shows a preview and asks, if there is a terminal. Without a terminal it goes ahead,
/// because an undo can be redone.
fn confirmed(work_dir: &Path, verb: &str, preview: &Preview) -> Result<bool, Failure> {
    if !output::can_ask() {
        return Ok(true);
    }
    for line in preview_lines(work_dir, verb, preview, MAX_LINES) {
        output::note(&line);
    }
    let yes = ask::confirm(&format!("Go ahead with the {verb}? [y/N] "))?;
    if !yes {
        output::note("nothing was changed");
    }
    Ok(yes)
}

/// Names the files that would be moved aside and asks, if there is a terminal.
fn confirmed_by_force(work_dir: &Path, paths: &[ChangedPath]) -> Result<bool, Failure> {
    if !output::can_ask() {
        return Ok(true);
    }
    for one in paths {
        let path = printed_path(work_dir, &one.path);
        output::note(&format!("  {path}: {}", one.what));
    }
    let yes = ask::confirm("Move these aside and undo? [y/N] ")?;
    if !yes {
        output::note("nothing was changed");
    }
    Ok(yes)
}

/// Prints what was done.
fn report(lines: &[String]) -> Result<Exit, Failure> {
    output::text(&lines.join("\n"))?;
    Ok(Exit::Done)
}
