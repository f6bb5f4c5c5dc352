//! The tools for background tasks: `check_task`, `message_task` and `cancel_task`.

use super::background::{Job, Progress};
use super::dispatcher::{Caller, Dispatcher};
use super::observe::RunOutcome;
use super::{reply, tasks};
use crate::tool_reply;
use haft::{
    AnyTool, Context, Definition, Effect, Error, PreparedCall, Reply, prepared, read_arguments,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(super) const CHECK: &str = "check_task";
pub(super) const MESSAGE: &str = "message_task";
pub(super) const CANCEL: &str = "cancel_task";

/// Maximum time in seconds that a check waits.
const MAX_WAIT: f64 = 600.0;

/// Time that a cancelled task has to record the outcome of its calls.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy)]
enum Action {
    Check,
    Message,
    Cancel,
}

/// A tool for background tasks.
struct Control {
    action: Action,
    definition: Definition,
    dispatcher: Arc<Dispatcher>,
}

/// Creates the tools for the sub-agents of one agent.
pub(super) fn tools(dispatcher: &Arc<Dispatcher>) -> Vec<Arc<dyn AnyTool>> {
    let text = json!({ "type": "string" });
    let tool = |action, name: &str, description: &str, parameters| {
        Arc::new(Control {
            action,
            definition: Definition {
                name: name.to_owned(),
                description: description.to_owned(),
                parameters,
                guidance: None,
            },
            dispatcher: Arc::clone(dispatcher),
        }) as Arc<dyn AnyTool>
    };
    vec![
        tool(
            Action::Check,
            CHECK,
            "Get the progress or the answer of a background task. Without task_id, list all \
             tasks.",
            json!({
                "type": "object",
                "properties": {
                    "task_id": text,
                    "wait": {
                        "type": "number",
                        "description": "Seconds to wait for its end first (at most 600); without \
                                        task_id, for the end of any task.",
                    },
                },
            }),
        ),
        tool(
            Action::Message,
            MESSAGE,
            "Send a message to a background task. A running task receives it before its next \
             turn; a task that has ended continues with it.",
            json!({
                "type": "object",
                "properties": { "task_id": text, "message": text },
                "required": ["task_id", "message"],
            }),
        ),
        tool(
            Action::Cancel,
            CANCEL,
            "Stop a background task.",
            json!({
                "type": "object",
                "properties": { "task_id": text },
                "required": ["task_id"],
            }),
        ),
    ]
}

#[derive(Deserialize)]
struct Args {
    task_id: Option<String>,
    wait: Option<f64>,
    message: Option<String>,
}

impl AnyTool for Control {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        match self.action {
            Action::Check | Action::Cancel => Effect::Pure,
            // A message may restart a task.
            Action::Message => self.dispatcher.team.effect(),
        }
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        let args = read_arguments(&arguments)?;
        Ok(prepared(Vec::new(), move |cx| async move {
            self.call(args, &cx).await
        }))
    }

    // A check may wait, and has its own time limit.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

impl Control {
    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        self.dispatcher.check_session(cx)?;
        let id = args.task_id.filter(|id| !id.trim().is_empty());
        match (self.action, id) {
            (Action::Check, None) => {
                let background = self.dispatcher.background()?;
                let before = background.live_ids();
                let has_ended = || {
                    let live = background.live_ids();
                    before.is_empty() || before.iter().any(|id| !live.contains(id))
                };
                wait(args.wait, background.until(has_ended), cx).await?;
                Ok(self.list(cx))
            }
            (Action::Check, Some(id)) => self.check(&id, args.wait, cx).await,
            (_, None) => Err(Error::invalid("parameter \"task_id\" must not be empty")),
            (Action::Message, Some(id)) => {
                let message = args.message.unwrap_or_default();
                if message.trim().is_empty() {
                    return Err(Error::invalid("parameter \"message\" must not be empty"));
                }
                self.message(&id, message, cx)
            }
            (Action::Cancel, Some(id)) => self.cancel(&id, cx).await,
        }
    }

    fn job(&self, id: &str) -> Option<Arc<Job>> {
        self.dispatcher.background().ok()?.job(id)
    }

    fn list(&self, cx: &Context) -> Reply {
        let listed = tasks::background(cx.state().outermost(), cx.runtime().session());
        let all = listed.into_iter().map(|one| {
            let job = self.job(&one.id);
            let progress = match job.as_ref().map(|job| job.progress()) {
                Some(Progress::Running(line)) => Some(line),
                _ => None,
            };
            let is_lost =
                matches!(one.status, "queued" | "running") && !job.is_some_and(|job| job.is_live());
            let status = if is_lost { "interrupted" } else { one.status };
            (one.id, (one.kind, one.description), status, progress)
        });
        if cx.runtime().reply_form().is_object() {
            let tasks: Vec<_> = all
                .map(|(id, (kind, description), status, progress)| {
                    let mut one = json!({
                        "task_id": id,
                        "subagent_type": kind,
                        "description": description,
                        "task_status": status,
                    });
                    if let Some(progress) = progress {
                        one["progress"] = progress.into();
                    }
                    one
                })
                .collect();
            let text = match tasks.len() {
                1 => "1 background task".to_owned(),
                count => format!("{count} background tasks"),
            };
            return tool_reply::object(cx, "result", &text, vec![("tasks", json!(tasks))]);
        }
        let lines: Vec<_> = all
            .map(|(id, (kind, description), status, progress)| {
                let progress = progress.map_or_else(String::new, |line| format!(": {line}"));
                let label = tasks::label(&kind, &description);
                format!("{id}  {label}  {status}{progress}")
            })
            .collect();
        match lines.is_empty() {
            true => Reply::from("no background tasks"),
            false => Reply::from(lines.join("\n")),
        }
    }

    async fn check(&self, id: &str, seconds: Option<f64>, cx: &Context) -> Result<Reply, Error> {
        let found = self.dispatcher.known(id, cx)?;
        let name = self.dispatcher.name_of(&found.kind);
        if let Some(job) = self.job(id) {
            let background = self.dispatcher.background()?;
            wait(seconds, background.until(|| !job.is_live()), cx).await?;
            let seconds = job.begun.elapsed().as_secs_f64();
            return match job.progress() {
                Progress::Queued => {
                    let text = format!(
                        "task {id} ({name}) has been queued for {seconds:.2} seconds: other \
                         background tasks are running"
                    );
                    Ok(status_reply(&text, id, "queued", cx))
                }
                Progress::Running(line) => {
                    let text = format!(
                        "task {id} ({name}) has been running for {seconds:.2} seconds: {line}"
                    );
                    Ok(status_reply(&text, id, "running", cx))
                }
                Progress::Ended(outcome) => {
                    let status = job.status_of(&outcome);
                    tasks::mark_reported(cx.state().outermost(), id, status);
                    match outcome {
                        RunOutcome::Waits { question } => {
                            let text = format!("task {id} ({name}) waits for the user: {question}");
                            Ok(status_reply(&text, id, status, cx))
                        }
                        RunOutcome::Cancelled => Ok(status_reply(
                            &format!("task {id} ({name}) was {status}"),
                            id,
                            status,
                            cx,
                        )),
                        outcome => reply::from_outcome(outcome, &name, id, cx),
                    }
                }
            };
        }
        // The task ended in another process, or long ago.
        let listed = tasks::background(cx.state().outermost(), cx.runtime().session());
        let status = match listed.iter().find(|one| one.id == id).map(|one| one.status) {
            None => {
                return Err(Error::Failed {
                    text: format!("task {id} is not a background task"),
                    hint: Some(
                        "its reply was returned when it ended; task with its task_id continues it"
                            .to_owned(),
                    ),
                });
            }
            Some("queued" | "running") => "interrupted",
            Some(status) => status,
        };
        tasks::mark_reported(cx.state().outermost(), id, status);
        if status == "done" {
            let task = self
                .dispatcher
                .found(&found, Caller::Leaves(cx.call_id()))?;
            let (text, response) = (task.agent.last_text(), None);
            return reply::from_outcome(RunOutcome::Done { text, response }, &name, id, cx);
        }
        Ok(status_reply(
            &format!("task {id} ({name}) is {status}"),
            id,
            status,
            cx,
        ))
    }

    fn message(&self, id: &str, message: String, cx: &Context) -> Result<Reply, Error> {
        let found = self.dispatcher.known(id, cx)?;
        let name = self.dispatcher.name_of(&found.kind);
        if let Some(job) = self.job(id).filter(|job| job.is_live()) {
            job.task.agent.steer(message);
            let text = format!("delivered: task {id} ({name}) receives it before its next turn");
            return Ok(status_reply(&text, id, "running", cx));
        }
        let listed = tasks::background(cx.state().outermost(), cx.runtime().session());
        let mut listed = listed.iter().filter(|one| one.id == id);
        if !found.asks.is_empty() || listed.any(|one| one.status == "waiting") {
            return Err(Error::failed(format!(
                "task {id} waits until the user approves one of its calls; send the message afterwards"
            )));
        }
        let status = self.dispatcher.continue_task(&found, message, cx)?;
        let text = format!("delivered: task {id} ({name}) continues with it in the background");
        Ok(status_reply(&text, id, status, cx))
    }

    async fn cancel(&self, id: &str, cx: &Context) -> Result<Reply, Error> {
        let found = self.dispatcher.known(id, cx)?;
        let name = self.dispatcher.name_of(&found.kind);
        let Some(job) = self.job(id).filter(|job| job.is_live()) else {
            return Ok(status_reply(
                &format!("task {id} ({name}) is not running"),
                id,
                "ended",
                cx,
            ));
        };
        job.cancel("cancelled");
        let background = self.dispatcher.background()?;
        let _ = tokio::time::timeout(GRACE, background.until(|| !job.is_live())).await;
        tasks::mark_reported(cx.state().outermost(), id, "cancelled");
        let text = format!("cancelled: task {id} ({name}). What it did before is done.");
        Ok(status_reply(&text, id, "cancelled", cx))
    }
}

/// Waits for the end of `end`, at most for the time that the call asks for.
async fn wait(
    seconds: Option<f64>,
    end: impl Future<Output = ()>,
    cx: &Context,
) -> Result<(), Error> {
    let seconds = seconds.unwrap_or_default().clamp(0.0, MAX_WAIT);
    if seconds == 0.0 {
        return Ok(());
    }
    tokio::select! {
        () = end => Ok(()),
        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => Ok(()),
        () = cx.cancel().cancelled() => Err(Error::Cancelled),
    }
}

/// Creates a reply with the status of a task.
pub(super) fn status_reply(text: &str, id: &str, status: &str, cx: &Context) -> Reply {
    let reply = if cx.runtime().reply_form().is_object() {
        let more = vec![("task_id", json!(id)), ("task_status", json!(status))];
        tool_reply::object(cx, "result", text, more)
    } else {
        Reply::from(text)
    };
    reply.detail("task_id", id).detail("task_status", status)
}
