//! Asks the user in the editor: approvals, reviews of changes, and forms.

use crate::client::Client;
use crate::port::Mode;
use crate::rpc::{RpcError, code};
use crate::schema::{Answer, AnswerKind, FormAnswer, method};
use crate::tool::CallView;
use crate::translate::{Stream, Translator};
use crate::update::{CallContent, CallUpdate, Status, Update, text};
use async_trait::async_trait;
use haft::effects::Diff;
use haft::{ApprovalAnswer, Approver, Filled, Form, Question, Review};
use haft_agent::{Event, EventKind};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

const ALLOW: &str = "allow";
const SESSION: &str = "allow_session";
const ALWAYS: &str = "allow_always";
const REJECT: &str = "reject";

/// Time that the event which announces a question may arrive after the question.
const ANNOUNCEMENT_TIMEOUT: Duration = Duration::from_millis(300);

/// Maximum characters of a question's text.
const MAX_TEXT: usize = 20_000;

/// Asks the user of one session.
pub(crate) struct Asker {
    client: Arc<Client>,
    state: Mutex<State>,
    announced: Notify,
}

/// State of the session that questions depend on.
struct State {
    session: String,
    work_dir: PathBuf,
    mode: Mode,
    interrupt_on: BTreeSet<String>,
    translator: Translator,
    /// Rules that the user allowed for this session.
    allowed: BTreeSet<String>,
    /// Questions that events have announced: session and id of the call, tool.
    announcements: Vec<(String, String, String)>,
}

impl Asker {
    pub(crate) fn new(client: Arc<Client>) -> Self {
        Self {
            client,
            state: Mutex::new(State {
                session: String::new(),
                translator: Translator::new("", PathBuf::new()),
                work_dir: PathBuf::new(),
                mode: Mode::default(),
                interrupt_on: BTreeSet::new(),
                allowed: BTreeSet::new(),
                announcements: Vec::new(),
            }),
            announced: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the session, once it is open.
    pub(crate) fn opened(
        &self,
        session: &str,
        work_dir: PathBuf,
        mode: Mode,
        interrupt_on: BTreeSet<String>,
    ) {
        let mut state = self.lock();
        state.work_dir = work_dir;
        state.session = session.to_owned();
        state.translator = Translator::new(session, state.work_dir.clone());
        state.mode = mode;
        state.interrupt_on = interrupt_on;
    }

    pub(crate) fn mode(&self) -> Mode {
        self.lock().mode
    }

    pub(crate) fn set_mode(&self, mode: Mode) {
        self.lock().mode = mode;
    }

    /// Uses the translator that the session's events go through.
    pub(crate) fn translate<T>(&self, with: impl FnOnce(&mut Translator) -> T) -> T {
        with(&mut self.lock().translator)
    }

    /// Waits until text that the translator holds back is to be sent; for ever if there is none.
    pub(crate) async fn flush_due(&self) {
        let due = self.translate(|translator| translator.due());
        match due {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    }

    /// Notes the questions that events announce, and which sub-agents they come from.
    pub(crate) fn observe(&self, event: &Event, stream: Stream) {
        self.lock().translator.place(event, stream);
        let EventKind::Tool(
            haft::EventKind::ApprovalNeeded { call_id, tool, .. }
            | haft::EventKind::ReviewNeeded { call_id, tool, .. },
        ) = &event.kind
        else {
            return;
        };
        if event.parent.is_some() {
            let announced = (event.session.clone(), call_id.clone(), tool.clone());
            self.lock().announcements.push(announced);
            self.announced.notify_waiters();
        }
    }

    /// Returns the session of the call that a question is about.
    async fn session_of(&self, question: &Question) -> String {
        if question.agent.is_none() {
            return self.lock().session.clone();
        }
        let find = || {
            let announcements = &mut self.lock().announcements;
            let found = announcements
                .iter()
                .position(|(_, id, tool)| *id == question.call_id && *tool == question.tool)?;
            Some(announcements.remove(found).0)
        };
        let wait = async {
            loop {
                let announced = self.announced.notified();
                if let Some(found) = find() {
                    return found;
                }
                announced.await;
            }
        };
        let found = tokio::time::timeout(ANNOUNCEMENT_TIMEOUT, wait).await;
        found.unwrap_or_else(|_| question.agent.clone().unwrap_or_default())
    }

    /// Asks, and returns the id of the chosen answer.
    async fn choose(&self, question: &Question, answers: Vec<Answer>) -> Result<String, String> {
        let call_session = self.session_of(question).await;
        let (session, announced, call, asked) = {
            let mut state = self.lock();
            let agent = question.agent.as_deref();
            if let Some(agent) = agent {
                state.translator.name_agent(&call_session, agent);
            }
            let arguments = &question.arguments;
            let announced = state.translator.announce(
                &call_session,
                &question.call_id,
                &question.tool,
                arguments,
            );
            let id = state.translator.call_id(&call_session, &question.call_id);
            let view = CallView {
                id: &id,
                tool: &question.tool,
                arguments,
                agent,
                work_dir: &state.work_dir,
            };
            // The client keeps what this update says about the call, so that the question is
            // in its content only, which the end of the call replaces.
            let known = state.translator.known(&call_session, &question.call_id);
            let (title, raw_input) =
                known.unwrap_or_else(|| (Some(view.title()), arguments.clone()));
            let asked = asked(question, title.as_deref().unwrap_or(&question.tool));
            let call = CallUpdate {
                is_new: false,
                title,
                raw_input: Some(raw_input),
                content: Some(content(question, &view, &asked)),
                status: announced.is_some().then_some(Status::Pending),
                ..view.announce(Status::Pending)
            };
            (state.session.clone(), announced, call, asked)
        };
        if let Some(announced) = announced {
            let update = Update::Call(Box::new(announced));
            self.client.update(&session, update);
        }
        let answer = match self.client.protocol() {
            Some(protocol) => {
                let params = protocol.ask(&session, &asked, call, answers);
                let _waiting = self.client.waiting(&session);
                let answer = self.client.request(method::ASK, &params).await;
                answer.and_then(|answer| protocol.answered(answer))
            }
            None => Err(RpcError::new(code::INTERNAL, "not initialized")),
        };
        match answer {
            Ok(Some(id)) => Ok(id),
            Ok(None) => Err("the question was cancelled".to_owned()),
            Err(error) => {
                tracing::warn!(error = error.message, "a question got no valid answer");
                Err("the editor gave no valid answer".to_owned())
            }
        }
    }
}

/// Returns the question, in one line.
fn asked(question: &Question, title: &str) -> String {
    match (&question.confirm, &question.review) {
        (_, Some(_)) => format!("Keep what {title} changed?"),
        (Some(_), None) => format!("{title} asks before it continues"),
        (None, None) => title.to_owned(),
    }
}

/// Returns the facts that the user decides by.
fn content(question: &Question, view: &CallView<'_>, asked: &str) -> Vec<CallContent> {
    let mut content = Vec::new();
    if let Some(review) = &question.review {
        content.push(text(format!("{asked}\n\n{}", changes(review))));
        return content;
    }
    content.extend(view.diff());
    if let Some(confirm) = &question.confirm {
        content.push(text(format!("{asked}\n\n{confirm}")));
    } else {
        content.push(text(question.reason()));
    }
    content
}

/// Describes what a call has changed, deletions first.
fn changes(review: &Review) -> String {
    let mut out = format!("{}\n", review.summary());
    for (line, diff) in review.diffs() {
        out.push_str(&format!("\n{line}\n"));
        match diff {
            Diff::Lines { text, .. } => out.push_str(&format!("```diff\n{text}```\n")),
            Diff::Opaque(why) => out.push_str(&format!("{why}\n")),
            Diff::Same => {}
        }
    }
    haft::ops::text::brief(out, MAX_TEXT)
}

fn answer(id: &'static str, name: impl Into<String>, kind: AnswerKind) -> Answer {
    Answer {
        id,
        name: name.into(),
        kind,
    }
}

/// Returns the answers to choose from.
fn answers(question: &Question) -> Vec<Answer> {
    if question.review.is_some() {
        return vec![
            answer(ALLOW, "Keep", AnswerKind::AllowOnce),
            answer(REJECT, "Revert", AnswerKind::RejectOnce),
        ];
    }
    let mut answers = vec![answer(ALLOW, "Allow", AnswerKind::AllowOnce)];
    if let Some(rules) = question
        .suggestion
        .as_ref()
        .filter(|_| question.offers_session())
    {
        let name = format!("Allow for this session: {rules}");
        answers.push(answer(SESSION, name, AnswerKind::AllowAlways));
    }
    if let Some(file) = question
        .rules_file
        .as_ref()
        .filter(|_| question.offers_always())
    {
        let name = format!("Always allow: adds the rule to {}", file.display());
        answers.push(answer(ALWAYS, name, AnswerKind::AllowAlways));
    }
    answers.push(answer(REJECT, "Reject", AnswerKind::RejectOnce));
    answers
}

/// Returns what a chosen answer means to the runtime.
fn meaning(id: &str) -> ApprovalAnswer {
    match id {
        ALLOW => ApprovalAnswer::Approve,
        SESSION => ApprovalAnswer::ForSession,
        ALWAYS => ApprovalAnswer::Always,
        REJECT => ApprovalAnswer::Reject { reason: None },
        _ => ApprovalAnswer::reject_unasked("the editor gave no valid answer"),
    }
}

#[async_trait]
impl Approver for Asker {
    async fn ask(&self, question: &Question) -> ApprovalAnswer {
        let (mode, waits) = {
            let state = self.lock();
            (state.mode, state.interrupt_on.contains(&question.tool))
        };
        match mode {
            Mode::Auto if !waits => return ApprovalAnswer::Approve,
            Mode::Plan => {
                return ApprovalAnswer::reject_unasked(
                    "the session is in plan mode, which only reads; describe the change instead \
                     of making it",
                );
            }
            _ => {}
        }
        // Opening the session again with other settings forgets what the user allowed.
        let rules = question
            .suggestion
            .as_ref()
            .filter(|_| question.offers_session())
            .map(ToString::to_string);
        if rules
            .as_ref()
            .is_some_and(|rules| self.lock().allowed.contains(rules))
        {
            return ApprovalAnswer::ForSession;
        }
        match self.choose(question, answers(question)).await {
            Ok(id) => {
                let answer = meaning(&id);
                if let (ApprovalAnswer::ForSession, Some(rules)) = (&answer, rules) {
                    self.lock().allowed.insert(rules);
                }
                answer
            }
            Err(reason) => ApprovalAnswer::reject_unasked(&reason),
        }
    }

    async fn fill(&self, form: &Form) -> Filled {
        let session = self.lock().session.clone();
        let Some(protocol) = self.client.protocol() else {
            return Filled::Declined;
        };
        if !self.client.has_forms() || session.is_empty() {
            return Filled::Declined;
        }
        let message = format!("{}: {}", form.tool, form.message);
        let Some(params) = protocol.form(&session, &form.call_id, &message, &form.schema) else {
            return Filled::Declined;
        };
        let _waiting = self.client.waiting(&session);
        match self.client.request(method::ELICIT, &params).await {
            Ok(result) => match protocol.form_answered(result) {
                FormAnswer::Accepted(fields) => Filled::Accepted(defined(fields)),
                FormAnswer::Declined => Filled::Declined,
                FormAnswer::Cancelled => Filled::Dismissed,
            },
            Err(_) => Filled::Declined,
        }
    }
}

/// Leaves out fields that the user left empty.
fn defined(fields: Value) -> Value {
    match fields {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.collect())
        }
        other => other,
    }
}
