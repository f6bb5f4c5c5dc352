//! Compaction: replaces older messages with a summary and keeps the newest verbatim. The
//! record keeps all of them.

use super::ask::{ModelQuery, NoAnswer};
use super::pictures::{PictureTrial, with_limited_pictures, without_pictures};
use super::record::recorded;
use super::run::{End, Run};
use crate::{AgentEvent, Message, Origin};
use haft_store::record::{Batch, NewMessage};
use serde_json::json;
use std::sync::Arc;

/// Fraction of the context window at which a conversation is compacted.
const FULL: (u64, u64) = (4, 5);

/// Fraction of the context window that the messages kept verbatim may have.
const KEPT: (u64, u64) = (1, 5);

const REQUEST: &str = "Write a summary of this conversation for yourself: you will continue the \
work from it alone. Include what was asked for, in the user's own words where they matter; what \
was done and found, with exact paths, names, commands and error messages; what was decided and \
why; and what is left to do. Write nothing else and do not call tools.";

impl Run {
    /// Compacts the conversation if it nearly fills the context window.
    pub(super) async fn compact_if_long(&mut self) -> Result<(), End> {
        let window = self.window();
        let (used, messages) = {
            let conversation = self.shared.lock();
            (conversation.last, conversation.history.len())
        };
        if used.saturating_mul(FULL.1) < window.saturating_mul(FULL.0) || messages < 4 {
            return Ok(());
        }
        self.compact().await
    }

    fn window(&self) -> u64 {
        let known = self.shared.model().context_window();
        known.unwrap_or(self.settings.context)
    }

    /// Compacts the conversation now.
    pub(super) async fn compact(&mut self) -> Result<(), End> {
        let (history, ids) = {
            let conversation = self.shared.lock();
            (Arc::clone(&conversation.history), conversation.ids.clone())
        };
        let before = tokens(&history);
        // Compaction always shortens the conversation, even if it would fit the window.
        let kept = (self.window() * KEPT.0 / KEPT.1).min(before / 3);
        let cut = cut(&history, kept);
        let (old, new) = history.split_at(cut);
        if old.is_empty() {
            return Ok(());
        }
        let summary = self.summary(old).await?;
        let text = format!("[Summary of the conversation so far]\n\n{summary}");
        let message = Message::user(text, Origin::Summary);
        let after_tokens = tokens(new) + tokens(&[Arc::new(message.clone())]);
        let event = self.emitter.prepare(AgentEvent::Compaction {
            before,
            after: after_tokens,
        });
        let body = json!({
            "role": "compaction",
            "summary": message,
            "keeps_from": ids.get(cut).copied().flatten(),
        });
        let batch = Batch {
            messages: vec![NewMessage {
                body: body.to_string(),
                role: "compaction".to_owned(),
                ..recorded(&message)
            }],
            ..self.recorder.batch()
        };
        let numbers = self.recorder.commit(batch).await?;
        {
            let mut conversation = self.shared.lock();
            let mut shorter = vec![Arc::new(message)];
            shorter.extend(new.iter().cloned());
            let mut shorter_ids = vec![numbers.first().copied()];
            shorter_ids.extend(ids.get(cut..).unwrap_or_default());
            conversation.history = Arc::new(shorter);
            conversation.ids = shorter_ids;
            conversation.last = after_tokens;
        }
        self.emitter.send(event);
        Ok(())
    }

    /// Asks the model for a summary. If that fails, lists the prompts and calls.
    async fn summary(&mut self, old: &[Arc<Message>]) -> Result<String, End> {
        let mut history = with_limited_pictures(old);
        history.push(Arc::new(Message::user(REQUEST, Origin::Note)));
        let query = ModelQuery {
            system: &self.settings.system.clone(),
            tools: &[],
            history: &history,
            is_trial: false,
        };
        let mut answer = self.ask_quietly(&query).await;
        // The provider may have rejected a picture, so the second attempt has none.
        if let Err(NoAnswer::Failed(error) | NoAnswer::TooLong(error)) = &answer
            && PictureTrial::is_for(error)
            && let Some(history) = &without_pictures(&history)
        {
            let query = ModelQuery {
                history,
                is_trial: true,
                ..query
            };
            answer = self.ask_quietly(&query).await;
        }
        match answer {
            Ok(answer) => {
                self.count(&answer.usage);
                let text = answer.text();
                Ok(if text.trim().is_empty() {
                    plain_summary(old)
                } else {
                    text
                })
            }
            Err(NoAnswer::Stopped(_)) => Err(End::Interrupted),
            Err(NoAnswer::TooLong(_) | NoAnswer::Failed(_)) => Ok(plain_summary(old)),
        }
    }
}

/// Returns the index of the first message to keep. Calls and their results stay together.
fn cut(history: &[Arc<Message>], max_tokens: u64) -> usize {
    let mut sum = 0;
    let mut cut = history.len();
    for (number, message) in history.iter().enumerate().rev() {
        sum += tokens(std::slice::from_ref(message));
        if sum > max_tokens {
            break;
        }
        if !matches!(**message, Message::Tool { .. }) {
            cut = number;
        }
    }
    // An answer with calls is kept together with their results, even if these are pending.
    let open = match history.last().map(|message| &**message) {
        Some(Message::Tool { .. }) => 2,
        Some(Message::Assistant(answer)) if answer.calls().next().is_some() => 1,
        _ => 0,
    };
    cut.min(history.len().saturating_sub(open))
}

/// Estimates the number of tokens.
fn tokens(history: &[Arc<Message>]) -> u64 {
    let bytes = |message: &Arc<Message>| -> usize {
        match &**message {
            Message::User { content, .. } => content.iter().map(size).sum(),
            Message::Tool { results } => {
                let blocks = results.iter().flat_map(|result| &result.content);
                blocks.map(size).sum()
            }
            Message::Assistant(answer) => answer
                .parts
                .iter()
                .map(|part| match part {
                    crate::Part::Text { text } | crate::Part::Reasoning { text } => text.len(),
                    crate::Part::Call(call) => call.name.len() + call.arguments.to_string().len(),
                })
                .sum(),
        }
    };
    history
        .iter()
        .map(|message| bytes(message) as u64 / 4 + 4)
        .sum()
}

/// Returns the length of text in bytes. Providers count any picture as a few thousand tokens,
/// so other content has a fixed size.
fn size(block: &haft::Content) -> usize {
    match block {
        haft::Content::Text { text } => text.len(),
        _ => 6_000,
    }
}

/// Creates a summary without the model: a list of prompts and calls.
fn plain_summary(old: &[Arc<Message>]) -> String {
    const MAX_BYTES: usize = 12_000;
    let mut lines = Vec::new();
    for message in old {
        match &**message {
            Message::User { content, .. } => {
                for block in content {
                    if let haft::Content::Text { text } = block {
                        lines.push(format!(
                            "- user: {}",
                            haft::truncate::middle(text, 2_000, None)
                        ));
                    }
                }
            }
            Message::Assistant(answer) => {
                for call in answer.calls() {
                    let arguments = call.arguments.to_string();
                    let arguments = haft::truncate::middle(&arguments, 200, None);
                    lines.push(format!("- called {} {arguments}", call.name));
                }
            }
            Message::Tool { .. } => {}
        }
    }
    let text = lines.join("\n");
    haft::truncate::middle(&text, MAX_BYTES, None).into_owned()
}
