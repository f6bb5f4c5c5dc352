//! The tools of a plugin, as the registry holds them.

use super::Host;
use super::desk::{Caller, Over};
use super::meanwhile::{self, Ask, Meanwhile};
use super::message::{Described, Outcome};
use super::process::Process;
use crate::external::standing::Standing;
use crate::external::time::TimeLimit;
use crate::guest;
use crate::{AnyTool, Content, Context, Definition, Effect, Error, Reply, Resource, schema};
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a plugin of the second protocol has to answer a cancelled call, before
/// its process is ended.
const CANCELLED: Duration = Duration::from_secs(2);

/// How many tools one plugin may have.
const MOST_TOOLS: usize = 256;

/// Starts a plugin and makes its tools; and what is wrong with some of them.
pub(crate) async fn tools(host: Arc<Host>) -> Result<(Vec<Arc<dyn AnyTool>>, Vec<String>), Error> {
    let described = host.introduce().await?;
    let (mut tools, mut problems): (Vec<Arc<dyn AnyTool>>, _) = (Vec::new(), Vec::new());
    if described.is_empty() && !host.plugin.may_be_empty {
        problems.push(host.failed("has no tools").to_string());
    }
    if described.len() > MOST_TOOLS {
        let many = format!(
            "has {} tools; those after the first {MOST_TOOLS} are left out",
            described.len()
        );
        problems.push(host.failed(many).to_string());
    }
    for one in described.into_iter().take(MOST_TOOLS) {
        let time = host.time(one.timeout);
        match definition(one) {
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

/// What a model sees of a tool, once it is sure that it can.
///
/// # Errors
///
/// Says what is wrong with its name or its schema.
pub fn definition(described: Described) -> Result<Definition, String> {
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

/// Makes a schema say what it leaves open: without a type it is one of an object all the
/// same, and what it does not list it does not take, unless it lists nothing.
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

/// Whether a tool would be called with these arguments.
///
/// # Errors
///
/// Says what its schema has against them.
pub fn accepts(definition: &Definition, arguments: &Value) -> Result<(), String> {
    schema::Checker::new(&definition.parameters, schema::Ranges::Refuse)
        .prepare(arguments.clone())
        .map(|_| ())
        .map_err(|error| error.to_string())
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

    fn resources(&self, _arguments: &Value) -> Vec<Resource> {
        Vec::new()
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.time.alone())
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

    fn standing(&self) -> Option<Standing> {
        Some(self.host.plugin.standing)
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                reply = self.host.converse(&self.definition.name, arguments, cx) => reply,
                () = cx.cancel().cancelled() => Err(Error::Cancelled),
                () = cx.time_is_up() => {
                    let after = cx.limit().unwrap_or_else(|| self.time.alone());
                    Err(self.time.exceeded(after))
                }
            }
        })
    }
}

impl Host {
    /// How long a call may take of a tool that asks for a limit of its own.
    fn time(&self, own: Option<Duration>) -> TimeLimit {
        let plugin = &self.plugin;
        // What a project says only shortens.
        let (by_user, by_project) = match plugin.standing.is_guest() {
            true => (None, plugin.timeout),
            false => (plugin.timeout, None),
        };
        TimeLimit {
            by_user,
            own: by_project.or(own),
            set_in: plugin.limits_set_in.clone(),
        }
    }

    /// Calls a tool of the plugin, for as long as somebody waits for it.
    async fn converse(
        self: &Arc<Self>,
        name: &str,
        params: Value,
        cx: &Context,
    ) -> Result<Reply, Error> {
        let call = json!({
            "type": "call", "name": name, "call_id": cx.call_id(), "params": without_nulls(params),
        });
        // Before the wait for a turn, so that others who wait for the same start lose no
        // time to it either.
        cx.off_the_clock(self.process()).await?;
        let mut turn = Some(self.turn.lock().await);
        let (mut is_again, mut was_restless) = (false, false);
        let reply = loop {
            let (process, is_second) = cx.off_the_clock(self.process()).await?;
            if is_second {
                turn = None;
            }
            let (answer, mut answered) = oneshot::channel();
            let (teller, mut told) = meanwhile::channel();
            let caller = Caller::new(answer, teller);
            let mut flight = Flight {
                host: Arc::clone(self),
                process: Arc::clone(&process),
                call_id: cx.call_id().to_owned(),
                heeds: false,
                landed: false,
            };
            if is_second || was_restless {
                process.expect(cx.call_id(), caller);
            } else if !process.expect_at_rest(cx.call_id(), caller).await {
                // What it writes nobody asked for: the next one starts afresh.
                flight.landed = true;
                process.forget(cx.call_id());
                process.retire();
                was_restless = true;
                continue;
            }
            let Some(end) = process.ask(&call, cx.call_id()).await else {
                flight.landed = true;
                process.forget(cx.call_id());
                if process.closed().await == Some(Over::Left) {
                    continue;
                }
                let failure = self.broke(&process, Over::Ended).await;
                if is_again {
                    break Err(failure);
                }
                is_again = true;
                continue;
            };
            flight.heeds = is_second;
            let outcome = loop {
                tokio::select! {
                    biased;
                    what = told.next() => self.meanwhile(what, &process, cx).await,
                    outcome = &mut answered => break outcome,
                }
            };
            flight.landed = true;
            for content in told.rest() {
                show(content, cx);
            }
            match outcome {
                Ok(Ok(outcome)) => {
                    self.answered().await;
                    break Ok(worded(outcome.into(), cx));
                }
                // It ended for the sake of another, and had not begun this one.
                Ok(Err(Over::Left)) => {}
                Ok(Err(over)) => {
                    let failure = self.broke(&process, over).await;
                    // Only now that it has ended it cannot read on.
                    let may_be_unread = matches!(over, Over::Ended | Over::Unnamed);
                    let was_read = !may_be_unread || process.has_read(end);
                    if was_read || is_again {
                        break Err(failure);
                    }
                    // It had ended before it could read the call: another one gets
                    // it, once.
                    is_again = true;
                }
                Err(_) => break Err(self.failed("gave no answer")),
            }
        };
        // Not before what came of this call is known to the next.
        drop(turn);
        reply
    }

    async fn meanwhile(&self, what: Meanwhile, process: &Process, cx: &Context) {
        match what {
            Meanwhile::Update(content) => show(content, cx),
            Meanwhile::Ask(Ask { id, params, .. }) if self.plugin.guest.is_some() => {
                let guest = self.plugin.guest.clone().unwrap_or_default();
                let told = match serde_json::from_value(params) {
                    Ok(ask) => guest.answer(cx, ask).await,
                    Err(error) => guest::Told::Refused {
                        why: guest::Refusal::Failed,
                        message: format!("that is no question: {error}"),
                    },
                };
                let answer = json!({ "type": "host_result", "id": id, "told": told });
                process.say(&answer).await;
            }
            Meanwhile::Ask(Ask {
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

/// A failure begins as the toolset begins its own.
pub(in crate::external) fn worded(mut reply: Reply, cx: &Context) -> Reply {
    let start = cx.failure_start();
    if !reply.is_error || start.is_empty() {
        return reply;
    }
    for block in &mut reply.content {
        let Content::Text { text } = block else {
            continue;
        };
        if !text.starts_with(&start) && !text.starts_with("validation error: ") {
            text.insert_str(0, &start);
        }
        break;
    }
    reply
}

/// Simple programs stumble over what is not there.
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

/// A call that is under way. If nobody waits for it any more, no late answer may
/// reach the next one.
struct Flight {
    host: Arc<Host>,
    process: Arc<Process>,
    call_id: String,
    /// Whether it has been sent to one that knows what to cancel is.
    heeds: bool,
    landed: bool,
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        // At once: whoever waits for this call's turn gets it next.
        if self.heeds {
            self.process.give_up(&self.call_id);
        } else {
            self.process.retire();
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (host, process) = (Arc::clone(&self.host), Arc::clone(&self.process));
        let (call_id, heeds) = (std::mem::take(&mut self.call_id), self.heeds);
        runtime.spawn(async move {
            if heeds {
                let cancel = json!({ "type": "cancel", "call_id": call_id });
                let confirmed = async {
                    process.say(&cancel).await;
                    process.settled().await;
                };
                let _ = tokio::time::timeout(CANCELLED, confirmed).await;
            }
            // Answered, it may live.
            if !process.forget(&call_id) && heeds {
                return;
            }
            host.discard(&process).await;
        });
    }
}
