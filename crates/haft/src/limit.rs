//! Truncating replies to what a model can take. The full text is saved first, so that the
//! note about the truncation can name its path.

mod captured;

pub(crate) use captured::{Beginning, ShownOutput, beginning, captured, ends_in_memory};

use crate::reply::Cutting;
use crate::{Content, Reply, Toolset};
use haft_ops::spill::Spill;
use haft_ops::text::limit::{Keep, Limit, middle};
use std::borrow::Cow;

/// Bytes that a tool which truncates by itself may add for its own notes.
const OWN_NOTES: usize = 4 << 10;

/// Truncates the text of a reply if it is too long, and appends its footer. Returns whether
/// it was truncated.
pub(crate) fn apply(
    reply: &mut Reply,
    toolset: &Toolset,
    spill: Option<&Spill>,
    call_id: &str,
) -> bool {
    let limit = reply.limit.unwrap_or(toolset.limit);
    let limit = match reply.cutting {
        Cutting::AsLimited => limit,
        Cutting::Keeping(keep) => Limit { keep, ..limit },
        Cutting::Done => Limit {
            bytes: limit.bytes + OWN_NOTES,
            lines: limit.lines.saturating_add(20),
            ..limit
        },
        Cutting::Never => return false,
    };
    let cut = cut_blocks(reply, &limit, toolset, spill, call_id);
    if !cut && let Some(footer) = reply.footer.take() {
        append(reply, &footer);
    }
    cut
}

fn cut_blocks(
    reply: &mut Reply,
    limit: &Limit,
    toolset: &Toolset,
    spill: Option<&Spill>,
    call_id: &str,
) -> bool {
    let texts = reply
        .content
        .iter()
        .filter(|block| block.as_text().is_some())
        .count();
    // Several text blocks share the limit of one.
    let full = if texts > 1 { Some(reply.text()) } else { None };
    let text = match (&full, reply.content.iter().find_map(Content::as_text)) {
        (Some(full), _) => full.as_str(),
        (None, Some(text)) => text,
        (None, None) => return false,
    };
    let cut = limit.cut(text);
    if cut.hit.is_none() {
        return false;
    }
    let stored = spill.and_then(|spill| {
        match spill.keep(call_id, &with_footer(text, reply.footer.as_deref())) {
            Ok(stored) => Some(stored),
            Err(error) => {
                tracing::error!(%error, "the full output of a call could not be saved");
                None
            }
        }
    });
    let note = (toolset.cut_note)(&cut, limit.keep, stored.as_ref());
    let mut text = match limit.keep {
        Keep::Head | Keep::Tail => cut.kept.to_owned(),
        Keep::Middle => middle(text, limit.bytes, Some(limit.lines)).into_owned(),
    };
    if let Some(footer) = &reply.footer {
        text = with_footer(&text, Some(footer)).into_owned();
        text.push('\n');
    } else {
        // Exactly one blank line, even after a complete line.
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(&note);
    if let Some(stored) = &stored {
        reply.details.insert(
            "output_path".to_owned(),
            stored.path.to_string_lossy().into(),
        );
    }
    reply.footer = None;
    let mut pictures: Vec<Content> = reply
        .content
        .drain(..)
        .filter(|block| block.as_text().is_none())
        .collect();
    reply.content.push(Content::Text { text });
    reply.content.append(&mut pictures);
    true
}

fn with_footer<'a>(text: &'a str, footer: Option<&str>) -> Cow<'a, str> {
    match footer {
        Some(footer) => format!("{}\n\n{footer}", text.trim_end_matches('\n')).into(),
        // Not copied, because the text may be long.
        None => text.into(),
    }
}

fn append(reply: &mut Reply, footer: &str) {
    let last = reply
        .content
        .iter_mut()
        .rev()
        .find_map(|block| match block {
            Content::Text { text } => Some(text),
            _ => None,
        });
    match last {
        Some(text) => *text = with_footer(text, Some(footer)).into_owned(),
        None => reply.content.push(Content::Text {
            text: footer.to_owned(),
        }),
    }
}
