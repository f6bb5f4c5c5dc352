//! A run of the agent, shown to the client as it happens.

use super::Session;
use crate::changes;
use crate::port::Seat;
use crate::rpc::{RpcError, code};
use crate::schema::StopReason;
use crate::translate::{RunEnd, Stream};
use crate::update::Update;
use haft_agent::{
    Agent, Event, EventKind, Limit, Message, ModelAnswer, Origin, Resumed, Stop, UserInput,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

/// Time that a cancelled run has to end by itself before the client gets its answer.
const CANCEL_GRACE: Duration = Duration::from_millis(800);

impl Session {
    /// Runs the agent and shows its events.
    pub(super) async fn run(
        &self,
        cancel: &CancellationToken,
        input: UserInput,
        seat: &Arc<dyn Seat>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<StopReason, RpcError> {
        let agent = seat.agent();
        seat.note_run();
        let begun = match seat.take_unfinished_run() {
            true => {
                let resumed = Resumed {
                    answers: Vec::new(),
                    prompt: Some(input),
                };
                agent.resume(resumed).await
            }
            false => agent.prompt(input).await,
        };
        let mut events =
            begun.map_err(|busy| RpcError::new(code::INVALID_REQUEST, busy.to_string()))?;
        let mut end = None;
        let overdue = tokio::time::sleep(Duration::MAX);
        tokio::pin!(overdue);
        let mut is_aborted = false;
        loop {
            let updates = tokio::select! {
                biased;
                () = cancel.cancelled(), if !is_aborted => {
                    agent.abort();
                    is_aborted = true;
                    let deadline = tokio::time::Instant::now() + CANCEL_GRACE;
                    overdue.as_mut().reset(deadline);
                    continue;
                }
                event = events.next() => match event {
                    None => break,
                    Some(event) => {
                        self.asker.observe(&event, Stream::Run);
                        self.announce_denied(agent, &event);
                        let changes = changes::of_event(agent.runtime().effects(), &event).await;
                        let (updates, ended) = self.asker.translate(|translator| {
                            translator.event(&event, Stream::Run, changes)
                        });
                        end = ended.or(end);
                        updates
                    }
                },
                () = self.asker.flush_due() => self.asker.translate(|translator| translator.flush()),
                () = &mut overdue, if is_aborted => {
                    // The end is recorded in the background; the next prompt waits for it.
                    let seat = Arc::clone(seat);
                    tokio::spawn(async move {
                        while events.next().await.is_some() {}
                        drop((turn, seat));
                    });
                    return Ok(StopReason::Cancelled);
                }
            };
            for update in updates {
                self.client.update(&self.id, update);
            }
            tokio::select! {
                () = self.client.outbox.wait_for_room() => {}
                () = cancel.cancelled(), if !is_aborted => {}
            }
        }
        if is_aborted {
            // A call may have started one after the cancellation.
            self.stop_background();
        }
        match end {
            None | Some(RunEnd::Interrupted) => Ok(StopReason::Cancelled),
            Some(RunEnd::Limit(Limit::MaxTokens)) => Ok(StopReason::MaxTokens),
            Some(RunEnd::Limit(_)) => Ok(StopReason::MaxTurns),
            Some(RunEnd::Done) => Ok(stop_of(agent).unwrap_or(StopReason::EndTurn)),
            Some(RunEnd::Failed(message)) => {
                // An answer that was cut off or withheld counts as a failure elsewhere.
                let error = RpcError::new(code::INTERNAL, message);
                stop_of(agent).ok_or(error)
            }
        }
    }

    /// Announces a call that was refused before anything else was known of it, so that the user
    /// sees what was refused.
    fn announce_denied(&self, agent: &Agent, event: &Event) {
        let EventKind::Tool(haft::EventKind::ToolDenied { call_id, tool, .. }) = &event.kind else {
            return;
        };
        if event.parent.is_some() {
            return;
        }
        let history = agent.history();
        let mut answers = history.iter().rev().filter_map(|message| match &**message {
            Message::Assistant(answer) => Some(answer),
            _ => None,
        });
        let mut calls = answers.next().into_iter().flat_map(ModelAnswer::calls);
        if let Some(call) = calls.find(|call| call.id == *call_id) {
            let announced = self.asker.translate(|translator| {
                translator.announce(&self.id, call_id, tool, &call.arguments)
            });
            if let Some(announced) = announced {
                self.client
                    .update(&self.id, Update::Call(Box::new(announced)));
            }
        }
    }
}

/// Returns why the last answer to the last prompt is not whole, if so.
fn stop_of(agent: &Agent) -> Option<StopReason> {
    for message in agent.history().iter().rev() {
        match &**message {
            Message::Assistant(answer) => {
                return match answer.stop {
                    Stop::Refusal => Some(StopReason::Refusal),
                    Stop::Length => Some(StopReason::MaxTokens),
                    _ => None,
                };
            }
            Message::User {
                origin: Origin::Prompt,
                ..
            } => return None,
            _ => {}
        }
    }
    None
}
