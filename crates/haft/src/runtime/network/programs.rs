//! Connections of programs that run between calls, such as plugins of a project. No user is
//! asked about them.

use super::{CallNetwork, State};
use crate::runtime::Session;
use crate::runtime::clock::Clock;
use haft_ops::exec::network::Pass;
use haft_ops::exec::{Exec, ExecContext};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// Maximum number of passes that are kept for programs. A program that restarts gets another.
const MAX_PASSES: usize = 64;

/// Judges the connections of programs.
#[derive(Default)]
pub(crate) struct ProgramConnections {
    session: OnceLock<Weak<Session>>,
    passes: Mutex<Vec<Pass>>,
}

impl ProgramConnections {
    /// Sets the session whose rules apply, once.
    pub(crate) fn belong_to(&self, session: &Arc<Session>) {
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// Admits a program to the way out of its network, if it has one.
    pub(crate) fn admit(&self, exec_context: &mut ExecContext, name: &str, request: &Exec) {
        let network = Arc::new(CallNetwork {
            session: self.session.get().cloned().unwrap_or_default(),
            call_id: String::new(),
            tool: name.to_owned(),
            clock: Clock::new(None, None),
            cancel: CancellationToken::new(),
            answer: None,
            approver: None,
            on_event: None,
            granted: Vec::new(),
            state: Mutex::new(State {
                is_over: true,
                ..State::default()
            }),
            waits: CancellationToken::new(),
            is_closed: false,
            may_ask: false,
        });
        if network.admit_process(exec_context, request)
            && let Some(pass) = &exec_context.pass
        {
            let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
            if passes.len() >= MAX_PASSES {
                passes.remove(0);
            }
            passes.push(pass.clone());
        }
    }
}
