//! Continues a session that has calls without results: calls that wait for approval, and calls
//! whose outcome is unknown.

use super::calls::{CallResults, PreparedCall};
use super::handle::OpenCalls;
use super::record::{NotRecorded, recorded};
use super::run::{End, Next, Run};
use crate::{Agent, Message, ToolCall, ToolResult, Usage, UserInput};
use haft::{ApprovalAnswer, Content, Effect, Journal, Outcome, Reply};
use haft_store::record::{Batch, Decision, REDACTED};

/// Maximum number of changed files that are listed for the model.
const MAX_FILES: usize = 30;

/// Result of a call that waited for approval when the user sent a new prompt instead.
const NOT_ANSWERED: &str = "[not run: it waited for approval, and the user sent a new message \
instead]";

/// Result of a call that asked the user something while it ran.
const ABANDONED: &str = "[ended: it waited for an answer, and the user sent a new message instead. \
What it did before that is done.]";

/// Result of a call whose recorded arguments are redacted.
const INCOMPLETE: &str = "[not run: its arguments contained a secret, which is not recorded, so \
the approved call is incomplete. Call it again without the secret in its arguments (use a file or \
a variable that the command reads).]";

/// Whether the recorded arguments of a call are redacted, so that it would run with the mark
/// instead of the secret. Arguments that the user enters replace redacted ones.
fn is_incomplete(call: &ToolCall, answer: Option<&ApprovalAnswer>) -> bool {
    let has_mark = |value: &serde_json::Value| value.to_string().contains(REDACTED);
    match answer {
        Some(ApprovalAnswer::Reject { .. } | ApprovalAnswer::Later) => false,
        Some(ApprovalAnswer::ApproveWith { arguments }) => {
            let Some(old) = call.arguments.as_object() else {
                return false;
            };
            // The user may have edited the text around a mark and left the mark in it.
            old.iter()
                .any(|(name, value)| has_mark(value) && arguments.get(name).is_none_or(has_mark))
        }
        _ => has_mark(&call.arguments),
    }
}

/// Input for continuing a session.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// The user's answers for pending calls, by the id of the call. This may be a call of a
    /// sub-agent ([`PendingApproval::name`](crate::PendingApproval::name)).
    pub answers: Vec<(String, ApprovalAnswer)>,
    /// A new prompt.
    pub prompt: Option<UserInput>,
}

impl Run {
    /// Produces the missing results for the calls of the last answer. Returns how the run
    /// ends, if there is no reason to continue.
    pub(super) async fn resume_calls(&mut self, resumed: &Resumed) -> Result<Option<End>, End> {
        let resumed = &self.assign_answers(resumed);
        let answers = self.shared.lock().answers_within.clone();
        let (background, runtime) = (&self.shared.background, &self.shared.runtime);
        background.resume_waiting(runtime, &answers);
        let Some(open) = self.shared.lock().open.take() else {
            self.shared.lock().answers_within.clear();
            return Ok(None);
        };
        if let Err(error) = self.record_answers(&open, resumed).await {
            self.shared.lock().open = Some(open);
            return Err(error.into());
        }
        self.turns += 1;
        self.is_in_turn = true;
        self.emit(crate::AgentEvent::TurnStart { turn: self.turns });
        let changed = self.describe_changes(&open).await;
        let mut prepared = Vec::new();
        let mut results: Vec<Option<ToolResult>> = Vec::new();
        for call in &open.calls {
            if let Some(done) = open.done.iter().find(|done| done.call_id == call.id) {
                results.push(Some(done.clone()));
            } else if let Some(pending) = open.pending(&call.id) {
                results.push(None);
                let answer = resumed.answers.iter().find(|(id, _)| *id == call.id);
                let answer = answer.map(|(_, answer)| answer.clone());
                let mut one = PreparedCall {
                    instead: is_incomplete(call, answer.as_ref()).then(|| Reply::error(INCOMPLETE)),
                    answer: answer.map(|answer| (answer, pending.has_begun)),
                    is_asked: !pending.has_begun,
                    ..PreparedCall::new(call.clone())
                };
                if let Some(held) = &pending.held {
                    // The call has run; only its changes are decided about.
                    one.instead = Some(self.settle(&one, held).await);
                }
                prepared.push(one);
            } else {
                results.push(Some(self.interrupted(call, &changed)));
            }
        }
        // If the process is killed from here on, any of the calls may have started.
        self.shared.lock().open = Some(OpenCalls {
            calls: open.calls.clone(),
            done: open.done.clone(),
            pending: Vec::new(),
            since: open.since,
        });
        let made = self.run_calls(&prepared, None).await?;
        self.shared.lock().answers_within.clear();
        let mut fresh = made.results.into_iter();
        for slot in results.iter_mut().filter(|slot| slot.is_none()) {
            *slot = fresh.next().flatten();
        }
        let made = CallResults { results, ..made };
        let next = self.results(&open.calls, made, &Usage::default()).await?;
        match next {
            Next::Turn => Ok(None),
            Next::End(end) => Ok(Some(end)),
        }
    }

    /// Returns the answers for the agent's own calls, and sets aside those for calls of
    /// sub-agents.
    fn assign_answers(&self, resumed: &Resumed) -> Resumed {
        let questions = Agent::approvals_of(&self.shared);
        let session = self.shared.runtime.session();
        let mut conversation = self.shared.lock();
        let conversation = &mut *conversation;
        let open = conversation.open.as_ref();
        let own = |id: &str| open.is_some_and(|open| open.pending(id).is_some());
        let mut answers: Vec<(String, ApprovalAnswer)> = Vec::new();
        for (name, answer) in &resumed.answers {
            let here = name.strip_prefix(session);
            let here = here.and_then(|rest| rest.strip_prefix('/'));
            let found = questions.iter().find(|one| one.is_named(name));
            // The id of a background task refers to all of its calls.
            let of_task = questions
                .iter()
                .filter(|one| one.own == *name && !own(name));
            let of_task = of_task.map(|one| (one.long(), answer.clone()));
            conversation.answers_within.extend(of_task);
            match (here.unwrap_or(name), found) {
                // An answer for one call takes precedence over an answer for all.
                (id, _) if answers.iter().any(|(known, _)| known == id) => {}
                (id, _) if own(id) => answers.push((id.to_owned(), answer.clone())),
                (_, Some(found)) => {
                    let answer = (found.long(), answer.clone());
                    conversation.answers_within.push(answer);
                }
                _ => {}
            }
        }
        Resumed {
            answers,
            prompt: resumed.prompt.clone(),
        }
    }

    /// Gives each open call a result before a new prompt. A new prompt is not an approval, so
    /// pending calls do not run.
    pub(super) async fn close_open_calls(&mut self) -> Result<(), NotRecorded> {
        let Some(open) = self.shared.lock().open.take() else {
            return Ok(());
        };
        let changed = self.describe_changes(&open).await;
        let mut results = Vec::new();
        let mut batch = self.recorder.batch();
        let journal = self.journal(None);
        for call in &open.calls {
            if let Some(done) = open.done.iter().find(|done| done.call_id == call.id) {
                results.push(done.clone());
            } else if let Some(pending) = open.pending(&call.id) {
                let reply = match &pending.held {
                    Some(held) => {
                        let reason = Some("the user sent a new message instead".to_owned());
                        let one = PreparedCall {
                            answer: Some((ApprovalAnswer::Reject { reason }, true)),
                            ..PreparedCall::new(call.clone())
                        };
                        self.settle(&one, held).await
                    }
                    None => Reply::error(match pending.has_begun {
                        true => ABANDONED,
                        false => NOT_ANSWERED,
                    }),
                };
                batch.decisions.push(Decision {
                    call_id: call.id.clone(),
                    answer: "reject".to_owned(),
                });
                let outcome = Outcome::of_unmade(&call.id, &reply);
                journal.outcome(outcome).await?;
                let form = self.shared.runtime.reply_form();
                results.push(super::calls::result(call, reply, form));
            } else {
                results.push(self.interrupted(call, &changed));
            }
        }
        batch.outcomes = journal.take().outcomes;
        let message = Message::Tool { results };
        batch.messages.push(recorded(&message));
        match self.recorder.commit(batch).await {
            Ok(ids) => self.recorder.extend_history(vec![message], ids),
            Err(error) => {
                self.shared.lock().open = Some(open);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn record_answers(&self, open: &OpenCalls, resumed: &Resumed) -> Result<(), NotRecorded> {
        let given = resumed.answers.iter();
        let decisions = given.filter(|(id, _)| open.pending(id).is_some());
        let decisions: Vec<_> = decisions
            .map(|(call_id, answer)| Decision {
                call_id: call_id.clone(),
                answer: match answer {
                    ApprovalAnswer::ApproveWith { arguments } => arguments.to_string(),
                    ApprovalAnswer::Reject { reason: None } => "reject".to_owned(),
                    ApprovalAnswer::Reject {
                        reason: Some(reason),
                    } => format!("reject:{reason}"),
                    _ => "approve".to_owned(),
                },
            })
            .collect();
        if !decisions.is_empty() {
            let batch = Batch {
                decisions,
                ..self.recorder.batch()
            };
            self.recorder.commit(batch).await?;
        }
        Ok(())
    }

    /// Describes the files that changed, if a call with an unknown outcome may have changed
    /// some.
    async fn describe_changes(&self, open: &OpenCalls) -> String {
        let is_unknown = |call: &&ToolCall| {
            open.pending(&call.id).is_none()
                && !open.done.iter().any(|done| done.call_id == call.id)
        };
        if !open
            .calls
            .iter()
            .filter(is_unknown)
            .any(|call| self.may_change(call))
        {
            return String::new();
        }
        // Timestamps of files may be less precise than the clock.
        let since = open.since - std::time::Duration::from_secs(1);
        let changes = self.shared.runtime.changed_since(since, MAX_FILES).await;
        let when = haft::ops::text::moment::to_seconds(open.since);
        let incomplete = match changes.is_complete {
            true => "",
            false => " (not all files could be checked)",
        };
        if changes.total == 0 {
            return format!(" No file in the work folder changed since {when}{incomplete}.");
        }
        let more = match changes.total - changes.files.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            " Files in the work folder that changed since {when}{incomplete}: {}{more}.",
            changes.files.join(", ")
        )
    }

    pub(super) fn may_change(&self, call: &ToolCall) -> bool {
        let effect = self.shared.runtime.effect_of(&call.name);
        effect.is_some_and(Effect::may_change)
    }

    /// Returns the result of a call that was interrupted. The call does not run again.
    fn interrupted(&self, call: &ToolCall, changed: &str) -> ToolResult {
        let text = if self.may_change(call) {
            format!(
                "[interrupted, outcome unknown: haft was stopped while this call was running, \
                 and the call was not repeated. It may have done all, some or none of its \
                 work.{changed} Check the current state before you repeat it.]"
            )
        } else {
            "[interrupted: haft was stopped before this call had a result. It does not change \
             anything: repeat it if you need it.]"
                .to_owned()
        };
        ToolResult {
            call_id: call.id.clone(),
            tool: call.name.clone(),
            content: vec![Content::Text { text }],
            is_error: true,
        }
    }
}
