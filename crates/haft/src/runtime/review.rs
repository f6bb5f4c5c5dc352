//! Letting the user decide about the changes of a call after it has run.

use super::approve::{on_one_line, reason_of, said_no};
use super::recording::lock;
use super::{ApprovalAnswer, Approve, Call, Question, Runtime};
use crate::event::EventKind;
use crate::{Error, Judgement, Reply, Verdict, effects};
use haft_ops::effects::{
    Calls, Change, ChangeSet, Counts, Selection, Session, SetState, SetSummary, UndoError, UndoMode,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// Detail of a held reply with the id of its set of changes.
const SET: &str = "review_of";

/// Changes that a call has made, for the user to keep or to revert.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Review {
    /// Number of changes of each kind, and whether all of them were recorded.
    pub counts: Counts,
    session: Session,
    set: Option<Arc<ChangeSet>>,
}

impl Review {
    /// Returns the changes, deletions first.
    #[must_use]
    pub fn changes(&self) -> Vec<&Change> {
        self.set
            .as_ref()
            .map(|set| effects::in_order(&set.changes))
            .unwrap_or_default()
    }

    /// Returns one line per change, deletions first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let work_dir = self.session.work_dir();
        let changes = self.changes().into_iter();
        changes
            .map(|change| effects::change_line(work_dir, change))
            .collect()
    }

    /// Returns one line with the number of changes of each kind.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut words = effects::counts_words(&self.counts);
        if let Some(gap) = effects::gap(&self.counts) {
            words.push_str(&format!("; {gap}"));
        }
        on_one_line(words)
    }

    /// Returns each change with what it did to the file, deletions first.
    #[must_use]
    pub fn diffs(&self) -> Vec<(String, effects::Diff)> {
        let Some(set) = &self.set else {
            return Vec::new();
        };
        let one = |change: &&Change| {
            let line = effects::change_line(self.session.work_dir(), change);
            (line, effects::diff(&self.session, &set.summary, change))
        };
        self.changes().iter().map(one).collect()
    }

    pub(super) fn event(&self, call_id: &str, tool: &str) -> EventKind {
        let json = |change: &&Change| match &self.set {
            Some(set) => effects::change_json(&self.session, &set.summary, change),
            None => Value::Null,
        };
        EventKind::ReviewNeeded {
            call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            changes: self.changes().iter().map(json).collect(),
            complete: self.counts.complete,
            why: self.counts.why.clone(),
        }
    }
}

/// A decision about changes, with the words that the model reads.
enum Settled {
    Keep(String),
    Revert(String),
}

impl Runtime {
    /// Asks the user about the changes of a call that has just run.
    pub(super) async fn review(
        &self,
        call: &Call,
        judgement: Judgement,
        counts: Counts,
        mut reply: Reply,
    ) -> Reply {
        let Some(session) = self.session.effects.clone() else {
            return reply;
        };
        let id = self.recorded_id(call);
        let set = find(&session, &id).await;
        let review = Review {
            counts,
            session,
            set,
        };
        match self.decision(call, judgement, review.clone()).await {
            Some(settled) => self.settled(settled, &review, reply).await,
            None => {
                let question = format!("keep or revert? {}", review.summary());
                let mut pending = self.failure(&Error::Waiting { question });
                if let Some(effects) = reply.details.get("effects") {
                    pending
                        .details
                        .insert("effects".to_owned(), effects.clone());
                }
                pending
                    .details
                    .insert("review".to_owned(), "waiting".into());
                pending.is_error = false;
                reply.details.insert(SET.to_owned(), id.into());
                pending.held = Some(Box::new(reply));
                pending
            }
        }
    }

    /// Settles a review that had to wait: asks the user now, unless the call has their
    /// answer. `held` is the reply that the call made when it ran ([`Reply::held`]). Call
    /// and tool are not run again.
    pub async fn settle(&self, call: Call, mut held: Reply) -> Reply {
        let set = held.details.remove(SET);
        let id = set.as_ref().and_then(Value::as_str).unwrap_or(&call.id);
        let Some(session) = self.session.effects.clone() else {
            return self.noted(held, "kept: changes are not recorded in this session");
        };
        let Some(set) = find(&session, id).await else {
            return self.noted(held, "kept: the record of the changes is gone");
        };
        if set.summary.state == SetState::Undone {
            held.is_error = true;
            held.details.insert("review".to_owned(), "reverted".into());
            let note = "reverted: the user undid the changes before they decided about them";
            return self.noted(held, note);
        }
        let review = Review {
            counts: set.summary.counts.clone(),
            session,
            set: Some(set),
        };
        let judgement = Judgement {
            verdict: Verdict::Review,
            parts: Vec::new(),
        };
        match self.decision(&call, judgement, review.clone()).await {
            Some(settled) => self.settled(settled, &review, held).await,
            None => {
                let question = format!("keep or revert? {}", review.summary());
                let mut pending = self.failure(&Error::Waiting { question });
                pending.is_error = false;
                held.details.insert(SET.to_owned(), id.to_owned().into());
                pending.held = Some(Box::new(held));
                pending
            }
        }
    }

    /// Adds sessions of sub-agents from an earlier process, so that [`Runtime::undo_notes`]
    /// knows them.
    pub fn add_inner_sessions(&self, ids: impl IntoIterator<Item = String>) {
        let Some(own) = &self.session.effects else {
            return;
        };
        let open = |id: String| own.store().session(&id, own.work_dir(), own.roots());
        lock(&self.session.inner_effects).extend(ids.into_iter().map(open));
    }

    /// Returns what the user undid and redid in this session and in those of its sub-agents,
    /// one note each. `known` has the number of the last undo of each session that the model
    /// knows, and is updated. Undos that are older than `since` are left out, and so are
    /// reverts by a review.
    pub async fn undo_notes(
        &self,
        known: &mut HashMap<String, u64>,
        since: Option<SystemTime>,
    ) -> Vec<String> {
        let Some(own) = self.session.effects.clone() else {
            return Vec::new();
        };
        let mut sessions = vec![own];
        if self.session.agent.is_none() {
            sessions.extend(lock(&self.session.inner_effects).iter().cloned());
        }
        let from = known.clone();
        let found = haft_ops::blocking::on_a_thread(move || {
            let read = sessions.iter().map(|session| {
                let last = from.get(session.id()).copied().unwrap_or_default();
                new_undos(session, last)
            });
            let read: Vec<_> = read.filter_map(std::io::Result::ok).flatten().collect();
            read
        });
        let reverts = lock(&self.session.reverts).clone();
        let mut notes = Vec::new();
        for (set, calls) in found.await.unwrap_or_default() {
            let summary = &set.summary;
            let last = known.entry(summary.session.clone()).or_default();
            *last = summary.number.max(*last);
            let is_old = since.is_some_and(|since| summary.time <= since);
            if !is_old && !reverts.contains(&summary.call_id) {
                let task = (summary.session != self.session.id).then_some(&*summary.session);
                notes.push(undo_note(&set, &calls, task));
            }
        }
        notes
    }

    /// Returns the id under which the call is recorded.
    pub(super) fn recorded_id(&self, call: &Call) -> String {
        let journal = self.session.journal.as_ref();
        let recorded = journal.and_then(|journal| journal.recorded_as(&call.id));
        recorded.unwrap_or_else(|| call.id.clone())
    }

    /// Asks the user, if that is needed and possible; `None` if they can only answer later.
    async fn decision(&self, call: &Call, judgement: Judgement, review: Review) -> Option<Settled> {
        let approval = &self.session.approval;
        let approver = self.approver_for(call.approver.as_ref());
        let why = match (approval.approve, approver, &call.answer) {
            (Approve::Auto, _, None) => {
                return Some(Settled::Keep("--approve auto keeps changes".to_owned()));
            }
            (Approve::Never, _, _) => "and --approve never keeps no changes that need a review",
            (_, None, None) => "and no user can be asked here",
            _ => {
                let question = Question {
                    call_id: call.id.clone(),
                    tool: call.tool.clone(),
                    arguments: json!({}),
                    resources: Vec::new(),
                    judgement,
                    suggestion: None,
                    rules_file: None,
                    confirm: None,
                    agent: self.session.agent.clone(),
                    review: Some(Box::new(review)),
                };
                return self.asked(call, &question).await;
            }
        };
        let asked = reason_of(&call.tool, &judgement, why);
        Some(Settled::Revert(asked))
    }

    async fn asked(&self, call: &Call, question: &Question) -> Option<Settled> {
        let Some(answer) = self.answer_to(call, question).await else {
            return Some(Settled::Revert("the call was cancelled".to_owned()));
        };
        match answer {
            ApprovalAnswer::Later => None,
            ApprovalAnswer::Reject { reason } => {
                Some(Settled::Revert(on_one_line(said_no(reason))))
            }
            _ => Some(Settled::Keep("the user approved the changes".to_owned())),
        }
    }

    /// Carries out a decision and tells the model.
    async fn settled(&self, settled: Settled, review: &Review, mut reply: Reply) -> Reply {
        let changed = effects::counts_words(&review.counts);
        match settled {
            Settled::Keep(why) => {
                reply.details.insert("review".to_owned(), "kept".into());
                self.noted(reply, &format!("kept: {why} ({changed})"))
            }
            Settled::Revert(why) => {
                let remains = match &review.set {
                    Some(set) => match revert(&review.session, set).await {
                        Ok(undone) => {
                            lock(&self.session.reverts).extend(undone);
                            effects::gap(&review.counts)
                        }
                        Err(why) => Some(why),
                    },
                    None => Some("the record of the changes cannot be read".to_owned()),
                };
                reply.is_error = true;
                let note = match &remains {
                    None => {
                        reply.details.insert("review".to_owned(), "reverted".into());
                        format!(
                            "reverted, because {why}. The files are as they were before this call; \
                             what it did was: {changed}. Do not retry it in another form."
                        )
                    }
                    Some(remains) => {
                        reply
                            .details
                            .insert("review".to_owned(), "not reverted".into());
                        reply
                            .details
                            .insert("not_reverted".to_owned(), remains.as_str().into());
                        format!(
                            "to be reverted, because {why}; but not all of it could be reverted: \
                             {remains}"
                        )
                    }
                };
                self.noted(reply, &note)
            }
        }
    }

    /// Adds a note for the model.
    fn noted(&self, mut reply: Reply, note: &str) -> Reply {
        let form = self.reply_form();
        form.add_note(&mut reply.content, note);
        if let (Some(_), [block]) = (&reply.document, &*reply.content) {
            reply.document = block
                .as_text()
                .and_then(|text| serde_json::from_str(text).ok());
        }
        reply
    }
}

/// Returns the newest set of a call.
async fn find(session: &Session, id: &str) -> Option<Arc<ChangeSet>> {
    let (session, id) = (session.clone(), id.to_owned());
    let found = haft_ops::blocking::on_a_thread(move || {
        let sets = session.sets().ok()?;
        sets.into_iter().rev().find(|set| set.summary.call_id == id)
    });
    found.await.ok()?.map(Arc::new)
}

/// Returns the undos of a session after the set with the number `known`, each with the calls
/// that it is about.
fn new_undos(session: &Session, known: u64) -> std::io::Result<Vec<(ChangeSet, Vec<String>)>> {
    let is_new =
        |set: &SetSummary| set.number > known && effects::UNDO_TOOLS.contains(&set.tool.as_str());
    let summaries = session.summaries()?;
    // The changes are read only if there is a new undo.
    if !summaries.iter().any(is_new) {
        return Ok(Vec::new());
    }
    let mut sets = session.sets()?;
    sets.retain(|set| is_new(&set.summary));
    let sets = sets.into_iter().map(|set| {
        let calls = effects::origins(&summaries, &set.summary.undoes);
        (set, calls)
    });
    Ok(sets.collect())
}

/// Tells the model about an undo. `task` is the sub-agent that made the calls, by the id that
/// the model knows.
fn undo_note(set: &ChangeSet, calls: &[String], task: Option<&str>) -> String {
    let did = match set.summary.tool.as_str() {
        "redo" => "redid",
        _ => "undid",
    };
    let calls = match calls.is_empty() {
        true => "changes".to_owned(),
        false => haft_ops::text::few(calls, 10),
    };
    let files = effects::files(&set.changes);
    let of = task.map(|task| format!(" of task {task}"));
    let of = of.unwrap_or_default();
    on_one_line(format!("[haft: the user {did} {calls}{of}: {files}]"))
}

/// Takes back a set of changes. Returns the id of the undo, or what could not be taken back.
async fn revert(session: &Session, set: &Arc<ChangeSet>) -> Result<Option<String>, String> {
    let (session, set) = (session.clone(), Arc::clone(set));
    let reverted = haft_ops::blocking::on_a_thread(move || {
        let undo = |paths: Vec<PathBuf>| {
            let selection = Selection {
                calls: Calls::Ids(vec![set.summary.call_id.clone()]),
                paths,
            };
            session.undo(&selection, UndoMode::Careful)
        };
        match undo(Vec::new()) {
            Ok(undone) => Ok(Some(undone.call_id)),
            Err(UndoError::Nothing) => Ok(None),
            // The rest is taken back all the same.
            Err(error @ (UndoError::NotKept { .. } | UndoError::Changed { .. })) => {
                let paths = match &error {
                    UndoError::NotKept { paths } => paths.clone(),
                    UndoError::Changed { paths } => {
                        paths.iter().map(|changed| changed.path.clone()).collect()
                    }
                    _ => Vec::new(),
                };
                let rest = set.changes.iter().map(|change| change.path.clone());
                let rest: Vec<PathBuf> = rest.filter(|path| !paths.contains(path)).collect();
                match rest.is_empty() {
                    true => Err(error.to_string()),
                    false => match undo(rest) {
                        Ok(_) | Err(UndoError::Nothing) => Err(error.to_string()),
                        Err(other) => Err(format!("{error}; {other}")),
                    },
                }
            }
            Err(error) => Err(error.to_string()),
        }
    });
    reverted.await.unwrap_or_else(Err)
}
