//! `haft undo` and `haft redo`: take back what calls changed, and take that back.

use crate::args::Shared;
use crate::args::effects::{Redo, Undo};
use crate::effects::Changed;
use crate::effects::plan::{Plan, Wanted, failure, turn, undo_line};
use crate::exit::{Exit, Failure};
use crate::{ask, output, session};
use haft::effects::{files, shown_path};
use haft::ops::effects::{Session, SetState, UndoError, UndoMode, Undone};
use std::path::Path;

/// Maximum number of files that a question lists.
const MAX_LINES: usize = 40;

/// Undoes the calls that the user chose.
pub(crate) fn run(shared: &Shared, args: &Undo) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let changed = Changed::open(&settings)?;
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
    let previewed = plan.preview();
    match (&previewed, args.force) {
        (Ok(undone), _) if args.dry_run => {
            output::text(&lines(work_dir, undone, usize::MAX).join("\n"))?;
            return Ok(Exit::Done);
        }
        (Ok(undone), _) => {
            if !confirmed(work_dir, undone, "Undo this? [y/N] ")? {
                return Ok(Exit::Failed);
            }
        }
        // Only a forced undo can go on.
        (Err(UndoError::Changed { paths }), true) if !args.dry_run => {
            if output::can_ask() {
                for one in paths {
                    let path = crate::text::on_one_line(&shown_path(work_dir, &one.path));
                    output::note(&format!("  {path}: {}", one.what));
                }
                if !ask::confirm("Move these aside and undo? [y/N] ")? {
                    output::note("nothing was changed");
                    return Ok(Exit::Failed);
                }
            }
        }
        (Err(UndoError::Nothing), _) => {
            return Err(Failure::failed("nothing to undo")
                .hint("`haft changes` shows what the newest session changed"));
        }
        (Err(_), _) => {}
    }
    if let (Err(error), true) | (Err(error @ UndoError::NotKept { .. }), _) =
        (previewed, !args.force || args.dry_run)
    {
        return Err(failure(work_dir, error));
    }
    let how = mode(args.force);
    let undone = plan.run(how).map_err(|error| failure(work_dir, error))?;
    report(work_dir, "undid", &undone)
}

/// Takes the last undo back.
pub(crate) fn redo(shared: &Shared, args: &Redo) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let changed = Changed::open(&settings)?;
    let work_dir = changed.work_dir();
    let last = changed.last(|set| set.tool == "undo" && set.state != SetState::Undone)?;
    let Some((session, _)) = last else {
        return Err(Failure::failed("nothing to redo").hint("`haft redo` takes the last undo back"));
    };
    let previewed = session.redo(UndoMode::DryRun);
    match previewed {
        Ok(undone) => {
            let undone = [(session.clone(), undone)];
            if args.dry_run {
                output::text(&lines(work_dir, &undone, usize::MAX).join("\n"))?;
                return Ok(Exit::Done);
            }
            if !confirmed(work_dir, &undone, "Redo this? [y/N] ")? {
                return Ok(Exit::Failed);
            }
        }
        Err(UndoError::Nothing) => return Err(Failure::failed("nothing to redo")),
        Err(UndoError::Changed { .. }) if args.force && !args.dry_run => {}
        Err(error) => return Err(failure(work_dir, error)),
    }
    let undone = session
        .redo(mode(args.force))
        .map_err(|error| failure(work_dir, error))?;
    report(work_dir, "redid", &[(session, undone)])
}

fn mode(force: bool) -> UndoMode {
    match force {
        true => UndoMode::Force,
        false => UndoMode::Careful,
    }
}

/// Shows a preview and asks, if there is a terminal. Without a terminal it goes ahead,
/// because an undo can be redone.
fn confirmed(
    work_dir: &Path,
    undone: &[(Session, Undone)],
    question: &str,
) -> Result<bool, Failure> {
    if !output::can_ask() {
        return Ok(true);
    }
    for line in lines(work_dir, undone, MAX_LINES) {
        output::note(&line);
    }
    let yes = ask::confirm(question)?;
    if !yes {
        output::note("nothing was changed");
    }
    Ok(yes)
}

/// Describes what an undo does, one line per file.
fn lines(work_dir: &Path, undone: &[(Session, Undone)], most: usize) -> Vec<String> {
    let changes: Vec<_> = undone.iter().flat_map(|(_, one)| &one.changes).collect();
    let mut lines: Vec<String> = changes
        .iter()
        .take(most)
        .map(|change| undo_line(work_dir, change))
        .collect();
    if changes.len() > most {
        lines.push(format!("… and {} more", changes.len() - most));
    }
    lines
}

/// Prints what was done.
fn report(work_dir: &Path, verb: &str, undone: &[(Session, Undone)]) -> Result<Exit, Failure> {
    let name = |path: &Path| crate::text::on_one_line(&shown_path(work_dir, path));
    for (_, one) in undone {
        let calls = one.calls.join(", ");
        output::text(&format!("{verb} {calls}: {}", files(&one.changes)))?;
        for aside in &one.aside {
            let (path, now) = (name(&aside.path), aside.now.display());
            output::text(&format!("moved aside: {path}, now {now}"))?;
        }
        for left in &one.left {
            let left = name(left);
            output::text(&format!(
                "left: {left}, because it has files that the call did not make"
            ))?;
        }
    }
    Ok(Exit::Done)
}
