//! A form on the screen: printed above, then its fields one by one in place of the input
//! line.

use super::App;
use super::request::{ActiveKind, ActiveRequest, key_hints, prompted_line};
use crate::editor::Editor;
use crate::form::FormState;
use crate::styled_text::{Line, Style};
use haft::Filled;
use tokio::sync::oneshot;

/// A field description with more rows than this is printed above, where it is not
/// truncated.
const MAX_PROMPT_ROWS: usize = 3;

/// A form that waits to be filled in.
pub(super) struct FormPrompt {
    form_state: FormState,
    filled: oneshot::Sender<Filled>,
    /// Input line of the current field; `None` while waiting for a key.
    line: Option<Editor>,
    /// Last input for each field, shown when the field is asked for again.
    last_inputs: Vec<String>,
    /// Whether the field's description is printed above.
    is_prompt_above: bool,
}

impl FormPrompt {
    pub(super) fn new(form_state: FormState, filled: oneshot::Sender<Filled>) -> Self {
        Self {
            form_state,
            filled,
            line: None,
            last_inputs: Vec::new(),
            is_prompt_above: false,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.filled.is_closed()
    }

    pub(super) async fn closed(&mut self) {
        self.filled.closed().await;
    }

    pub(super) fn editor(&mut self) -> Option<&mut Editor> {
        self.line.as_mut()
    }

    /// Goes back to the keys. Continuing starts at the first field, so that all can be
    /// checked.
    pub(super) fn back(&mut self) {
        self.save_input();
        self.line = None;
        self.form_state.start_over();
    }

    pub(super) fn input_rows(&self, columns: usize) -> (Vec<Line>, (usize, usize)) {
        let prompt = match self.is_prompt_above {
            true => self.form_state.short_prompt(),
            false => self.form_state.prompt(),
        };
        match (&self.line, prompt) {
            (Some(line), Some(prompt)) => prompted_line(&format!("{prompt} › "), line, columns),
            _ => {
                let all = [("y", "answer"), ("n", "decline"), ("Esc", "stop")];
                (key_hints(&all).all_rows(columns), (0, 0))
            }
        }
    }

    fn save_input(&mut self) {
        let at = self.form_state.next_index();
        if let Some(line) = &self.line {
            self.last_inputs
                .resize(self.last_inputs.len().max(at + 1), String::new());
            if let Some(before) = self.last_inputs.get_mut(at) {
                *before = line.text().to_owned();
            }
        }
    }

    fn enter(&mut self) -> Result<(), String> {
        self.save_input();
        let typed = self.line.as_ref().map_or("", Editor::text);
        self.form_state.enter(typed)
    }
}

impl App {
    /// Handles a key while no field is being edited.
    pub(super) fn fill_letter(&mut self, letter: char) {
        match letter {
            'y' => self.next_field(),
            'n' => self.finish_form(|_| Filled::Declined, "declined"),
            _ => {}
        }
    }

    /// Enter: submits the current field.
    pub(super) fn fill_field(&mut self) {
        let Some(form) = self.form() else {
            return;
        };
        let at = form.form_state.next_index();
        match form.enter() {
            Ok(()) => self.next_field(),
            Err(why) => {
                // The input stays, unless the form starts over.
                if form.form_state.next_index() != at {
                    self.next_field();
                }
                self.hint(&why);
            }
        }
    }

    fn next_field(&mut self) {
        let columns = self.screen.columns();
        // The input line has a third of the screen, and one row of it is for the input
        // itself.
        let most = (self.screen.height().saturating_sub(1) / 3).saturating_sub(1);
        let most = most.min(MAX_PROMPT_ROWS);
        let Some(form) = self.form() else {
            return;
        };
        let Some(prompt) = form.form_state.prompt() else {
            return self.finish_form(FormState::filled, "answered");
        };
        let mut line = Editor::default();
        if let Some(before) = form.last_inputs.get(form.form_state.next_index()) {
            line.set(before.as_str());
        }
        form.line = Some(line);
        let above = Line::new(&format!("  {prompt}"), Style::PLAIN).hanging(4);
        form.is_prompt_above = above.all_rows(columns).len() > most;
        if form.is_prompt_above {
            self.print(&[above]);
        }
    }

    fn form(&mut self) -> Option<&mut FormPrompt> {
        match &mut self.active.as_mut()?.kind {
            ActiveKind::Form(form) => Some(form),
            ActiveKind::Approval(_) => None,
        }
    }

    /// Sends the result of the form, and prints it.
    fn finish_form(&mut self, what: impl FnOnce(&FormState) -> Filled, words: &str) {
        if let Some(ActiveRequest {
            kind: ActiveKind::Form(form),
            ..
        }) = self.active.take()
        {
            // Fails if the form was withdrawn.
            let _ = form.filled.send(what(&form.form_state));
            self.print(&[Line::new(&format!("  {words}"), Style::DIM)]);
        }
    }
}
