//! Updates of a session.

use super::options;
use crate::commands::Command;
use crate::port::Mode;
use crate::schema::{SessionState, write};
use crate::update::{
    Block, CallContent, CallUpdate, Kind, Location, PlanEntry, PlanStatus, Status, Update,
};
use agent_client_protocol_schema::v1;
use serde_json::Value;

fn block(block: Block) -> v1::ContentBlock {
    match block {
        Block::Text(text) => v1::ContentBlock::from(text),
        Block::Image { data, media_type } => {
            v1::ContentBlock::Image(v1::ImageContent::new(data, media_type))
        }
    }
}

fn kind(kind: Kind) -> v1::ToolKind {
    match kind {
        Kind::Read => v1::ToolKind::Read,
        Kind::Edit => v1::ToolKind::Edit,
        Kind::Delete => v1::ToolKind::Delete,
        Kind::Search => v1::ToolKind::Search,
        Kind::Execute => v1::ToolKind::Execute,
        Kind::Think => v1::ToolKind::Think,
        Kind::Fetch => v1::ToolKind::Fetch,
        Kind::Other => v1::ToolKind::Other,
    }
}

fn status(status: Status) -> v1::ToolCallStatus {
    match status {
        Status::Pending => v1::ToolCallStatus::Pending,
        Status::Running => v1::ToolCallStatus::InProgress,
        Status::Done => v1::ToolCallStatus::Completed,
        Status::Failed => v1::ToolCallStatus::Failed,
    }
}

fn call_content(content: CallContent) -> v1::ToolCallContent {
    match content {
        CallContent::Block(content) => {
            v1::ToolCallContent::Content(v1::Content::new(block(content)))
        }
        CallContent::Diff { path, old, new } => {
            let new = new.unwrap_or_default();
            v1::ToolCallContent::Diff(v1::Diff::new(path, new).old_text(old))
        }
    }
}

fn location(location: Location) -> v1::ToolCallLocation {
    v1::ToolCallLocation::new(location.path).line(location.line)
}

pub(super) fn call_update(update: CallUpdate) -> v1::ToolCallUpdate {
    let contents = |all: Vec<CallContent>| all.into_iter().map(call_content).collect::<Vec<_>>();
    let locations = |all: Vec<Location>| all.into_iter().map(location).collect::<Vec<_>>();
    let fields = v1::ToolCallUpdateFields::new()
        .kind(update.kind.map(kind))
        .status(update.status.map(status))
        .title(update.title)
        .content(update.content.map(contents))
        .locations(update.locations.map(locations))
        .raw_input(update.raw_input);
    v1::ToolCallUpdate::new(update.id, fields)
}

fn session_update(update: Update) -> v1::SessionUpdate {
    match update {
        Update::User { block: said, .. } => {
            v1::SessionUpdate::UserMessageChunk(v1::ContentChunk::new(block(said)))
        }
        Update::Answer(text) => {
            v1::SessionUpdate::AgentMessageChunk(v1::ContentChunk::new(text.into()))
        }
        Update::Thought(text) => {
            v1::SessionUpdate::AgentThoughtChunk(v1::ContentChunk::new(text.into()))
        }
        Update::Note(note) => v1::SessionUpdate::AgentThoughtChunk(v1::ContentChunk::new(
            format!("\n[{note}]\n").into(),
        )),
        Update::Call(update) if update.is_new => {
            let update = *update;
            let made = v1::ToolCall::new(update.id, update.title.unwrap_or_default())
                .kind(update.kind.map_or(v1::ToolKind::Other, kind))
                .status(update.status.map_or(v1::ToolCallStatus::Pending, status))
                .content(
                    update
                        .content
                        .into_iter()
                        .flatten()
                        .map(call_content)
                        .collect::<Vec<_>>(),
                )
                .locations(
                    update
                        .locations
                        .into_iter()
                        .flatten()
                        .map(location)
                        .collect::<Vec<_>>(),
                )
                .raw_input(update.raw_input);
            v1::SessionUpdate::ToolCall(made)
        }
        Update::Call(update) => v1::SessionUpdate::ToolCallUpdate(call_update(*update)),
        Update::Plan(entries) => {
            let entries = entries.into_iter().map(plan_entry);
            v1::SessionUpdate::Plan(v1::Plan::new(entries.collect()))
        }
        Update::Usage { used, size, cost } => {
            let cost = cost.map(|amount| v1::Cost::new(amount, "USD"));
            v1::SessionUpdate::UsageUpdate(v1::UsageUpdate::new(used, size).cost(cost))
        }
        Update::Title(title) => {
            v1::SessionUpdate::SessionInfoUpdate(v1::SessionInfoUpdate::new().title(title))
        }
    }
}

fn plan_entry(entry: PlanEntry) -> v1::PlanEntry {
    let status = match entry.status {
        PlanStatus::Pending => v1::PlanEntryStatus::Pending,
        PlanStatus::Running => v1::PlanEntryStatus::InProgress,
        PlanStatus::Done => v1::PlanEntryStatus::Completed,
    };
    v1::PlanEntry::new(entry.text, v1::PlanEntryPriority::Medium, status)
}

fn notification(session: &str, update: v1::SessionUpdate) -> Value {
    write(v1::SessionNotification::new(session.to_owned(), update)).unwrap_or_default()
}

/// Creates the parameters of `session/update`.
pub(super) fn update(session: &str, update: Update) -> Value {
    notification(session, session_update(update))
}

/// Creates the update with the slash commands.
pub(super) fn commands(session: &str, commands: &[Command]) -> Value {
    let commands = commands.iter().map(|command| {
        let made = v1::AvailableCommand::new(command.name.as_str(), command.description.as_str());
        let input = command.hint.as_ref().map(|hint| {
            let input = v1::UnstructuredCommandInput::new(hint.as_str());
            v1::AvailableCommandInput::Unstructured(input)
        });
        made.input(input)
    });
    let update = v1::AvailableCommandsUpdate::new(commands.collect());
    notification(session, v1::SessionUpdate::AvailableCommandsUpdate(update))
}

/// Creates the update with the mode.
pub(super) fn current_mode(session: &str, mode: Mode) -> Value {
    let update = v1::CurrentModeUpdate::new(mode.id());
    notification(session, v1::SessionUpdate::CurrentModeUpdate(update))
}

/// Creates the update with all settings.
pub(super) fn settings(session: &str, state: &SessionState) -> Value {
    let update = v1::ConfigOptionUpdate::new(options(state));
    notification(session, v1::SessionUpdate::ConfigOptionUpdate(update))
}
