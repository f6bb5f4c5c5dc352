//! Making a conversation shorter: what is old becomes a summary, what is new stays
//! word for word, and the record keeps all of it.

use super::ask::{NoAnswer, Question};
use super::pictures::{Trial, without_any};
use super::run::{End, Run, recorded};
use crate::{AgentEvent, Message, Origin, Said};
use haft_store::sessions::{Batch, NewMessage};
use serde_json::json;
use std::sync::Arc;

/// When a conversation has so much of what the model can take, it is made shorter.
const FULL: (u64, u64) = (4, 5);

/// So much of the newest of it stays as it is.
const STAYS: (u64, u64) = (1, 5);

const ASKED: &str = "Write a summary of this conversation for yourself: you will go on with \
the work from it alone. Say what was asked for, in the person's own words where they matter; what \
was done and found, with exact paths, names, commands and error messages; what was decided and \
why; what is left to do. Write nothing else and call nothing.";

impl Run {
    /// Makes the conversation shorter if it is nearly too long.
    pub(super) async fn compact_if_long(&mut self) -> Result<(), End> {
        let window = self.window();
        let (long, length) = {
            let conversation = self.shared.lock();
            (conversation.last, conversation.history.len())
        };
        if long.saturating_mul(FULL.1) < window.saturating_mul(FULL.0) || length < 4 {
            return Ok(());
        }
        self.compact().await
    }

    fn window(&self) -> u64 {
        let known = self.shared.model().context_window();
        known.unwrap_or(self.settings.context)
    }

    /// Makes the conversation shorter now.
    pub(super) async fn compact(&mut self) -> Result<(), End> {
        let (history, ids) = {
            let conversation = self.shared.lock();
            (Arc::clone(&conversation.history), conversation.ids.clone())
        };
        let before = tokens(&history);
        // Asked for by a person or by necessity, it becomes shorter whatever the window.
        let stays = (self.window() * STAYS.0 / STAYS.1).min(before / 3);
        let cut = cut(&history, stays);
        let (old, new) = history.split_at(cut);
        if old.is_empty() {
            return Ok(());
        }
        let summary = self.summary(old).await?;
        let text = format!("[A summary of what was said before]\n\n{summary}");
        let message = Message::user(text, Origin::Summary);
        let after_tokens = tokens(new) + tokens(&[Said::new(message.clone())]);
        let event = self.teller.prepared(AgentEvent::Compaction {
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
            ..self.batch()
        };
        let numbers = self.commit(batch).await?;
        {
            let mut conversation = self.shared.lock();
            let mut shorter = vec![Said::new(message)];
            shorter.extend(new.iter().cloned());
            let mut kept = vec![numbers.first().copied()];
            kept.extend(ids.get(cut..).unwrap_or_default());
            conversation.history = Arc::new(shorter);
            conversation.ids = kept;
            conversation.last = after_tokens;
        }
        self.teller.send(event);
        Ok(())
    }

    /// The model's own summary; if it cannot give one, what was asked and called.
    async fn summary(&mut self, old: &[Arc<Said>]) -> Result<String, End> {
        let mut asked = old.to_vec();
        asked.push(Said::new(Message::user(ASKED, Origin::Note)));
        let question = Question {
            system: &self.settings.system.clone(),
            tools: &[],
            history: &asked,
            is_trial: false,
        };
        let mut asked_for = self.ask_quietly(&question).await;
        // A picture that the provider refuses is no reason to lose the rest.
        if let Err(NoAnswer::Failed(error) | NoAnswer::TooLong(error)) = &asked_for
            && Trial::is_for(error)
            && let Some(history) = &without_any(&asked)
        {
            let question = Question {
                history,
                is_trial: true,
                ..question
            };
            asked_for = self.ask_quietly(&question).await;
        }
        match asked_for {
            Ok(answer) => {
                self.count(&answer.usage);
                let text = answer.text();
                Ok(if text.trim().is_empty() {
                    plain(old)
                } else {
                    text
                })
            }
            Err(NoAnswer::Stopped(_)) => Err(End::Interrupted),
            Err(NoAnswer::TooLong(_) | NoAnswer::Failed(_)) => Ok(plain(old)),
        }
    }
}

/// Where the part begins that stays: never between calls and their results.
fn cut(history: &[Arc<Said>], stays: u64) -> usize {
    let mut sum = 0;
    let mut cut = history.len();
    for (number, said) in history.iter().enumerate().rev() {
        sum += tokens(std::slice::from_ref(said));
        if sum > stays {
            break;
        }
        if !matches!(said.message, Message::Tool { .. }) {
            cut = number;
        }
    }
    // An answer with calls stays with their results, also if these are still to come.
    let open = match history.last().map(|said| &said.message) {
        Some(Message::Tool { .. }) => 2,
        Some(Message::Assistant(answer)) if answer.calls().next().is_some() => 1,
        _ => 0,
    };
    cut.min(history.len().saturating_sub(open))
}

/// About how many tokens that is.
fn tokens(history: &[Arc<Said>]) -> u64 {
    let bytes = |said: &Arc<Said>| -> usize {
        match &said.message {
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
    history.iter().map(|said| bytes(said) as u64 / 4 + 4).sum()
}

/// Providers count a picture as some thousand tokens, whatever its bytes.
fn size(block: &haft::Content) -> usize {
    match block {
        haft::Content::Text { text } => text.len(),
        _ => 6_000,
    }
}

/// A summary that needs no model: what was asked, and which calls were made.
fn plain(old: &[Arc<Said>]) -> String {
    const MOST: usize = 12_000;
    let mut lines = Vec::new();
    for said in old {
        match &said.message {
            Message::User { content, .. } => {
                for block in content {
                    if let haft::Content::Text { text } = block {
                        lines.push(format!(
                            "- said: {}",
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
    haft::truncate::middle(&text, MOST, None).into_owned()
}
