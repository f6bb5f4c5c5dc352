//! The tools of a plugin.

use super::Host;
use super::dispatcher::{Caller, Over};
use super::message::{Described, Outcome};
use super::process::Process;
use super::progress::{self, Progress, ToolRequest};
use super::trace::TraceEvent;
use crate::external::installer::Installer;
use crate::external::time::TimeLimit;
use crate::guest;
use crate::tool::{PreparedCall, prepared};
use crate::{AnyTool, Content, Context, Definition, Effect, Error, Reply, schema};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time for a plugin with protocol version 2 to answer a cancelled call, before its process
/// is ended.
const CANCELLED: Duration = Duration::from_secs(2);

/// Maximum number of tools of one plugin.
const MAX_TOOLS: usize = 256;

/// Starts a plugin and returns its tools, and the problems with some of them.
pub(crate) async fn tools(host: Arc<Host>) -> Result<(Vec<Arc<dyn AnyTool>>, Vec<String>), Error> {
    let described = host.handshake().await?;
    let (mut tools, mut problems): (Vec<Arc<dyn AnyTool>>, _) = (Vec::new(), Vec::new());
    if described.is_empty() && !host.plugin.may_be_empty {
        problems.push(host.failed("has no tools").to_string());
    }
    if described.len() > MAX_TOOLS {
        let many = format!(
            "has {} tools; those after the first {MAX_TOOLS} are left out",
            described.len()
        );
        problems.push(host.failed(many).to_string());
    }
    for one in described.into_iter().take(MAX_TOOLS) {
        let time = host.time(one.timeout);
        let definition = definition(one);
        host.plugin
            .trace
            .emit(|| TraceEvent::Tool(definition.as_ref().map_err(String::as_str)));
        match definition {
            Ok(definition) => tools.push(Arc::new(PluginTool {
                definition,
                time,
                host: Arc::clone(&host),
            })),
            Err(reason) => problems.push(host.failed(reason).to_string()),
        }
    }
    Ok((tools, problems))
}

/// Checks a tool and returns its definition for the model; the error says why it cannot be
/// used.
fn definition(described: Described) -> Result<Definition, String> {
    let Described {
        name,
        description,
        mut parameters,
        guidance,
        timeout: _,
    } = described;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        let shown: String = name.escape_default().take(80).collect();
        return Err(format!(
            "has a tool named \"{shown}\"; a name is at most 64 letters, digits, _ and -"
        ));
    }
    closed(&mut parameters);
    schema::check(&name, &parameters)
        .map_err(|error| format!("has a tool that cannot be used: {error}"))?;
    Ok(Definition {
        name,
        description,
        parameters,
        guidance,
    })
}

/// Makes implicit parts of a schema explicit: the type is `object`, and properties that are
/// not listed are not accepted, unless none are listed.
pub(in crate::external) fn closed(parameters: &mut Value) {
    let Value::Object(schema) = parameters else {
        return;
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    let lists_none = schema
        .get("properties")
        .is_some_and(|properties| properties.as_object().is_some_and(Map::is_empty));
    schema
        .entry("additionalProperties")
        .or_insert_with(|| lists_none.into());
}

struct PluginTool {
    definition: Definition,
    time: TimeLimit,
    host: Arc<Host>,
}

impl AnyTool for PluginTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        Ok(prepared(Vec::new(), move |cx| self.call(arguments, cx)))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.time.without_session())
    }

    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        Some(self.time.within(session))
    }

    fn only_waits(&self) -> bool {
        true
    }

    fn outlives_calls(&self) -> bool {
        true
    }

    fn installer(&self) -> Option<Installer> {
        Some(self.host.plugin.installer)
    }

    fn is_reviewable(&self) -> bool {
        // Such a plugin has no files and no network of its own.
        self.host.plugin.guest.is_some()
    }
}

impl PluginTool {
    async fn call(self: Arc<Self>, arguments: Arc<Value>, cx: Context) -> Result<Reply, Error> {
        let arguments = Arc::unwrap_or_clone(arguments);
        let programs = &self.host.programs;
        let _attributed = programs.attributed(&self.host.recorded_name(), &cx);
        tokio::select! {
            biased;
            reply = self.host.converse(&self.definition.name, arguments, &cx) => reply,
            () = cx.cancel().cancelled() => Err(Error::Cancelled),
            () = cx.time_is_up() => {
                let after = cx.limit().unwrap_or_else(|| self.time.without_session());
                Err(self.time.exceeded(after))
            }
        }
    }
}

impl Host {
    /// Returns the time limit for a tool that requests the given limit.
    fn time(&self, own: Option<Duration>) -> TimeLimit {
        let plugin = &self.plugin;
        // A project can only shorten the limit.
        let (by_user, by_project) = match plugin.installer.is_project() {
            true => (None, plugin.timeout),
            false => (plugin.timeout, None),
        };
        TimeLimit {
            by_user,
            own: by_project.or(own),
            set_in: plugin.limits_set_in.clone(),
        }
    }

    /// Calls a tool of the plugin. The call is cancelled by dropping the future.
    async fn converse(
        self: &Arc<Self>,
        name: &str,
        params: Value,
        cx: &Context,
    ) -> Result<Reply, Error> {
        let call = json!({
            "type": "call", "name": name, "call_id": cx.call_id(), "params": without_nulls(params),
        });
        // Starts the process before waiting for the turn, so that time spent on starting
        // does not count for other waiting calls either.
        cx.off_the_clock(self.process()).await?;
        let mut turn = Some(self.turn.lock().await);
        let (mut is_again, mut was_restless) = (false, false);
        let reply = loop {
            let (process, is_second) = cx.off_the_clock(self.process()).await?;
            if is_second {
                turn = None;
            }
            let (answer, mut answered) = oneshot::channel();
            let (sender, mut updates) = progress::channel();
            let caller = Caller::new(answer, sender);
            let mut sent = SentCall {
                host: Arc::clone(self),
                process: Arc::clone(&process),
                call_id: cx.call_id().to_owned(),
                can_cancel: false,
                is_answered: false,
            };
            if is_second || was_restless {
                process.expect(cx.call_id(), caller);
            } else if !process.expect_at_rest(cx.call_id(), caller).await {
                // The plugin writes unrequested output, so the next call starts a new
                // process.
                sent.is_answered = true;
                process.forget(cx.call_id());
                process.retire();
                was_restless = true;
                continue;
            }
            let Some(end) = process.ask(&call, cx.call_id()).await else {
                sent.is_answered = true;
                process.forget(cx.call_id());
                if process.closed().await == Some(Over::Left) {
                    continue;
                }
                let failure = self.process_failed(&process, Over::Ended).await;
                if is_again {
                    break Err(failure);
                }
                is_again = true;
                continue;
            };
            sent.can_cancel = is_second;
            let outcome = loop {
                tokio::select! {
                    biased;
                    what = updates.next() => self.progress(what, &process, cx).await,
                    outcome = &mut answered => break outcome,
                }
            };
            sent.is_answered = true;
            for content in updates.rest() {
                show(content, cx);
            }
            match outcome {
                Ok(Ok(outcome)) => {
                    self.answered().await;
                    break Ok(worded(outcome.into(), cx));
                }
                // The process ended because of another call and had not started this one.
                Ok(Err(Over::Left)) => {}
                Ok(Err(over)) => {
                    let failure = self.process_failed(&process, over).await;
                    // Only a process that has ended cannot read any further.
                    let may_be_unread = matches!(over, Over::Ended | Over::Unnamed);
                    let was_read = !may_be_unread || process.has_read(end);
                    if was_read || is_again {
                        break Err(failure);
                    }
                    // The process ended before it read the call, so the call is repeated
                    // once.
                    is_again = true;
                }
                Err(_) => break Err(self.failed("gave no answer")),
            }
        };
        // Released only after the result of this call has been handled.
        drop(turn);
        reply
    }

    async fn progress(&self, what: Progress, process: &Process, cx: &Context) {
        match what {
            Progress::Update(content) => show(content, cx),
            Progress::ToolRequest(ToolRequest { id, params, .. })
                if self.plugin.guest.is_some() =>
            {
                let guest = self.plugin.guest.clone().unwrap_or_default();
                let response = match serde_json::from_value(params) {
                    Ok(ask) => guest.answer(cx, ask).await,
                    Err(error) => guest::GuestResponse::Refused {
                        why: guest::Refusal::Failed,
                        message: format!("not a valid request: {error}"),
                    },
                };
                let answer = json!({ "type": "host_result", "id": id, "told": response });
                process.say(&answer).await;
            }
            Progress::ToolRequest(ToolRequest {
                id, name, params, ..
            }) => {
                let reply = cx.call_tool(&name, params).await;
                let answer = json!({
                    "type": "host_result", "id": id,
                    "content": [{ "type": "text", "text": reply.text() }],
                    "error": reply.is_error(),
                });
                process.say(&answer).await;
            }
        }
    }
}

fn show(content: Vec<Content>, cx: &Context) {
    cx.update(Reply {
        content,
        ..Reply::default()
    });
}

/// Adds the prefix that the toolset's own failures have.
pub(in crate::external) fn worded(mut reply: Reply, cx: &Context) -> Reply {
    let start = cx.failure_prefix();
    if !reply.is_error || start.is_empty() {
        return reply;
    }
    for block in &mut reply.content {
        let Content::Text { text } = block else {
            continue;
        };
        if !text.starts_with(start) && !text.starts_with("validation error: ") {
            text.insert_str(0, start);
        }
        break;
    }
    reply
}

/// Removes nulls, because simple programs fail on them.
fn without_nulls(params: Value) -> Value {
    match params {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.collect())
        }
        _ => json!({}),
    }
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Self {
            content: outcome.content,
            is_error: outcome.is_error,
            details: outcome.details,
            ..Self::default()
        }
    }
}

/// A call that was sent. If it is dropped, a late answer must not reach the next call.
struct SentCall {
    host: Arc<Host>,
    process: Arc<Process>,
    call_id: String,
    /// Whether the plugin supports cancellation.
    can_cancel: bool,
    is_answered: bool,
}

impl Drop for SentCall {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        // At once, because the next call may already wait for its turn.
        if self.can_cancel {
            self.process.give_up(&self.call_id);
        } else {
            self.process.retire();
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (host, process) = (Arc::clone(&self.host), Arc::clone(&self.process));
        let (call_id, can_cancel) = (std::mem::take(&mut self.call_id), self.can_cancel);
        runtime.spawn(async move {
            if can_cancel {
                let cancel = json!({ "type": "cancel", "call_id": call_id });
                let confirmed = async {
                    process.say(&cancel).await;
                    process.settled().await;
                };
                let _ = tokio::time::timeout(CANCELLED, confirmed).await;
            }
            // The cancelled call was answered, so the process can stay.
            if !process.forget(&call_id) && can_cancel {
                return;
            }
            host.discard(&process).await;
        });
    }
}
