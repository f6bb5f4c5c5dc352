//! `haft changes`: shows what calls changed.

use crate::args::Shared;
use crate::args::effects::Changes;
use crate::effects::{Changed, is_within};
use crate::exit::{Exit, Failure};
use crate::output::Paint;
use crate::text::on_one_line;
use crate::{output, session};
use haft::effects::{self, Diff};
use haft::ops::effects::{ChangeKind, ChangeSet, Session, SetState};
use haft::ops::text::decode::visible;
use haft::ops::text::moment;
use std::path::PathBuf;

/// Prints the changes.
pub(crate) fn run(shared: &Shared, args: &Changes) -> Result<Exit, Failure> {
    let settings = session::settings_for_changes(shared)?;
    let changed = Changed::open(&settings)?;
    changed.note_unreadable();
    let (sets, paths) = find(&changed, &args.what)?;
    let mut shown = 0;
    for (session, mut set) in sets {
        set.changes.retain(|change| is_within(change, &paths));
        if set.changes.is_empty() && !paths.is_empty() {
            continue;
        }
        shown += 1;
        match (args.json, args.stat) {
            (true, _) => output::json(&effects::set_json(&session, &set))?,
            (_, is_stat) => {
                output::raw(&as_text(&session, &set, Paint::for_stdout(), is_stat))?;
            }
        }
    }
    if shown == 0 && !args.json {
        output::note("no changes found");
    }
    Ok(Exit::Done)
}

/// Sets with their sessions, oldest first, and the paths to which they are limited.
type Found = (Vec<(Session, ChangeSet)>, Vec<PathBuf>);

/// Finds the sets that the words mean: a session or a call, then paths.
fn find(changed: &Changed, words: &[String]) -> Result<Found, Failure> {
    let paths = |words: &[String]| -> Result<Vec<PathBuf>, Failure> {
        words.iter().map(|path| changed.path(path)).collect()
    };
    let newest = || match changed.newest()? {
        Some(id) => Changed::sets(&changed.family(&id)?),
        None => Ok(Vec::new()),
    };
    let Some((first, rest)) = words.split_first() else {
        return Ok((newest()?, Vec::new()));
    };
    if let Some(id) = changed.session(first)? {
        return Ok((Changed::sets(&changed.family(&id)?)?, paths(rest)?));
    }
    let found = changed.call(first)?;
    if !found.is_empty() {
        return Ok((Changed::sets_of(&found)?, paths(rest)?));
    }
    let all = paths(words)?;
    let sets = newest()?;
    let is_known = all.first().is_some_and(|path| {
        let mut changes = sets.iter().flat_map(|(_, set)| &set.changes);
        path.symlink_metadata().is_ok()
            || changes.any(|change| is_within(change, std::slice::from_ref(path)))
    });
    if !is_known {
        return Err(Failure::usage(format!(
            "no session, call or changed file: {}",
            on_one_line(&visible(first))
        ))
        .hint("`haft changes --stat` lists the changes of the newest session"));
    }
    Ok((sets, all))
}

/// Formats a set as a diff, or as one line per file.
pub(crate) fn as_text(session: &Session, set: &ChangeSet, paint: Paint, is_stat: bool) -> String {
    let summary = &set.summary;
    let state = match summary.state {
        SetState::Done => String::new(),
        SetState::NoLongerKept => " · no longer kept".to_owned(),
        state => format!(" · {}", effects::state_name(state)),
    };
    let mut out = format!(
        "{} {} · {}{state} · {}\n",
        paint.bold(&visible(&summary.call_id)),
        visible(&summary.tool),
        moment::to_seconds(summary.time),
        effects::counts_words(&summary.counts),
    );
    if let Some(gap) = effects::gap(&summary.counts) {
        out.push_str(&format!("  {}\n", paint.yellow(&gap)));
    }
    for change in effects::in_order(&set.changes) {
        let diff = effects::diff(session, summary, change);
        let line = effects::change_line(session.work_dir(), change);
        let line = match (&diff, change.kind == ChangeKind::Deleted) {
            (Diff::Lines { added, removed, .. }, _) => format!("{line}  +{added} −{removed}"),
            _ => line,
        };
        out.push_str("  ");
        out.push_str(&match change.kind {
            ChangeKind::Deleted => paint.red(&line),
            ChangeKind::Created => paint.green(&line),
            _ => line,
        });
        out.push('\n');
        if is_stat {
            continue;
        }
        match diff {
            Diff::Same => {}
            Diff::Opaque(why) => out.push_str(&format!("    {}\n", paint.dim(&why))),
            Diff::Lines { text, .. } => {
                for row in text.lines() {
                    let shown = visible(row);
                    let shown = match row.chars().next() {
                        Some('+') => paint.green(&shown),
                        Some('-') => paint.red(&shown),
                        Some('@') => paint.cyan(&shown),
                        _ => shown,
                    };
                    out.push_str(&format!("    {shown}\n"));
                }
            }
        }
    }
    out.push('\n');
    out
}
