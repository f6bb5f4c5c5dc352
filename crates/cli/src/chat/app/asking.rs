//! A question on the screen: shown above, answered by a key.

use super::{App, Asked, Errand};
use crate::chat::editor::{Editor, Reach, Way};
use crate::chat::ink::{Line, Style};
use crate::chat::outside::edited;
use crate::chat::question::{self, Extent};
use crate::chat::terminal::Input;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft::Answer;
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};

/// Who typed a moment ago has not seen the question: their keys answer nothing until
/// they have paused.
const TYPING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(500);

/// A question that waits for its answer.
pub(super) struct Asking {
    asked: Asked,
    stage: Stage,
    has_more: bool,
    /// Whether keys answer it.
    pub(super) is_armed: bool,
    /// The last key that did not.
    quiet: Instant,
}

enum Stage {
    Keys,
    Reason(Editor),
    Arguments(Editor),
}

impl Asking {
    pub(super) async fn closed(&mut self) {
        self.asked.answer.closed().await;
    }

    /// The rows in place of the input line, and where the cursor stands in them.
    pub(super) fn entry(&self, columns: usize, whole: usize) -> (Vec<Line>, (usize, usize)) {
        let (prompt, editor) = match &self.stage {
            Stage::Keys => return (self.keys().all_rows(whole), (0, 0)),
            Stage::Reason(editor) => ("why not (Enter: no reason) › ", editor),
            Stage::Arguments(editor) => ("arguments (Enter: run with these, Esc: back) › ", editor),
        };
        // On a narrow screen the words stand above.
        let words = Line::new(prompt, Style::YELLOW);
        if words.width() * 2 > columns {
            let shown = editor.shown(&Line::new("› ", Style::YELLOW), columns);
            let mut rows = words.all_rows(columns);
            let above = rows.len();
            rows.extend(shown.rows);
            return (rows, (above + shown.row, shown.column));
        }
        let shown = editor.shown(&words, columns);
        (shown.rows, (shown.row, shown.column))
    }

    fn keys(&self) -> Line {
        if !self.is_armed {
            let words = "one moment: what you are typing is no answer";
            return Line::new(words, Style::YELLOW);
        }
        let mut line = Line::default();
        let mut key = |key: &str, what: &str| {
            let between = if line.is_empty() { "" } else { " · " };
            line.push(between, Style::DIM);
            line.push(key, Style::BOLD.and(Style::YELLOW));
            // A key and its word stay in one row.
            line.push(&format!("\u{a0}{what}"), Style::PLAIN);
        };
        key("y", "approve");
        key("n", "reject");
        key("e", "edit");
        if let Some(rule) = &self.asked.question.suggestion {
            key("a", &format!("always {rule}"));
        }
        if self.has_more {
            key("v", "show\u{a0}all");
        }
        key("Esc", "stop");
        line
    }
}

impl App {
    /// Shows the next question, if none is shown and it is its turn.
    pub(super) fn ask_next(&mut self, input: &mut Input) -> io::Result<()> {
        if self.asking.is_some() {
            return Ok(());
        }
        let transcript = &self.transcript;
        match self.waiting.take(|call| transcript.is_asked(call)) {
            Some(asked) => {
                // What was typed before it is no answer to it.
                input.forget();
                self.asked(asked)
            }
            None => Ok(()),
        }
    }

    fn asked(&mut self, asked: Asked) -> io::Result<()> {
        let columns = self.screen.columns();
        let mut lines =
            question::lines(&asked.question, &self.setup.around, Extent::Usual, columns);
        if self.transcript.is_childs(&asked.question.call_id) {
            lines.push(question::fact("for", "a sub-agent"));
        }
        let lines = self.transcript.beside(lines);
        self.print(&lines);
        let now = Instant::now();
        let is_armed = self.last_key.is_none_or(|last| now > last + TYPING);
        self.choosing = None;
        self.searching = None;
        self.asking = Some(Asking {
            has_more: question::has_more(&asked.question, columns),
            asked,
            stage: Stage::Keys,
            is_armed,
            quiet: now,
        });
        let call = self
            .setup
            .look
            .call
            .sequence("haft waits for your approval");
        self.screen.signal(&call)
    }

    /// Nobody wants to know any more.
    pub(super) fn unasked(&mut self) {
        self.asking = None;
        self.note("the question was withdrawn", Style::DIM);
    }

    /// A key while a question waits.
    pub(super) fn answer_key(&mut self, key: KeyEvent) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        if !asking.is_armed {
            asking.quiet = Instant::now();
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match &mut asking.stage {
            Stage::Keys => match key.code {
                KeyCode::Esc => {
                    self.stop();
                }
                KeyCode::Char(letter) if !is_control => self.answer_letter(letter),
                _ => {}
            },
            Stage::Reason(editor) | Stage::Arguments(editor) => match key.code {
                KeyCode::Esc => asking.stage = Stage::Keys,
                KeyCode::Enter => self.answer_text(),
                KeyCode::Backspace => editor.delete(Way::Back, Reach::Cluster),
                KeyCode::Delete => editor.delete(Way::Forth, Reach::Cluster),
                KeyCode::Left => editor.go(Way::Back, Reach::Cluster),
                KeyCode::Right => editor.go(Way::Forth, Reach::Cluster),
                KeyCode::Home => editor.go(Way::Back, Reach::Line),
                KeyCode::End => editor.go(Way::Forth, Reach::Line),
                KeyCode::Char('u') if is_control => editor.delete(Way::Back, Reach::Line),
                KeyCode::Char('k') if is_control => editor.delete(Way::Forth, Reach::Line),
                KeyCode::Char('w') if is_control => editor.delete(Way::Back, Reach::Word),
                KeyCode::Char('a') if is_control => editor.go(Way::Back, Reach::Line),
                KeyCode::Char('e') if is_control => editor.go(Way::Forth, Reach::Line),
                KeyCode::Char(letter) if !is_control => editor.insert(&letter.to_string()),
                _ => {}
            },
        }
    }

    /// A paste while a question waits: words for a line, never an answer.
    pub(super) fn answer_paste(&mut self, text: &str) {
        if let Some(asking) = &mut self.asking
            && let Stage::Reason(editor) | Stage::Arguments(editor) = &mut asking.stage
        {
            editor.insert(text);
        }
    }

    fn answer_letter(&mut self, letter: char) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        let question = &asking.asked.question;
        match letter.to_ascii_lowercase() {
            'y' => self.answer(Answer::Approve, "approved"),
            'n' => asking.stage = Stage::Reason(Editor::default()),
            'a' if question.suggestion.is_some() => {
                self.answer(Answer::Always, "approved, and from now on in this session");
            }
            'e' if self.setup.editor.is_some() => self.errand = Some(Errand::EditArguments),
            'e' => {
                let mut editor = Editor::default();
                editor.set(question.arguments.to_string());
                asking.stage = Stage::Arguments(editor);
            }
            'v' if asking.has_more => {
                asking.has_more = false;
                let columns = self.screen.columns();
                let lines = question::lines(question, &self.setup.around, Extent::Whole, columns);
                self.print(&lines);
            }
            _ => {}
        }
    }

    fn answer_text(&mut self) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        match &mut asking.stage {
            Stage::Keys => {}
            Stage::Reason(editor) => {
                let reason = editor.take().trim().to_owned();
                let reason = Some(reason).filter(|reason| !reason.is_empty());
                self.answer(Answer::Reject { reason }, "rejected");
            }
            Stage::Arguments(editor) => match serde_json::from_str(editor.text()) {
                Ok(arguments @ Value::Object(_)) => self.answer_with(arguments),
                Ok(_) => self.hint("that is no JSON object"),
                Err(error) => self.hint(&format!("that is no JSON: {error}")),
            },
        }
    }

    fn answer_with(&mut self, arguments: Value) {
        self.answer(
            Answer::ApproveWith { arguments },
            "approved with other arguments",
        );
    }

    /// The person's editor has the arguments, and the terminal.
    pub(super) fn edit_arguments(&mut self) {
        let (Some(asking), Some(editor)) = (&self.asking, &self.setup.editor) else {
            return;
        };
        let arguments = &asking.asked.question.arguments;
        match edited(editor, self.setup.scratch.as_deref(), arguments) {
            Ok(arguments) => self.answer_with(arguments),
            Err(why) => self.hint(&why),
        }
    }

    fn answer(&mut self, answer: Answer, words: &str) {
        if let Some(asking) = self.asking.take() {
            // Whoever asked may have gone; then there is nothing to answer.
            let _ = asking.asked.answer.send(answer);
            let line = Line::new(&format!("  {words}"), Style::DIM);
            self.print(&[line]);
        }
    }

    /// Keys answer from now on, if the person has paused.
    pub(super) fn arm(&mut self) {
        if let Some(asking) = &mut self.asking
            && !asking.is_armed
            && Instant::now() > asking.quiet + PAUSE
        {
            asking.is_armed = true;
        }
    }
}
