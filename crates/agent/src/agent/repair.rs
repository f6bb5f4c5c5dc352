//! Taking up what was left: calls that wait for a person, and calls that nobody knows
//! the outcome of.

use super::calls::{Made, Prepared};
use super::handle::Open;
use super::record::NotRecorded;
use super::run::{End, Next, Run, recorded};
use crate::{Agent, Message, ToolCall, ToolResult, Usage};
use haft::{Answer, Content, Effect, Reply};
use haft_store::sessions::{Batch, Decision, Outcome, REDACTED};

/// How many changed files the model is told by name.
const NAMED: usize = 30;

/// The result of a call that nobody said yes to.
const PASSED_OVER: &str = "[not made: it waited for a person, who said something else instead]";

/// The same of one that asked for something while it ran.
const LEFT: &str = "[ended: it asked a person for something, who said something else instead. \
What it did before that is done.]";

/// The result of a call that cannot be made as it was asked about.
const INCOMPLETE: &str = "[not made: its arguments held a secret, which is not recorded, so it \
cannot be made as it was shown. Make it again without the secret in its arguments (a file or \
a variable that the command reads).]";

/// Whether a call is not known as it was: what stands where a secret was would be run in
/// its place. Arguments that a person gives anew are as they are.
fn is_incomplete(call: &ToolCall, answer: Option<&Answer>) -> bool {
    let has_mark = |value: &serde_json::Value| value.to_string().contains(REDACTED);
    match answer {
        Some(Answer::Reject { .. } | Answer::Later) => false,
        Some(Answer::ApproveWith { arguments }) => {
            let Some(old) = call.arguments.as_object() else {
                return false;
            };
            // Also where a person has changed what was shown to them around the mark.
            old.iter()
                .any(|(name, value)| has_mark(value) && arguments.get(name).is_none_or(has_mark))
        }
        _ => has_mark(&call.arguments),
    }
}

/// How a session goes on.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// What a person says about calls that wait, by the id of the call: one of the agent,
    /// or of a sub-agent that it waits for ([`Waits::name`](crate::Waits::name)).
    pub answers: Vec<(String, Answer)>,
    /// What there is to do, if there is something new.
    pub prompt: Option<String>,
}

impl Run {
    /// Gives the calls of the last answer the results that they lack. An end, if there
    /// is nothing to go on with.
    pub(super) async fn take_up(&mut self, resumed: &Resumed) -> Result<Option<End>, End> {
        let resumed = &self.sorted(resumed);
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
        self.tell(crate::AgentEvent::TurnStart { turn: self.turns });
        let changed = self.what_changed(&open).await;
        let mut prepared = Vec::new();
        let mut results: Vec<Option<ToolResult>> = Vec::new();
        for call in &open.calls {
            if let Some(done) = open.done.iter().find(|done| done.call_id == call.id) {
                results.push(Some(done.clone()));
            } else if let Some(waits) = open.waits(&call.id) {
                results.push(None);
                let answer = resumed.answers.iter().find(|(id, _)| *id == call.id);
                let answer = answer.map(|(_, answer)| answer.clone());
                prepared.push(Prepared {
                    instead: is_incomplete(call, answer.as_ref()).then(|| Reply::error(INCOMPLETE)),
                    answer: answer.map(|answer| (answer, waits.has_begun)),
                    is_asked: !waits.has_begun,
                    ..Prepared::new(call.clone())
                });
            } else {
                results.push(Some(self.interrupted(call, &changed)));
            }
        }
        // From here on nobody knows which of them have begun.
        self.shared.lock().open = Some(Open {
            calls: open.calls.clone(),
            done: open.done.clone(),
            waiting: Vec::new(),
            since: open.since,
        });
        let made = self.make(&prepared, None).await;
        self.shared.lock().answers_within.clear();
        let mut fresh = made.results.into_iter();
        for slot in results.iter_mut().filter(|slot| slot.is_none()) {
            *slot = fresh.next().flatten();
        }
        let made = Made { results, ..made };
        let next = self.results(&open.calls, made, &Usage::default()).await?;
        match next {
            Next::Turn => Ok(None),
            Next::End(end) => Ok(Some(end)),
        }
    }

    /// The answers to its own calls, by their ids. Those to calls of sub-agents are laid
    /// out for them.
    fn sorted(&self, resumed: &Resumed) -> Resumed {
        let questions = Agent::questions_of(&self.shared);
        let session = self.shared.runtime.session();
        let mut conversation = self.shared.lock();
        let conversation = &mut *conversation;
        let open = conversation.open.as_ref();
        let own = |id: &str| open.is_some_and(|open| open.waits(id).is_some());
        let mut answers: Vec<(String, Answer)> = Vec::new();
        for (name, answer) in &resumed.answers {
            let here = name.strip_prefix(session);
            let here = here.and_then(|rest| rest.strip_prefix('/'));
            let found = questions.iter().find(|one| one.is_called(name));
            // A task in the background stands for all of its calls.
            let of_task = questions
                .iter()
                .filter(|one| one.own == *name && !own(name));
            let of_task = of_task.map(|one| (one.long(), answer.clone()));
            conversation.answers_within.extend(of_task);
            match (here.unwrap_or(name), found) {
                // What was said of one call comes before what was said of all.
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

    /// Calls that lack a result get one before something new is said. Whoever says
    /// something else has not said yes: what waits is not made.
    pub(super) async fn settle(&mut self) -> Result<(), NotRecorded> {
        let Some(open) = self.shared.lock().open.take() else {
            return Ok(());
        };
        let changed = self.what_changed(&open).await;
        let mut results = Vec::new();
        let mut batch = self.batch();
        for call in &open.calls {
            if let Some(done) = open.done.iter().find(|done| done.call_id == call.id) {
                results.push(done.clone());
            } else if let Some(waits) = open.waits(&call.id) {
                let reply = Reply::error(match waits.has_begun {
                    true => LEFT,
                    false => PASSED_OVER,
                });
                batch.decisions.push(Decision {
                    call_id: call.id.clone(),
                    answer: "reject".to_owned(),
                });
                batch.outcomes.push(Outcome {
                    call_id: call.id.clone(),
                    reply: reply.to_json().to_string(),
                    is_error: true,
                    duration_ms: 0,
                    output: None,
                });
                let toolset = self.shared.runtime.toolset();
                results.push(super::calls::result(call, reply, toolset));
            } else {
                results.push(self.interrupted(call, &changed));
            }
        }
        let message = Message::Tool { results };
        batch.messages.push(recorded(&message));
        match self.commit(batch).await {
            Ok(ids) => self.keep(vec![message], ids),
            Err(error) => {
                self.shared.lock().open = Some(open);
                return Err(error);
            }
        }
        Ok(())
    }

    async fn record_answers(&self, open: &Open, resumed: &Resumed) -> Result<(), NotRecorded> {
        let given = resumed.answers.iter();
        let decisions = given.filter(|(id, _)| open.waits(id).is_some());
        let decisions: Vec<_> = decisions
            .map(|(call_id, answer)| Decision {
                call_id: call_id.clone(),
                answer: match answer {
                    Answer::ApproveWith { arguments } => arguments.to_string(),
                    Answer::Reject { reason: None } => "reject".to_owned(),
                    Answer::Reject {
                        reason: Some(reason),
                    } => format!("reject:{reason}"),
                    _ => "approve".to_owned(),
                },
            })
            .collect();
        if !decisions.is_empty() {
            let batch = Batch {
                decisions,
                ..self.batch()
            };
            self.commit(batch).await?;
        }
        Ok(())
    }

    /// What the model is told of the files, if a call may have changed some.
    async fn what_changed(&self, open: &Open) -> String {
        let is_unknown = |call: &&ToolCall| {
            open.waits(&call.id).is_none() && !open.done.iter().any(|done| done.call_id == call.id)
        };
        if !open
            .calls
            .iter()
            .filter(is_unknown)
            .any(|call| self.may_change(call))
        {
            return String::new();
        }
        // File systems keep time less exactly than clocks.
        let since = open.since - std::time::Duration::from_secs(1);
        let changes = self.shared.runtime.changed_since(since, NAMED).await;
        let when = haft::ops::text::moment::to_seconds(open.since);
        let looked = match changes.is_complete {
            true => "",
            false => " (not all files could be looked at)",
        };
        if changes.total == 0 {
            return format!(" No file of the work folder changed since {when}{looked}.");
        }
        let more = match changes.total - changes.files.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!(
            " Files of the work folder that changed since {when}{looked}: {}{more}.",
            changes.files.join(", ")
        )
    }

    pub(super) fn may_change(&self, call: &ToolCall) -> bool {
        let effect = self.shared.runtime.effect_of(&call.name);
        !matches!(effect, None | Some(Effect::Read | Effect::Pure))
    }

    /// The result of a call that was interrupted. It is not made again.
    fn interrupted(&self, call: &ToolCall, changed: &str) -> ToolResult {
        let text = if self.may_change(call) {
            format!(
                "[interrupted, outcome unknown: haft was ended while this call ran, and it was \
                 not made again. It may have done all, some or nothing of its work.{changed} Look \
                 at what is there before you repeat it.]"
            )
        } else {
            "[interrupted: haft was ended before this call had a result. It changes nothing: make \
             it again if you need it.]"
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
