//! One turn: an answer, its calls, their results.

use super::ask::{NoAnswer, Question};
use super::calls::{Made, Prepared};
use super::handle::{Open, Waiting};
use super::limits::Round;
use super::pictures::Trial;
use super::record::NotRecorded;
use super::run::{End, Next, Run, Unsaid, fell_over, not_recorded, recorded};
use crate::format::REPAIRS;
use crate::{AgentEvent, Answer, Limit, Message, Origin, Part, Stop, ToolCall, ToolResult, Usage};
use futures::FutureExt;
use haft::{Effect, Reply};
use haft_store::sessions::{Approval, Batch, Call, REDACTED};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

/// The reply to a call with a mark in the place of a secret.
const MARKED: &str = "[not made: its arguments have the mark `[redacted]` in them. It stands \
for a secret that this session's record does not have, and is not the text that was there. Leave \
that part as it is in the file, read the value from a variable or a file, or ask the person for \
it; if the mark itself is meant, a new session takes it.]";

impl Run {
    pub(super) async fn turn(&mut self) -> Result<Next, NotRecorded> {
        self.turns += 1;
        self.is_in_turn = true;
        self.tell(AgentEvent::TurnStart { turn: self.turns });
        let answer = match self.answer().await {
            Ok(answer) => answer,
            Err(end) => return Ok(Next::End(end)),
        };
        let usage = answer.usage;
        self.count(&usage);
        self.text = answer.text();
        let calls: Vec<_> = answer.calls().cloned().collect();
        if calls.is_empty() {
            return self.last_answer(answer).await;
        }
        let prepared = match unmade(answer.stop) {
            None => self.prepare(calls).await,
            Some(why) => calls.into_iter().map(|call| not_made(call, why)).collect(),
        };
        let message = Message::Assistant(answer);
        let batch = Batch {
            messages: vec![recorded(&message)],
            calls: prepared.iter().map(|one| self.intent(one)).collect(),
            ..self.batch()
        };
        let unsaid = if batch.calls.iter().any(|call| call.has_effect) {
            let ids = self.commit(batch).await?;
            self.keep(vec![message], ids);
            self.begun(&prepared);
            None
        } else {
            self.teller.awaits(true);
            Some(Unsaid { message, batch })
        };
        let made = self.make(&prepared, unsaid).await;
        let calls: Vec<_> = prepared.into_iter().map(|one| one.call).collect();
        self.results(&calls, made, &usage).await
    }

    /// Asks the model; again with fewer pictures if it may have refused one, and once more
    /// with a shorter conversation if that was too long.
    async fn answer(&mut self) -> Result<Answer, End> {
        let mut has_shortened = false;
        let mut trial = Trial::default();
        let settings = Arc::clone(&self.settings);
        let system = settings.told();
        loop {
            let whole = Arc::clone(&self.shared.lock().history);
            let is_short = has_shortened || whole.len() < 3;
            let history = trial.of(Arc::clone(&whole));
            let changed = self.settings.hooks.transform_context(&history).await;
            let history = changed.map_or(history, Arc::new);
            let tools = self.shared.runtime.definitions();
            let question = Question {
                system: &system,
                tools: &tools,
                history: &history,
                is_trial: trial.has_begun(),
            };
            match self.ask(&question).await {
                Ok(mut answer) => {
                    self.keep_out(&trial, &mut answer);
                    return Ok(self.distinct(answer));
                }
                Err(NoAnswer::Failed(error) | NoAnswer::TooLong(error))
                    if (Trial::is_for(&error) || is_short && Trial::is_for_short(&error))
                        && self.ask_with_fewer(&mut trial, &whole, &error) => {}
                Err(NoAnswer::Failed(error)) => {
                    return Err(End::Failed(trial.error(error).message));
                }
                Err(NoAnswer::Stopped(partial)) => {
                    self.keep_partial(partial).await?;
                    return Err(End::Interrupted);
                }
                Err(NoAnswer::TooLong(error)) => {
                    if is_short {
                        return Err(End::Failed(trial.error(error).message));
                    }
                    has_shortened = true;
                    self.compact().await?;
                    trial.start_over();
                }
            }
        }
    }

    /// What had come when somebody stopped it is not lost.
    async fn keep_partial(&mut self, partial: String) -> Result<(), End> {
        if partial.trim().is_empty() {
            return Ok(());
        }
        self.text.clone_from(&partial);
        let answer = Answer {
            parts: vec![Part::Text { text: partial }],
            stop: Stop::Interrupted,
            model: self.shared.model().id().model,
            ..Answer::default()
        };
        self.say(vec![Message::Assistant(answer)]).await?;
        Ok(())
    }

    /// Ids that were there before are made distinct: each call has its own result.
    fn distinct(&self, mut answer: Answer) -> Answer {
        let ids = &mut self.shared.lock().call_ids;
        let mut is_renamed = false;
        for part in &mut answer.parts {
            let Part::Call(call) = part else { continue };
            if call.id.is_empty() || ids.contains(&call.id) {
                let stem = if call.id.is_empty() { "call" } else { &call.id };
                let fresh = (2_u64..)
                    .map(|number| format!("{stem}_{number}"))
                    .find(|id| !ids.contains(id));
                call.id = fresh.unwrap_or_default();
                is_renamed = true;
            }
            ids.insert(call.id.clone());
        }
        if is_renamed {
            // The provider's own form has the old ones.
            answer.native = None;
        }
        answer
    }

    async fn last_answer(&mut self, answer: Answer) -> Result<Next, NotRecorded> {
        let usage = answer.usage;
        let stopped_short = answer.stop == Stop::Length;
        let refused = answer.stop == Stop::Refusal && answer.text().trim().is_empty();
        let event = self.turn_end(&usage);
        let has_tasks = self.settings.waits_for_background
            && self.shared.background.is_busy(&self.shared.runtime);
        let is_whole = !stopped_short && !refused;
        let goes_on = self.shared.is_steered() || has_tasks && is_whole;
        let misfit = match goes_on || !is_whole {
            true => None,
            false => self.misfit(&answer.text()),
        };
        let questions = self.has_questions();
        let message = Message::Assistant(answer);
        let batch = Batch {
            messages: vec![recorded(&message)],
            ..self.batch()
        };
        if goes_on || !is_whole || misfit.is_some() || questions {
            let ids = self
                .commit_or_tell(None, batch, std::slice::from_ref(&event))
                .await?;
            self.keep(vec![message], ids);
            self.teller.send(event);
            if let Some(note) = misfit {
                if self.repairs == REPAIRS {
                    return Ok(Next::End(self.unfit(&self.text)));
                }
                self.repairs += 1;
                self.say(vec![note]).await?;
                return Ok(Next::Turn);
            }
            if has_tasks && is_whole {
                self.waits_for_tasks().await;
            }
            return Ok(match (goes_on, refused) {
                (true, _) => Next::Turn,
                _ if is_whole => Next::End(End::Approval),
                (_, true) => Next::End(End::Failed(
                    "the model declined to answer; say it in other words, or try another model"
                        .to_owned(),
                )),
                _ => Next::End(End::Failed(
                    "the answer was cut: it reached the most tokens an answer may have; ask for less at once".to_owned(),
                )),
            });
        }
        // The end of the run shares the transaction of its last answer.
        let end = self.teller.prepared(self.agent_end("done"));
        let batch = Batch {
            events: batch.events.into_iter().chain(self.teller.take()).collect(),
            ..batch
        };
        let ids = self
            .commit_or_tell(None, batch, std::slice::from_ref(&event))
            .await?;
        self.keep(vec![message], ids);
        self.teller.send(event);
        self.teller.send(end);
        Ok(Next::End(End::Told))
    }

    /// Lets hooks have their say before anything is recorded.
    async fn prepare(&self, calls: Vec<ToolCall>) -> Vec<Prepared> {
        let mut prepared = Vec::new();
        for mut call in calls {
            let id = call.id.clone();
            let hook = self.settings.hooks.before_tool(&mut call);
            let instead = AssertUnwindSafe(hook).catch_unwind().await;
            // Whoever could have said no has not said yes.
            let instead = instead.unwrap_or_else(|panic| {
                let text = fell_over("a hook", &*panic);
                Some(Reply::error(format!("the call was not made: {text}")))
            });
            call.id = id;
            let instead = instead.or_else(|| self.repeats_a_mark(&call));
            prepared.push(Prepared {
                instead,
                ..Prepared::new(call)
            });
        }
        prepared
    }

    /// Refuses a call that would put the mark of a secret where the secret belongs.
    fn repeats_a_mark(&self, call: &ToolCall) -> Option<Reply> {
        let has_mark = call.arguments.to_string().contains(REDACTED);
        let is_refused = has_mark && self.shared.lock().has_marks && self.may_change(call);
        is_refused.then(|| Reply::error(MARKED))
    }

    fn intent(&self, one: &Prepared) -> Call {
        let effect = self.shared.runtime.effect_of(&one.call.name);
        Call {
            call_id: one.call.id.clone(),
            tool: one.call.name.clone(),
            arguments: one.call.arguments.to_string(),
            // A call that a hook answers for is not made.
            has_effect: one.instead.is_none()
                && !matches!(effect, None | Some(Effect::Read | Effect::Pure)),
        }
    }

    /// Records and tells what came of the calls, and says what is next.
    pub(super) async fn results(
        &mut self,
        calls: &[ToolCall],
        made: Made,
        usage: &Usage,
    ) -> Result<Next, NotRecorded> {
        let untold = made.untold.into_iter();
        let mut told: Vec<_> = untold.map(|kind| self.teller.prepared_tool(kind)).collect();
        told.push(self.turn_end(usage));
        if let Some(error) = made.broken {
            for event in told {
                self.teller.send(not_recorded(event, &error));
            }
            return Err(error);
        }
        let mut messages = Vec::new();
        let mut open = None;
        let mut next = Next::Turn;
        let results: Vec<ToolResult> = made.results.into_iter().flatten().collect();
        if made.waiting.is_empty() {
            match self.circle.turn(calls, &results) {
                Round::Fine => {}
                Round::Tell(times) => messages.push(Message::user(circling(times), Origin::Note)),
                Round::Stop => next = Next::End(End::Limit(Limit::Loop)),
            }
            messages.insert(0, Message::Tool { results });
        } else {
            open = Some(Open {
                calls: calls.to_vec(),
                done: results,
                waiting: made.waiting.clone(),
                since: SystemTime::now(),
            });
            next = Next::End(End::Approval);
        }
        // What waits for a person is not done.
        if let (Some(text), true) = (made.last_word, made.waiting.is_empty()) {
            next = match self.misfit(&text) {
                None => Next::End(End::Done),
                Some(_) if self.repairs == REPAIRS => Next::End(self.unfit(&text)),
                Some(note) => {
                    self.repairs += 1;
                    messages.push(note);
                    Next::Turn
                }
            };
            self.text = text;
        }
        if self.cancel.is_cancelled() {
            next = Next::End(End::Interrupted);
        }
        let batch = Batch {
            messages: messages.iter().map(recorded).collect(),
            outcomes: made.unrecorded,
            approvals: made.waiting.iter().map(|one| asked(calls, one)).collect(),
            ..self.batch()
        };
        let ids = self.commit_or_tell(made.unsaid, batch, &told).await?;
        self.keep(messages, ids);
        self.shared.lock().open = open;
        for event in told {
            self.teller.send(event);
        }
        Ok(next)
    }
}

/// Why the calls of an answer are not made: it is not complete, so nobody knows what else
/// it would have said.
fn unmade(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::End | Stop::Calls => None,
        Stop::Length => Some(
            "the answer reached the most tokens that one may have and was cut; make the call again, with less at once",
        ),
        Stop::Refusal => Some("the provider withheld the rest of the answer"),
        Stop::Interrupted => Some("the answer was interrupted"),
    }
}

fn not_made(call: ToolCall, why: &str) -> Prepared {
    Prepared {
        instead: Some(Reply::error(format!("the call was not made: {why}"))),
        ..Prepared::new(call)
    }
}

/// A question as the record has it.
fn asked(calls: &[ToolCall], one: &Waiting) -> Approval {
    let call = calls.iter().find(|call| call.id == one.call_id);
    let question = json!({
        "tool": call.map(|call| &call.name),
        "arguments": call.map(|call| &call.arguments),
        "question": one.question,
        "has_begun": one.has_begun,
    });
    Approval {
        call_id: one.call_id.clone(),
        question: question.to_string(),
    }
}

fn circling(times: u32) -> String {
    format!(
        "[haft: the last {times} turns were the same calls with the same results. Doing it \
         again will not help: try something else, or say what is in the way.]"
    )
}
