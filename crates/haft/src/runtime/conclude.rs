//! The end of a call: the hook, the record of the outcome, and the last event.

use super::{Call, MAX_REASON_CHARS, Runtime, saved_output};
use crate::event::EventKind;
use crate::journal::{Journal, Outcome};
use crate::queue::Ticket;
use crate::{Content, Error, Reply};
use std::sync::Arc;
use std::time::Duration;

/// A call that has ended and is not recorded yet.
pub(super) struct Ended {
    pub(super) reply: Reply,
    pub(super) how: HowEnded,
    /// The position in the queue, if the tool ran. Later calls wait until it is dropped.
    pub(super) ticket: Option<Ticket>,
}

pub(super) enum HowEnded {
    /// The tool ran.
    Made {
        duration: Duration,
        is_truncated: bool,
    },
    /// The call was refused, for this reason.
    Refused(String),
    /// No event reports the end: a reply replaced the call, or it waits for the user.
    Silent,
}

impl Ended {
    /// The end of a call that did not run because the caller gave its reply.
    pub(super) fn replaced(reply: Reply) -> Self {
        Self {
            reply,
            how: HowEnded::Silent,
            ticket: None,
        }
    }
}

impl Runtime {
    /// Returns the end of a call that did not run.
    pub(super) fn refused(&self, call: &Call, error: &Error) -> Ended {
        tracing::debug!(call = call.id, tool = call.tool, %error, "refused");
        Ended {
            reply: self.failure(error),
            how: match error {
                Error::Waiting { .. } => HowEnded::Silent,
                _ => HowEnded::Refused(haft_ops::text::brief(error, MAX_REASON_CHARS)),
            },
            ticket: None,
        }
    }

    /// Runs the hook, records the outcome in the journal that has the intent, and emits the
    /// last event of the call.
    pub(super) async fn conclude(
        &self,
        call: &Call,
        journal: Option<Arc<dyn Journal>>,
        ended: Ended,
    ) -> Reply {
        let Ended {
            mut reply,
            how,
            ticket,
        } = ended;
        // A hook may make calls itself, which must not wait for this one.
        let ticket = ticket.filter(|_| call.on_end.is_none());
        if let (Some(hook), false) = (&call.on_end, reply.is_pending) {
            hook(&mut reply).await;
        }
        if let Some(journal) = journal {
            let outcome = self.outcome(call, &reply, &how);
            if let Err(error) = journal.outcome(outcome).await {
                tracing::error!(%error, call = call.id, "the outcome of a call could not be recorded");
                reply
                    .details
                    .insert("not_recorded".to_owned(), error.to_string().into());
            }
        }
        if self.is_watched(call)
            && let Some(event) = last_event(call, &reply, &how)
        {
            self.emit(call, || event);
        }
        drop(ticket);
        reply
    }

    fn outcome(&self, call: &Call, reply: &Reply, how: &HowEnded) -> Outcome {
        let spill = self.session.spill.as_ref();
        Outcome {
            duration: match how {
                HowEnded::Made { duration, .. } => *duration,
                // However long the user needed to decide.
                HowEnded::Refused(_) | HowEnded::Silent => Duration::ZERO,
            },
            output: spill.and_then(|spill| saved_output::file(spill, reply)),
            event: last_event(call, reply, how),
            ..Outcome::of_unmade(&call.id, reply)
        }
    }
}

fn last_event(call: &Call, reply: &Reply, how: &HowEnded) -> Option<EventKind> {
    let (call_id, tool) = (call.id.clone(), call.tool.clone());
    match how {
        HowEnded::Silent => None,
        HowEnded::Refused(reason) => Some(EventKind::ToolDenied {
            call_id,
            tool,
            reason: reason.clone(),
        }),
        HowEnded::Made {
            duration,
            is_truncated,
        } => Some(EventKind::ToolEnd {
            call_id,
            tool,
            is_error: reply.is_error,
            details: reply.details.clone(),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            bytes: reply.content.iter().map(Content::bytes).sum(),
            truncated: *is_truncated,
            content: Arc::new(reply.content.clone()),
        }),
    }
}
