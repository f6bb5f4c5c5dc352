//! Progress of a non-interactive run on stderr, one line per call.

use crate::{output, text};
use haft::Content;
use haft::ops::effects::Counts;
use haft_agent::{AgentEvent, Event, EventKind};
use haft_chat::background_task_line;
use serde_json::Value;
use std::cell::RefCell;

/// Maximum characters shown of a call.
const MAX_CHARS: usize = 100;

/// Prints events as lines.
pub(super) struct Progress {
    is_on: bool,
    /// Background tasks that the last "waiting for" line named.
    waited_for: RefCell<Vec<String>>,
    /// Whether calls that need approval are shown in a prompt, which says more than a
    /// line here.
    is_asking: bool,
}

impl Progress {
    pub(super) fn new(is_on: bool, is_asking: bool) -> Self {
        Self {
            is_on,
            is_asking,
            waited_for: RefCell::default(),
        }
    }

    /// Returns a line for a wait on background tasks. The event repeats whenever a task
    /// ends; nothing is printed then, because the remaining tasks were already named.
    fn waits(&self, tasks: &[String]) -> Option<String> {
        let mut named = self.waited_for.borrow_mut();
        let is_new = tasks.iter().any(|id| !named.contains(id));
        *named = tasks.to_vec();
        let plural = if tasks.len() == 1 { "" } else { "s" };
        is_new.then(|| {
            format!(
                "waiting for {} background sub-agent{plural}: {}",
                tasks.len(),
                tasks.join(", ")
            )
        })
    }

    pub(super) fn show(&self, event: &Event) {
        let indent = if event.parent.is_some() { "    " } else { "" };
        let line = match &event.kind {
            // Errors are printed even with --quiet.
            EventKind::Agent(AgentEvent::Error { message }) => Some(format!("error: {message}")),
            _ if !self.is_on => None,
            EventKind::Tool(haft::EventKind::ApprovalNeeded { .. }) if self.is_asking => None,
            EventKind::Agent(AgentEvent::BackgroundWait { tasks }) => self.waits(tasks),
            EventKind::Agent(event) => agent(event),
            EventKind::Tool(event) => tool(event),
            _ => None,
        };
        if let Some(line) = line {
            // Names may come from the model and contain newlines.
            output::note(&format!("{indent}{}", text::on_one_line(&line)));
        }
    }
}

fn agent(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::Retry {
            attempt,
            of,
            delay_ms,
            reason,
        } => Some(format!(
            "retrying in {delay_ms} ms ({attempt} of {of}): {reason}"
        )),
        AgentEvent::Compaction { before, after } => Some(format!(
            "compacted the conversation: about {before} tokens, now {after}"
        )),
        AgentEvent::PictureLeftOut {
            picture, reason, ..
        } => Some(format!("{picture} will not be sent again: {reason}")),
        AgentEvent::BackgroundTask {
            task_id,
            agent,
            description,
            status,
        } => Some(background_task_line(task_id, agent, description, status)),
        AgentEvent::TurnLimitReached { reason } => {
            let name = serde_json::to_value(reason).unwrap_or_default();
            Some(match name.as_str().unwrap_or_default() {
                "loop" => "stopped: the model keeps repeating the same calls with the same results"
                    .to_owned(),
                name => format!("stopped: {name} reached"),
            })
        }
        _ => None,
    }
}

fn tool(event: &haft::EventKind) -> Option<String> {
    match event {
        haft::EventKind::ToolStart {
            tool, arguments, ..
        } => Some(format!("> {tool} {}", brief(arguments))),
        haft::EventKind::ToolEnd {
            tool,
            is_error,
            details,
            content,
            ..
        } => {
            let code = details.get("exit_code").and_then(Value::as_i64);
            let not_reverted = details.get("not_reverted").and_then(Value::as_str);
            match (not_reverted, code.filter(|code| *code != 0)) {
                (Some(why), _) => Some(format!(
                    "  {tool}: not all of it could be reverted: {}",
                    truncate(why)
                )),
                (None, Some(code)) if !details.contains_key("ended") => {
                    Some(format!("  {tool}: exit code {code}"))
                }
                _ if *is_error => Some(match why_failed(content) {
                    Some(why) => format!("  {tool} failed: {why}"),
                    None => format!("  {tool} failed"),
                }),
                _ => None,
            }
        }
        haft::EventKind::ToolDenied { tool, reason, .. } => {
            Some(format!("  {tool} was not run: {}", truncate(reason)))
        }
        haft::EventKind::ApprovalNeeded {
            tool, arguments, ..
        } => Some(format!("? {tool} {}", brief(arguments))),
        haft::EventKind::ReviewNeeded { tool, changes, .. } => {
            Some(format!("? {tool}: {}", counted(changes)))
        }
        _ => None,
    }
}

/// Returns the line of a reply that says what failed: the last one after the output of a
/// command, the error of a JSON reply, or else the first.
fn why_failed(content: &[Content]) -> Option<String> {
    let text = content.first()?.as_text()?.trim();
    let json: Option<Value> = serde_json::from_str(text).ok();
    let field = |name: &str| json.as_ref()?.get(name)?.as_str().map(truncate);
    let timed_out = text
        .lines()
        .last()
        .filter(|line| line.starts_with("Command timed out"));
    let line = timed_out.or(text.lines().next()).map(truncate);
    field("error").or_else(|| field("message")).or(line)
}

/// Counts changes by their kind, deletions first.
fn counted(changes: &[Value]) -> String {
    let count = |kind: &str| {
        let changes = changes.iter().filter(|change| change["kind"] == kind);
        changes.count() as u64
    };
    haft::effects::counts_words(&Counts {
        created: count("created"),
        modified: count("modified"),
        deleted: count("deleted"),
        renamed: count("renamed"),
        attributes: count("attributes"),
        complete: true,
        why: None,
    })
}

/// Formats the arguments of a call as one line.
fn brief(arguments: &Value) -> String {
    let Value::Object(fields) = arguments else {
        return truncate(&arguments.to_string());
    };
    let pairs = fields.iter().map(|(name, value)| match value {
        Value::String(text) => format!("{name}={}", text.replace('\n', "\\n")),
        other => format!("{name}={other}"),
    });
    truncate(&pairs.collect::<Vec<_>>().join(" "))
}

fn truncate(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    #[test]
    fn background_tasks_are_named_once() {
        let progress = Progress::new(true, false);
        let ids = |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
        let first = progress.waits(&ids(&["a", "b", "c"])).unwrap();
        assert_eq!(first, "waiting for 3 background sub-agents: a, b, c");
        // Nothing for the same tasks, or for fewer after one ended.
        assert_eq!(progress.waits(&ids(&["a", "b", "c"])), None);
        assert_eq!(progress.waits(&ids(&["b", "c"])), None);
        // A new one is named.
        let next = progress.waits(&ids(&["b", "c", "d"])).unwrap();
        assert!(next.ends_with(": b, c, d"), "{next}");
    }
}
