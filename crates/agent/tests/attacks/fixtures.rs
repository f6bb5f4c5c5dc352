//! Fixtures: recorded agents and their records.

use crate::bed::Bed;
use crate::scripted::Scripted;
use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Question};
use haft_agent::{Agent, Message};
use haft_store::sessions::{NewSession, SessionKind, Sessions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ID: &str = "0123456789abcdef";

/// An approver that postpones every answer, or approves.
struct Away(ApprovalAnswer);

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> ApprovalAnswer {
        self.0.clone()
    }
}

pub(crate) fn sessions(bed: &Bed) -> Sessions {
    Sessions::open(bed.folder.path().join("state/sessions.db")).unwrap()
}

/// Creates an agent with a new session. Calls of `write` and `slow` need approval, and the user is
/// away.
pub(crate) fn begins(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let new = NewSession {
        id: Some(ID.to_owned()),
        kind: SessionKind::Agent,
        work_dir: bed.folder.path().to_owned(),
        toolset: "standard".to_owned(),
        provider: "scripted".to_owned(),
        model: "m".to_owned(),
        title: None,
        parent: None,
        system: None,
    };
    idle(bed, model).recorded(sessions.begin(new).unwrap())
}

/// Creates the same agent as another process would.
pub(crate) fn resumed_agent(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let (session, loaded) = sessions.resume(ID).unwrap();
    idle(bed, model).resuming(session, &loaded).unwrap()
}

/// The same with a user who approves.
pub(crate) fn goes_on_with_yes(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let (session, loaded) = sessions.resume(ID).unwrap();
    let agent = asking(bed, model, ApprovalAnswer::Approve);
    agent.resuming(session, &loaded).unwrap()
}

fn idle(bed: &Bed, model: &Arc<Scripted>) -> Agent {
    asking(bed, model, ApprovalAnswer::Later)
}

fn asking(bed: &Bed, model: &Arc<Scripted>, answer: ApprovalAnswer) -> Agent {
    let runtime = bed.runtime(|builder| {
        let builder = builder.session(ID).approver(Arc::new(Away(answer)));
        builder.interrupt_on(["write", "slow"])
    });
    Agent::new(model.clone(), runtime).backoff(Duration::from_millis(1))
}

/// Checks what every provider demands: each call has a result in the next message, and each result
/// has a call.
pub(crate) fn check_history(history: &[Message]) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for message in history {
        match message {
            Message::Assistant(answer) => {
                assert!(open.is_empty(), "no results of {open:?} in {history:#?}");
                open = answer.calls().map(|call| call.id.clone()).collect();
            }
            Message::Tool { results } => {
                let ids: BTreeSet<_> = results.iter().map(|one| one.call_id.clone()).collect();
                assert_eq!(ids, open, "{history:#?}");
                open.clear();
            }
            Message::User { .. } => {
                assert!(open.is_empty(), "no results of {open:?} in {history:#?}");
            }
        }
    }
    assert!(open.is_empty(), "no results of {open:?} in {history:#?}");
}
