//! A question on the screen: shown above, answered by a key.

use super::filling::Filling;
use super::{App, Asked, Errand};
use crate::chat::editor::{Editor, Reach, Way};
use crate::chat::form::Sheet;
use crate::chat::ink::{Line, Style};
use crate::chat::outside::edited;
use crate::chat::question::{self, Extent};
use crate::chat::terminal::Input;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft::{Answer, Question};
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Who typed a moment ago has not seen the question: their keys answer nothing until
/// they have paused.
const TYPING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(500);

/// Something that waits for its answer.
pub(super) struct Asking {
    pub(super) wants: Wants,
    /// Whether keys answer it.
    pub(super) is_armed: bool,
    /// The last key that did not.
    quiet: Instant,
}

pub(super) enum Wants {
    Answer(Box<Deciding>),
    Fields(Box<Filling>),
}

/// A question about a call.
pub(super) struct Deciding {
    question: Question,
    answer: oneshot::Sender<Answer>,
    stage: Stage,
    has_more: bool,
}

enum Stage {
    Keys,
    Reason(Editor),
    Arguments(Editor),
}

impl Asking {
    /// Whether nobody wants to know any more.
    pub(super) fn is_closed(&self) -> bool {
        match &self.wants {
            Wants::Answer(deciding) => deciding.answer.is_closed(),
            Wants::Fields(filling) => filling.is_closed(),
        }
    }

    pub(super) async fn closed(&mut self) {
        match &mut self.wants {
            Wants::Answer(deciding) => deciding.answer.closed().await,
            Wants::Fields(filling) => filling.closed().await,
        }
    }

    /// The rows in place of the input line, and where the cursor stands in them.
    pub(super) fn entry(&self, columns: usize, whole: usize) -> (Vec<Line>, (usize, usize)) {
        if !self.is_armed {
            let words = "one moment: what you are typing is no answer";
            let line = Line::new(words, Style::YELLOW);
            return (line.all_rows(whole), (0, 0));
        }
        match &self.wants {
            Wants::Answer(deciding) => deciding.entry(columns, whole),
            Wants::Fields(filling) => filling.entry(columns, whole),
        }
    }

    /// The line that is typed, where one is.
    fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.wants {
            Wants::Answer(deciding) => match &mut deciding.stage {
                Stage::Keys => None,
                Stage::Reason(editor) | Stage::Arguments(editor) => Some(editor),
            },
            Wants::Fields(filling) => filling.editor(),
        }
    }

    /// Back from the line to the keys.
    fn back(&mut self) {
        match &mut self.wants {
            Wants::Answer(deciding) => deciding.stage = Stage::Keys,
            Wants::Fields(filling) => filling.back(),
        }
    }
}

impl Deciding {
    fn entry(&self, columns: usize, whole: usize) -> (Vec<Line>, (usize, usize)) {
        match &self.stage {
            Stage::Keys => (self.keys().all_rows(whole), (0, 0)),
            Stage::Reason(editor) => typed("why not (Enter: no reason) › ", editor, columns),
            Stage::Arguments(editor) => {
                let words = "arguments (Enter: run with these, Esc: back) › ";
                typed(words, editor, columns)
            }
        }
    }

    fn keys(&self) -> Line {
        let mut all = vec![("y", "approve"), ("n", "reject"), ("e", "edit")];
        let always = self.question.suggestion.as_ref();
        let always = always.map(|rule| format!("always {rule}"));
        all.extend(always.as_deref().map(|always| ("a", always)));
        if self.has_more {
            all.push(("v", "show\u{a0}all"));
        }
        all.push(("Esc", "stop"));
        keys(&all)
    }
}

/// Keys, each with what it does.
pub(super) fn keys(all: &[(&str, &str)]) -> Line {
    let mut line = Line::default();
    for (key, what) in all {
        let between = if line.is_empty() { "" } else { " · " };
        line.push(between, Style::DIM);
        line.push(key, Style::BOLD.and(Style::YELLOW));
        // A key and its word stay in one row.
        line.push(&format!("\u{a0}{what}"), Style::PLAIN);
    }
    line
}

/// The rows of a line that is typed, and where the cursor stands in them.
pub(super) fn typed(prompt: &str, editor: &Editor, columns: usize) -> (Vec<Line>, (usize, usize)) {
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

impl App {
    /// Shows the next question, if none is shown and it is its turn.
    pub(super) fn ask_next(&mut self, input: &mut Input) -> io::Result<()> {
        if self.asking.is_some() {
            return Ok(());
        }
        let transcript = &self.transcript;
        match self.waiting.take(|asked| transcript.is_asked(asked)) {
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
        match asked {
            Asked::Question(question, answer) => {
                let around = &self.setup.around;
                let lines = question::lines(&question, around, Extent::Usual, columns);
                let call = question.call_id.clone();
                let deciding = Deciding {
                    has_more: question::has_more(&question, columns),
                    question,
                    answer,
                    stage: Stage::Keys,
                };
                let wants = Wants::Answer(Box::new(deciding));
                self.wait_for(wants, lines, &call, "haft waits for your approval")
            }
            Asked::Form(form, filled) => match Sheet::new(form) {
                Ok(sheet) => {
                    let lines = sheet.lines(columns);
                    let call = sheet.call_id().to_owned();
                    let wants = Wants::Fields(Box::new(Filling::new(sheet, filled)));
                    self.wait_for(wants, lines, &call, "haft waits for your answer")
                }
                Err(why) => {
                    let _ = filled.send(haft::Filled::Declined);
                    self.note(&why, Style::YELLOW);
                    Ok(())
                }
            },
        }
    }

    fn wait_for(
        &mut self,
        wants: Wants,
        mut lines: Vec<Line>,
        call_id: &str,
        words: &str,
    ) -> io::Result<()> {
        if self.transcript.is_childs(call_id) {
            lines.push(question::fact("for", "a sub-agent"));
        }
        let lines = self.transcript.beside(lines);
        self.print(&lines);
        let now = Instant::now();
        let is_armed = self.last_key.is_none_or(|last| now > last + TYPING);
        self.choosing = None;
        self.searching = None;
        self.asking = Some(Asking {
            wants,
            is_armed,
            quiet: now,
        });
        let call = self.setup.look.call.sequence(words);
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
        let Some(editor) = asking.editor() else {
            match key.code {
                KeyCode::Esc => {
                    self.stop();
                }
                KeyCode::Char(letter) if !is_control => self.answer_letter(letter),
                _ => {}
            }
            return;
        };
        match key.code {
            KeyCode::Esc => asking.back(),
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
        }
    }

    /// A paste while a question waits: words for a line, never an answer.
    pub(super) fn answer_paste(&mut self, text: &str) {
        if let Some(editor) = self.asking.as_mut().and_then(Asking::editor) {
            editor.insert(text);
        }
    }

    fn answer_letter(&mut self, letter: char) {
        let letter = letter.to_ascii_lowercase();
        match self.asking.as_mut().map(|asking| &mut asking.wants) {
            Some(Wants::Answer(deciding)) => {
                let question = &deciding.question;
                match letter {
                    'y' => self.answer(Answer::Approve, "approved"),
                    'n' => deciding.stage = Stage::Reason(Editor::default()),
                    'a' if question.suggestion.is_some() => {
                        self.answer(Answer::Always, "approved, and from now on in this session");
                    }
                    'e' if self.setup.editor.is_some() => {
                        self.errand = Some(Errand::EditArguments);
                    }
                    'e' => {
                        let mut editor = Editor::default();
                        editor.set(question.arguments.to_string());
                        deciding.stage = Stage::Arguments(editor);
                    }
                    'v' if deciding.has_more => {
                        deciding.has_more = false;
                        let (around, columns) = (&self.setup.around, self.screen.columns());
                        let lines = question::lines(question, around, Extent::Whole, columns);
                        self.print(&lines);
                    }
                    _ => {}
                }
            }
            Some(Wants::Fields(_)) => self.fill_letter(letter),
            None => {}
        }
    }

    fn answer_text(&mut self) {
        match self.asking.as_mut().map(|asking| &mut asking.wants) {
            Some(Wants::Answer(deciding)) => match &mut deciding.stage {
                Stage::Keys => {}
                Stage::Reason(editor) => {
                    let reason = editor.take().trim().to_owned();
                    let reason = Some(reason).filter(|reason| !reason.is_empty());
                    self.answer(Answer::Reject { reason }, "rejected");
                }
                Stage::Arguments(editor) => match serde_json::from_str(editor.text()) {
                    Ok(arguments @ Value::Object(_)) => self.answer_with(arguments),
                    Ok(_) => self.hint("not a JSON object"),
                    Err(error) => self.hint(&format!("not valid JSON: {error}")),
                },
            },
            Some(Wants::Fields(_)) => self.fill_field(),
            None => {}
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
        let wants = self.asking.as_ref().map(|asking| &asking.wants);
        let (Some(Wants::Answer(deciding)), Some(editor)) = (wants, &self.setup.editor) else {
            return;
        };
        let arguments = &deciding.question.arguments;
        match edited(editor, self.setup.scratch.as_deref(), arguments) {
            Ok(arguments) => self.answer_with(arguments),
            Err(why) => self.hint(&why),
        }
    }

    fn answer(&mut self, answer: Answer, words: &str) {
        if let Some(Asking {
            wants: Wants::Answer(deciding),
            ..
        }) = self.asking.take()
        {
            // Whoever asked may have gone; then there is nothing to answer.
            let _ = deciding.answer.send(answer);
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
