//! Asking the user about a connection while it waits.

use super::notes::Why;
use super::{CommandNetwork, HostVerdict};
use crate::Resource;
use crate::policy::{ConnectionJudgement, host_and_port};
use crate::runtime::approve::{PendingCall, suggested};
use crate::runtime::{ApprovalAnswer, Question, Runtime, Session};
use haft_ops::text::{brief, decode::visible};
use serde_json::{Value, json};
use std::sync::Arc;

/// Name in the session's state of the calls that wait for an answer about a connection.
const WAITING: &str = "haft.network.waiting";

/// Maximum number of such calls that are remembered.
const MAX_WAITING: usize = 100;

/// Maximum number of characters of a command in a question.
const MAX_COMMAND: usize = 200;

/// What the user has answered before the call is made again.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// Connections that the user allowed, as `host:port`.
    allowed: Vec<String>,
    /// A connection that the user refused, and why.
    refused: Option<(String, Option<String>)>,
    /// A connection that the user allowed for more than this call.
    lasting: Option<(String, ApprovalAnswer)>,
}

impl CommandNetwork {
    /// Asks the user about a connection.
    pub(super) async fn ask(
        &self,
        session: &Arc<Session>,
        host: &str,
        port: u16,
        judged: &ConnectionJudgement,
    ) -> Result<HostVerdict, Why> {
        let to = host_and_port(host, port);
        let resumed = self.resumed.get_or_init(|| self.resume(session));
        if resumed.allowed.contains(&to) {
            let lasting = resumed.lasting.as_ref().filter(|(asked, _)| *asked == to);
            if let Some((_, answer)) = lasting {
                self.remember(session, answer, host).await;
            }
            return Ok(judged.allowed());
        }
        if let Some((refused, reason)) = &resumed.refused
            && *refused == to
        {
            return Err(Why::User(reason.clone()));
        }
        let call = &*self.call;
        let runtime = Runtime {
            session: Arc::clone(session),
        };
        let approver = runtime.approver_for(call.approver.as_ref());
        // A client that made the call can be asked only while it waits for the reply.
        let is_over = call.state().is_over;
        if !call.may_ask || approver.is_none() || (is_over && call.approver.is_some()) {
            return Err(Why::Nobody(judged.by.to_string()));
        }
        let question = self.question(session, (host, port), judged);
        let pending = PendingCall {
            call_id: &call.call_id,
            tool: &call.tool,
            answer: None,
            approver,
            on_event: call.on_event.as_ref().filter(|_| !is_over),
        };
        let _paused = call.clock.pause();
        let answer = tokio::select! {
            answer = runtime.answer(pending, &question) => answer,
            () = call.cancel.cancelled(), if !is_over => return Err(Why::User(None)),
        };
        match answer {
            ApprovalAnswer::Approve | ApprovalAnswer::ApproveWith { .. } => Ok(judged.allowed()),
            ApprovalAnswer::ForSession | ApprovalAnswer::Always => {
                self.remember(session, &answer, host).await;
                Ok(judged.allowed())
            }
            ApprovalAnswer::Reject { reason } => {
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                Err(Why::User(reason.map(|reason| brief(reason.trim(), 500))))
            }
            ApprovalAnswer::Later if is_over => Err(Why::Nobody(judged.by.to_string())),
            ApprovalAnswer::Later => {
                self.wait(session, to, resumed, question.confirm.unwrap_or_default());
                Err(Why::Later)
            }
        }
    }

    fn question(
        &self,
        session: &Session,
        (host, port): (&str, u16),
        judged: &ConnectionJudgement,
    ) -> Question {
        let command = self.shown();
        let short = visible(&brief(&command, MAX_COMMAND));
        let call = &*self.call;
        Question {
            call_id: call.call_id.clone(),
            tool: call.tool.clone(),
            arguments: json!({ "host": host, "port": port, "command": command }),
            resources: vec![Resource::Command(command)],
            judgement: judged.as_judgement(),
            suggestion: session.approval.policy().suggest_host(host, &suggested()),
            rules_file: session.approval.rules_file(),
            confirm: Some(format!(
                "may this command connect to {}? {short}",
                host_and_port(host, port)
            )),
            agent: session.agent.clone(),
            review: None,
        }
    }

    /// Applies an answer that holds for more than this call.
    async fn remember(&self, session: &Arc<Session>, answer: &ApprovalAnswer, host: &str) {
        let suggestion = session.approval.policy().suggest_host(host, &suggested());
        let Some(suggestion) = suggestion else { return };
        let runtime = Runtime {
            session: Arc::clone(session),
        };
        let saved = runtime.remember(answer, suggestion.rules()).await;
        self.call.state().saved.extend(saved);
    }

    /// Ends the call, which is made again when the user has answered.
    fn wait(&self, session: &Session, to: String, resumed: &Resumed, question: String) {
        let asks = json!({ "asks": to, "allowed": resumed.allowed });
        let name = self.fingerprint();
        session.state.update(WAITING, |waiting| {
            if !waiting.is_object() {
                *waiting = json!({});
            }
            if let Value::Object(calls) = waiting {
                if calls.len() >= MAX_WAITING {
                    calls.clear();
                }
                calls.insert(name, asks);
            }
        });
        let call = &*self.call;
        call.state().question.get_or_insert(question);
        call.waits.cancel();
    }

    /// Returns what the user has answered, if this command had to wait before.
    fn resume(&self, session: &Session) -> Resumed {
        let Some(answer) = &self.call.answer else {
            return Resumed::default();
        };
        let name = self.fingerprint();
        if session.state.get(WAITING).is_none() {
            return Resumed::default();
        }
        let waiting = session.state.update(WAITING, |waiting| match waiting {
            Value::Object(calls) => calls.remove(&name),
            _ => None,
        });
        let Some(waiting) = waiting else {
            return Resumed::default();
        };
        let allowed = waiting["allowed"].as_array().into_iter().flatten();
        let allowed = allowed.filter_map(Value::as_str).map(str::to_owned);
        let mut resumed = Resumed {
            allowed: allowed.collect(),
            ..Resumed::default()
        };
        let asked = waiting["asks"].as_str().unwrap_or_default().to_owned();
        match answer {
            ApprovalAnswer::Reject { reason } => resumed.refused = Some((asked, reason.clone())),
            ApprovalAnswer::Later => {}
            answer @ (ApprovalAnswer::ForSession | ApprovalAnswer::Always) => {
                resumed.lasting = Some((asked.clone(), answer.clone()));
                resumed.allowed.push(asked);
            }
            ApprovalAnswer::Approve | ApprovalAnswer::ApproveWith { .. } => {
                resumed.allowed.push(asked);
            }
        }
        resumed
    }
}
