//! Agents that are recorded, and what their record says afterwards.

use crate::bed::Bed;
use crate::scripted::Scripted;
use async_trait::async_trait;
use haft::{Answer, Approver, Question};
use haft_agent::{Agent, Message};
use haft_store::sessions::{Kind, New, Sessions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const ID: &str = "0123456789abcdef";

/// Nobody is there now; or somebody who says yes.
struct Away(Answer);

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> Answer {
        self.0.clone()
    }
}

pub(crate) fn sessions(bed: &Bed) -> Sessions {
    Sessions::open(bed.folder.path().join("state/sessions.db")).unwrap()
}

/// An agent whose session begins; calls of `write` and `slow` wait for somebody who is away.
pub(crate) fn begins(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let new = New {
        id: Some(ID.to_owned()),
        kind: Kind::Agent,
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

/// The same agent in another process.
pub(crate) fn goes_on(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let (session, loaded) = sessions.take(ID).unwrap();
    idle(bed, model).resuming(session, &loaded).unwrap()
}

/// The same with somebody there who says yes.
pub(crate) fn goes_on_with_yes(bed: &Bed, sessions: &Sessions, model: &Arc<Scripted>) -> Agent {
    let (session, loaded) = sessions.take(ID).unwrap();
    let agent = asking(bed, model, Answer::Approve);
    agent.resuming(session, &loaded).unwrap()
}

fn idle(bed: &Bed, model: &Arc<Scripted>) -> Agent {
    asking(bed, model, Answer::Later)
}

fn asking(bed: &Bed, model: &Arc<Scripted>, answer: Answer) -> Agent {
    let runtime = bed.runtime(|builder| {
        let builder = builder.session(ID).approver(Arc::new(Away(answer)));
        builder.interrupt_on(["write", "slow"])
    });
    Agent::new(model.clone(), runtime).backoff(Duration::from_millis(1))
}

/// What every provider demands: each call has its result in the next message, and
/// nothing has one that was not called.
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
