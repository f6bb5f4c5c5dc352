//! A form on the screen: shown above, then one field after the other in place of the
//! input line.

use super::App;
use super::asking::{Asking, Wants, keys, typed};
use crate::chat::editor::Editor;
use crate::chat::form::Sheet;
use crate::chat::ink::{Line, Style};
use haft::Filled;
use tokio::sync::oneshot;

/// What takes more rows than this is shown above, where nothing of it is cut off.
const ROWS: usize = 3;

/// A form that waits to be filled in.
pub(super) struct Filling {
    sheet: Sheet,
    filled: oneshot::Sender<Filled>,
    /// The line of the field that is asked for; none while keys are waited for.
    line: Option<Editor>,
    /// What was typed for each field, to begin with when it is asked for again.
    before: Vec<String>,
    /// Whether the field is described above.
    is_above: bool,
}

impl Filling {
    pub(super) fn new(sheet: Sheet, filled: oneshot::Sender<Filled>) -> Self {
        Self {
            sheet,
            filled,
            line: None,
            before: Vec::new(),
            is_above: false,
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

    /// Back to the keys. Who goes on begins with the first field, to look at all again.
    pub(super) fn back(&mut self) {
        self.remember();
        self.line = None;
        self.sheet.again();
    }

    pub(super) fn entry(&self, columns: usize, whole: usize) -> (Vec<Line>, (usize, usize)) {
        let prompt = match self.is_above {
            true => self.sheet.short_prompt(),
            false => self.sheet.prompt(),
        };
        match (&self.line, prompt) {
            (Some(line), Some(prompt)) => typed(&format!("{prompt} › "), line, columns),
            _ => {
                let all = [("y", "answer"), ("n", "decline"), ("Esc", "stop")];
                (keys(&all).all_rows(whole), (0, 0))
            }
        }
    }

    /// Keeps what is typed for this field.
    fn remember(&mut self) {
        let at = self.sheet.at();
        if let Some(line) = &self.line {
            self.before
                .resize(self.before.len().max(at + 1), String::new());
            if let Some(before) = self.before.get_mut(at) {
                *before = line.text().to_owned();
            }
        }
    }

    /// Takes what is typed.
    fn take(&mut self) -> Result<(), String> {
        self.remember();
        let typed = self.line.as_ref().map_or("", Editor::text);
        self.sheet.take(typed)
    }
}

impl App {
    /// A key, while nothing is typed.
    pub(super) fn fill_letter(&mut self, letter: char) {
        match letter {
            'y' => self.next_field(),
            'n' => self.fill(|_| Filled::Declined, "declined"),
            _ => {}
        }
    }

    /// Enter: this field is done.
    pub(super) fn fill_field(&mut self) {
        let Some(filling) = self.filling() else {
            return;
        };
        let at = filling.sheet.at();
        match filling.take() {
            Ok(()) => self.next_field(),
            Err(why) => {
                // Unless all of it is asked for again, the line stays as it is.
                if filling.sheet.at() != at {
                    self.next_field();
                }
                self.hint(&why);
            }
        }
    }

    fn next_field(&mut self) {
        let columns = self.screen.columns();
        // What is typed has a third of the screen, and needs a row of it.
        let most = (self.screen.height().saturating_sub(1) / 3).saturating_sub(1);
        let most = most.min(ROWS);
        let Some(filling) = self.filling() else {
            return;
        };
        let Some(prompt) = filling.sheet.prompt() else {
            return self.fill(Sheet::filled, "answered");
        };
        let mut line = Editor::default();
        if let Some(before) = filling.before.get(filling.sheet.at()) {
            line.set(before.as_str());
        }
        filling.line = Some(line);
        let above = Line::new(&format!("  {prompt}"), Style::PLAIN).hanging(4);
        filling.is_above = above.all_rows(columns).len() > most;
        if filling.is_above {
            self.print(&[above]);
        }
    }

    fn filling(&mut self) -> Option<&mut Filling> {
        match &mut self.asking.as_mut()?.wants {
            Wants::Fields(filling) => Some(filling),
            Wants::Answer(_) => None,
        }
    }

    /// Says what became of the form.
    fn fill(&mut self, what: impl FnOnce(&Sheet) -> Filled, words: &str) {
        if let Some(Asking {
            wants: Wants::Fields(filling),
            ..
        }) = self.asking.take()
        {
            // Whoever asked may have gone; then there is nothing to answer.
            let _ = filling.filled.send(what(&filling.sheet));
            self.print(&[Line::new(&format!("  {words}"), Style::DIM)]);
        }
    }
}
