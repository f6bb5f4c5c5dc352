//! Replays a recorded conversation.

use crate::tool::CallView;
use crate::translate::result_content;
use crate::update::{Block, CallUpdate, Kind, Status, Update};
use haft::Content;
use haft_agent::{Message, Origin, Part, ToolResult};
use std::collections::HashMap;
use std::path::Path;

/// Returns the updates that show a conversation, in order. Calls without a result wait if the
/// session can continue with them, and have failed otherwise.
pub(crate) fn updates(messages: &[Message], work_dir: &Path, can_continue: bool) -> Vec<Update> {
    let mut kinds = HashMap::new();
    let mut all = Vec::with_capacity(messages.len());
    for message in messages {
        all.extend(of_message(message, work_dir, &mut kinds));
    }
    if !can_continue {
        all.extend(kinds.into_iter().map(|(id, (tool, _))| {
            Update::Call(Box::new(CallUpdate {
                status: Some(Status::Failed),
                ..CallUpdate::later(&id, &tool)
            }))
        }));
    }
    all
}

/// Calls without a result so far: tool and kind, by id.
type OpenCalls = HashMap<String, (String, Kind)>;

fn of_message(message: &Message, work_dir: &Path, open: &mut OpenCalls) -> Vec<Update> {
    match message {
        Message::User { content, origin } => match origin {
            Origin::Prompt | Origin::Steering => said(content).collect(),
            // Notes from haft to the model.
            _ => Vec::new(),
        },
        Message::Assistant(answer) => {
            let mut updates = Vec::new();
            for part in &answer.parts {
                match part {
                    Part::Text { text } => updates.push(Update::Answer(text.clone())),
                    Part::Reasoning { text } => updates.push(Update::Thought(text.clone())),
                    Part::Call(call) => {
                        let view = CallView {
                            id: &call.id,
                            tool: &call.name,
                            arguments: &call.arguments,
                            agent: None,
                            work_dir,
                        };
                        open.insert(call.id.clone(), (call.name.clone(), view.kind()));
                        let update = view.announce(Status::Pending);
                        updates.push(Update::Call(Box::new(update)));
                        updates.extend(view.plan().map(Update::Plan));
                    }
                }
            }
            updates
        }
        Message::Tool { results } => {
            let ended = results.iter().map(|result| {
                let kind = open.remove(&result.call_id).map(|(_, kind)| kind);
                ended(result, kind)
            });
            ended.collect()
        }
    }
}

/// Returns the number of prompts in a conversation.
pub(crate) fn prompts(messages: &[Message]) -> u64 {
    let prompts = messages.iter().filter(|message| match message {
        Message::User { content, origin } => {
            matches!(origin, Origin::Prompt | Origin::Steering) && said(content).next().is_some()
        }
        _ => false,
    });
    u64::try_from(prompts.count()).unwrap_or(u64::MAX)
}

fn said(content: &[Content]) -> impl Iterator<Item = Update> {
    let blocks = content.iter().filter_map(block);
    blocks.enumerate().map(|(at, block)| Update::User {
        block,
        is_first: at == 0,
    })
}

fn block(content: &Content) -> Option<Block> {
    Some(match content {
        Content::Text { text } if text.is_empty() => return None,
        Content::Text { text } => Block::Text(text.clone()),
        Content::Image { data, media_type } => Block::Image {
            data: data.clone(),
            media_type: media_type.clone(),
        },
        other => Block::Text(other.in_words().into_owned()),
    })
}

fn ended(result: &ToolResult, kind: Option<Kind>) -> Update {
    let status = match result.is_error {
        true => Status::Failed,
        false => Status::Done,
    };
    let kind = kind.unwrap_or(Kind::Other);
    Update::Call(Box::new(CallUpdate {
        status: Some(status),
        content: result_content(kind, result.is_error, &result.content),
        ..CallUpdate::later(&result.call_id, &result.tool)
    }))
}
