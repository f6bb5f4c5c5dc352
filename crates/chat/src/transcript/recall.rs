//! Shows what was said before.

use super::{Transcript, text_of};
use crate::driver::ChatEvent;
use crate::setup::Recalled;
use crate::styled_text::{Line, Style};
use haft_agent::EventKind;
use std::time::Instant;

impl Transcript {
    /// Lines of the conversation before.
    pub(crate) fn recall(&mut self, conversation: &[Recalled], now: Instant) -> Vec<Line> {
        let mut out = Vec::new();
        for part in conversation {
            match part {
                Recalled::Note(text) => out.extend(self.note(text, Style::DIM)),
                Recalled::Prompt(text) => out.extend(self.user_input(text)),
                Recalled::Answer(text) => out.extend(self.answer(text)),
                Recalled::Call(event) => {
                    let chat_event = ChatEvent {
                        kind: EventKind::Tool(event.clone()),
                        sub_agent: None,
                        is_background: false,
                    };
                    let output = match event {
                        haft::EventKind::ToolEnd { content, .. } => Some(text_of(content)),
                        _ => None,
                    };
                    out.extend(self.handle(&chat_event, now, &|_| output.clone()));
                }
            }
        }
        // Calls without a result are not running.
        self.running.clear();
        out
    }

    /// Lines of a whole text of the model.
    pub(crate) fn answer(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::new();
        self.add_delta(("text", text), Instant::now(), &mut out);
        self.finish_text(&mut out);
        out
    }
}
