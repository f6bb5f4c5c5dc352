//! Updates of a session.

use super::options;
use super::progress::Activity;
use crate::commands::Command;
use crate::schema::{SessionState, write};
use crate::update::{
    Block, CallContent, CallUpdate, Kind, Location, PlanEntry, PlanStatus, Status, Update,
};
use agent_client_protocol_schema::{MaybeUndefined, v2};
use haft::ops::text::diff::unified;
use serde_json::Value;
use std::path::Path;

/// Id of the todo list; a session has one.
const PLAN: &str = "todos";

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

fn block(block: Block) -> v2::ContentBlock {
    match block {
        Block::Text(text) => v2::ContentBlock::Text(v2::TextContent::new(text)),
        Block::Image { data, media_type } => {
            v2::ContentBlock::Image(v2::ImageContent::new(data, media_type))
        }
    }
}

fn kind(kind: Kind) -> v2::ToolKind {
    match kind {
        Kind::Read => v2::ToolKind::Read,
        Kind::Edit => v2::ToolKind::Edit,
        Kind::Delete => v2::ToolKind::Delete,
        Kind::Search => v2::ToolKind::Search,
        Kind::Execute => v2::ToolKind::Execute,
        Kind::Think => v2::ToolKind::Think,
        Kind::Fetch => v2::ToolKind::Fetch,
        Kind::Other => v2::ToolKind::Other,
    }
}

fn status(status: Status) -> v2::ToolCallStatus {
    match status {
        Status::Pending => v2::ToolCallStatus::Pending,
        Status::Running => v2::ToolCallStatus::InProgress,
        Status::Done => v2::ToolCallStatus::Completed,
        Status::Failed => v2::ToolCallStatus::Failed,
    }
}

fn content(content: CallContent) -> v2::ToolCallContent {
    match content {
        CallContent::Block(said) => {
            v2::ToolCallContent::Content(Box::new(v2::Content::new(block(said))))
        }
        CallContent::Diff { path, old, new } => {
            let patch = patch(&path, old.as_deref(), new.as_deref());
            let change = match (&old, &new) {
                (None, _) => v2::DiffChange::add(path),
                (_, None) => v2::DiffChange::delete(path),
                _ => v2::DiffChange::modify(path),
            };
            let diff = v2::Diff::new(vec![change.file_type(v2::DiffFileType::Text)]);
            diff.with_patch(v2::DiffPatch::new(patch)).into()
        }
    }
}

/// Returns a change as `git diff` shows it. Lines of a change that has not been made yet are
/// counted from the text to replace, as its place in the file is not known.
fn patch(path: &Path, old: Option<&str>, new: Option<&str>) -> String {
    let name = path.to_string_lossy().replace('\n', "\\n");
    let name = name.trim_start_matches('/');
    let (mode, from, to) = match (old, new) {
        (None, _) => (
            "new file mode 100644\n",
            "/dev/null".to_owned(),
            format!("b/{name}"),
        ),
        (_, None) => (
            "deleted file mode 100644\n",
            format!("a/{name}"),
            "/dev/null".to_owned(),
        ),
        _ => ("", format!("a/{name}"), format!("b/{name}")),
    };
    let lines = unified(
        old.unwrap_or_default(),
        new.unwrap_or_default(),
        "",
        CONTEXT,
    );
    let hunks = lines.find("@@").and_then(|at| lines.get(at..));
    let header = hunks.map(|hunks| format!("--- {from}\n+++ {to}\n{hunks}"));
    format!(
        "diff --git a/{name} b/{name}\n{mode}{}",
        header.unwrap_or_default()
    )
}

fn location(location: Location) -> v2::ToolCallLocation {
    v2::ToolCallLocation::new(location.path).line(location.line)
}

/// Fields that are `None` have not changed.
fn changed<T>(value: Option<T>) -> MaybeUndefined<T> {
    value.map_or(MaybeUndefined::Undefined, MaybeUndefined::Value)
}

pub(super) fn call(update: CallUpdate) -> v2::ToolCallUpdate {
    let contents = |all: Vec<CallContent>| all.into_iter().map(content).collect::<Vec<_>>();
    let locations = |all: Vec<Location>| all.into_iter().map(location).collect::<Vec<_>>();
    let name = update.is_new.then_some(update.tool);
    v2::ToolCallUpdate::new(update.id)
        .name(changed(name))
        .title(changed(update.title))
        .kind(changed(update.kind.map(kind)))
        .status(changed(update.status.map(status)))
        .content(changed(update.content.map(contents)))
        .locations(changed(update.locations.map(locations)))
        .raw_input(changed(update.raw_input))
}

fn plan_entry(entry: PlanEntry) -> v2::PlanEntry {
    let status = match entry.status {
        PlanStatus::Pending => v2::PlanEntryStatus::Pending,
        PlanStatus::Running => v2::PlanEntryStatus::InProgress,
        PlanStatus::Done => v2::PlanEntryStatus::Completed,
    };
    v2::PlanEntry::new(entry.text, v2::PlanEntryPriority::Medium, status)
}

fn notification(session: &str, update: v2::SessionUpdate) -> Value {
    let update = v2::UpdateSessionNotification::new(session.to_owned(), update);
    write(update).unwrap_or_default()
}

/// Creates the parameters of `session/update`. `id` is that of the message it belongs to.
pub(super) fn update(session: &str, id: String, update: Update) -> Value {
    let text = |text: String| v2::ContentBlock::Text(v2::TextContent::new(text));
    let update = match update {
        Update::User { block: said, .. } => {
            v2::SessionUpdate::UserMessageChunk(v2::ContentChunk::new(block(said), id))
        }
        Update::Answer(said) => {
            v2::SessionUpdate::AgentMessageChunk(v2::ContentChunk::new(text(said), id))
        }
        Update::Thought(said) => {
            v2::SessionUpdate::AgentThoughtChunk(v2::ContentChunk::new(text(said), id))
        }
        Update::Note(note) => {
            v2::SessionUpdate::Notice(v2::Notice::new(v2::NoticeSeverity::Info, note))
        }
        Update::Call(update) => v2::SessionUpdate::ToolCallUpdate(call(*update)),
        Update::Plan(entries) => {
            let entries = entries.into_iter().map(plan_entry);
            let items = v2::PlanItems::new(PLAN, entries.collect());
            let plan = v2::PlanUpdateContent::Items(items);
            v2::SessionUpdate::PlanUpdate(v2::PlanUpdate::new(plan))
        }
        Update::Usage { used, size, cost } => {
            let cost = cost.map(|amount| v2::Cost::new(amount, "USD"));
            v2::SessionUpdate::UsageUpdate(v2::UsageUpdate::new(used, size).cost(changed(cost)))
        }
        Update::Title(title) => {
            v2::SessionUpdate::SessionInfoUpdate(v2::SessionInfoUpdate::new().title(title))
        }
    };
    notification(session, update)
}

/// Repeats what the user said. The content goes back as it came.
pub(super) fn user(session: &str, id: &str, content: Value) -> Value {
    serde_json::json!({
        "sessionId": session,
        "update": { "sessionUpdate": "user_message", "messageId": id, "content": content },
    })
}

/// Says that the session works on a prompt.
pub(super) fn running(session: &str) -> Value {
    state(session, Activity::Running)
}

/// Says that the session waits for a prompt, and why the last one ended.
pub(super) fn idle(session: &str, reason: Option<v2::StopReason>) -> Value {
    let idle = v2::IdleStateUpdate::new().stop_reason(reason);
    let state = v2::StateUpdate::Idle(idle);
    notification(session, v2::SessionUpdate::StateUpdate(state))
}

/// Says what the session does.
pub(super) fn state(session: &str, state: Activity) -> Value {
    let state = match state {
        Activity::Running => v2::StateUpdate::Running(v2::RunningStateUpdate::new()),
        Activity::RequiresAction => {
            v2::StateUpdate::RequiresAction(v2::RequiresActionStateUpdate::new())
        }
        Activity::Idle => return idle(session, None),
    };
    notification(session, v2::SessionUpdate::StateUpdate(state))
}

/// Returns the slash commands.
pub(super) fn offered(commands: &[Command]) -> Vec<v2::AvailableCommand> {
    let commands = commands.iter().map(|command| {
        let made = v2::Command::new(command.name.as_str(), command.description.as_str());
        let input = command
            .hint
            .as_ref()
            .map(|hint| v2::AvailableCommandInput::Text(v2::TextCommandInput::new(hint.as_str())));
        v2::AvailableCommand::Command(made.input(input))
    });
    commands.collect()
}

/// Creates the update with the slash commands.
pub(super) fn commands(session: &str, commands: &[Command]) -> Value {
    let update = v2::AvailableCommandsUpdate::new(offered(commands));
    notification(session, v2::SessionUpdate::AvailableCommandsUpdate(update))
}

/// Creates the update with all settings.
pub(super) fn settings(session: &str, state: &SessionState) -> Value {
    let update = v2::ConfigOptionUpdate::new(options(state));
    notification(session, v2::SessionUpdate::ConfigOptionUpdate(update))
}
