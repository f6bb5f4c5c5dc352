//! Decisions about dangerous commands that no rule is about ([`Danger`]).
//!
//! If their changes are recorded, they run under review, and the user is asked only if
//! something is lost that this session did not make itself. Otherwise the user is asked
//! before. Where no user can be asked, recorded calls just run: they can be undone.

use super::{Approve, Call, Runtime};
use crate::policy::Danger;
use crate::{DecidedBy, Judgement, Verdict, effects};
use haft_ops::effects::{ChangeKind, ChangeSet, Counts, Session, Side};
use haft_ops::executor::sandbox::Network;
use std::collections::HashMap;
use std::path::PathBuf;

/// Whether there is a user who can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    User,
    Nobody,
}

impl Runtime {
    /// Returns whether the user can be asked about a call.
    pub(super) fn asks(&self, call: &Call) -> Asks {
        let is_answered = call.answer.is_some();
        match is_answered || self.approver_for(call.approver.as_ref()).is_some() {
            true => Asks::User,
            false => Asks::Nobody,
        }
    }

    /// Decides about the dangerous commands of a call that no rule is about.
    pub(super) fn with_dangers(
        &self,
        mut judgement: Judgement,
        asks: Asks,
        is_recorded: bool,
    ) -> Judgement {
        let is_danger = |by: &DecidedBy| matches!(by, DecidedBy::Danger(_));
        if !judgement.parts.iter().any(|part| is_danger(&part.by)) {
            return judgement;
        }
        let approval = &self.session.approval;
        let can_ask = approval.approve == Approve::Ask && asks == Asks::User;
        for part in &mut judgement.parts {
            let DecidedBy::Danger(danger) = part.by else {
                continue;
            };
            part.verdict = match danger {
                Danger::Sends | Danger::Rewrites if self.commands_reach_others() => Verdict::Ask,
                // Nothing leaves the machine.
                Danger::Sends => Verdict::Allow,
                _ if !is_recorded => Verdict::Ask,
                // It can be undone, and no user could answer.
                _ if !can_ask && approval.approve != Approve::Never => Verdict::Allow,
                _ => Verdict::Review,
            };
            if part.verdict == Verdict::Allow {
                part.by = DecidedBy::Default;
            }
        }
        let verdicts = judgement.parts.iter().map(|part| part.verdict);
        judgement.verdict = verdicts.max().unwrap_or(Verdict::Allow);
        judgement
    }

    /// Whether commands can reach other machines.
    fn commands_reach_others(&self) -> bool {
        let Some(exec_context) = &self.session.exec_context else {
            return false;
        };
        let policy = self.session.approval.policy();
        match &exec_context.sandbox {
            Some(sandbox) if sandbox.request().network == Network::Session => {
                policy.opens_hosts() && exec_context.network.gateway().is_some()
            }
            Some(sandbox) => sandbox.request().network == Network::On,
            None => true,
        }
    }
}

/// The kinds of danger in a call.
#[derive(Debug, Clone, Copy, Default)]
struct Dangers {
    deletes: bool,
    discards: bool,
}

/// Whether a call is under review only because of dangerous commands that no rule is about.
pub(super) fn is_by_default(judgement: &Judgement) -> bool {
    let mut decisive = judgement.decisive();
    decisive.all(|part| matches!(part.by, DecidedBy::Danger(_)))
}

/// Whether the user has to look at what a call changed. For a call that only built-in
/// defaults put under review, that depends on what was lost.
pub(super) async fn needs_review(
    judgement: &Judgement,
    counts: &Counts,
    session: Option<&Session>,
    call_id: &str,
) -> bool {
    if counts.total() == 0 && counts.complete {
        return false;
    }
    let Some(session) = session.filter(|_| is_by_default(judgement) && counts.complete) else {
        return true;
    };
    let mut dangers = Dangers::default();
    for part in &judgement.parts {
        match part.by {
            DecidedBy::Danger(Danger::Discards | Danger::Rewrites) => dangers.discards = true,
            DecidedBy::Danger(_) => dangers.deletes = true,
            _ => {}
        }
    }
    let (session, call_id) = (session.clone(), call_id.to_owned());
    let lost = haft_ops::blocking::on_a_thread(move || {
        let Ok(sets) = session.sets() else {
            return true;
        };
        loses_something(&sets, &call_id, dangers)
    });
    lost.await.unwrap_or(true)
}

/// Whether the last set of a call contains the loss of something that earlier calls of the
/// session did not make.
fn loses_something(sets: &[ChangeSet], call_id: &str, dangers: Dangers) -> bool {
    let Some(at) = sets.iter().rposition(|set| set.summary.call_id == call_id) else {
        return true;
    };
    let (earlier, rest) = sets.split_at(at);
    // The entries as the session left them.
    let mut made: HashMap<&PathBuf, Option<&Side>> = HashMap::new();
    for set in earlier {
        // What an undo brings back was not made by the session.
        let is_undo = effects::UNDO_TOOLS.contains(&set.summary.tool.as_str());
        for change in &set.changes {
            match &change.kind {
                _ if is_undo => {
                    made.remove(&change.path);
                }
                ChangeKind::Created => {
                    made.insert(&change.path, change.after.as_ref());
                }
                ChangeKind::Renamed { from } if made.remove(from).is_some() => {
                    made.insert(&change.path, change.after.as_ref());
                }
                ChangeKind::Modified if made.contains_key(&change.path) => {
                    made.insert(&change.path, change.after.as_ref());
                }
                ChangeKind::Deleted => {
                    made.remove(&change.path);
                }
                _ => {}
            }
        }
    }
    let changes = rest.first().map(|set| set.changes.as_slice());
    changes.unwrap_or_default().iter().any(|change| {
        let is_lost = match change.kind {
            ChangeKind::Deleted => true,
            ChangeKind::Modified => dangers.discards,
            _ => false,
        };
        // Git keeps its own files in order, unless something else deletes them.
        let is_git =
            dangers.discards && !dangers.deletes && change.path.iter().any(|name| name == ".git");
        // The user may have written to a file of the session since.
        let is_own = made.get(&change.path).is_some_and(|left| {
            let sizes = left.zip(change.before.as_ref());
            sizes.is_some_and(|(left, before)| left.bytes == before.bytes)
        });
        is_lost && !is_git && !is_own
    })
}
