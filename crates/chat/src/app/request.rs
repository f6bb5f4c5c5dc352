//! A question on the screen: printed above the input line, answered with a key.

use super::form_prompt::FormPrompt;
use super::{App, Request, TerminalTask};
use crate::editor::{Direction, Editor, Unit};
use crate::external_editor::edit_arguments;
use crate::form::FormState;
use crate::question::{self, Detail, QuestionContext};
use crate::styled_text::{Line, Style};
use crate::terminal::InputReader;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use haft::{ApprovalAnswer as Answer, Question};
use serde_json::Value;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A user who typed within `TYPING` has not seen the question yet: keys are ignored until
/// they pause for `PAUSE`.
const TYPING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(500);

/// A request that waits for its answer.
pub(super) struct ActiveRequest {
    pub(super) kind: ActiveKind,
    /// Whether keys count as an answer.
    pub(super) accepts_keys: bool,
    /// Time of the last ignored key.
    last_ignored_key: Instant,
}

pub(super) enum ActiveKind {
    Approval(Box<ApprovalPrompt>),
    Form(Box<FormPrompt>),
}

/// An approval for a call.
pub(super) struct ApprovalPrompt {
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

impl ActiveRequest {
    /// Whether the request was withdrawn.
    pub(super) fn is_closed(&self) -> bool {
        match &self.kind {
            ActiveKind::Approval(approval) => approval.answer.is_closed(),
            ActiveKind::Form(form) => form.is_closed(),
        }
    }

    pub(super) async fn closed(&mut self) {
        match &mut self.kind {
            ActiveKind::Approval(approval) => approval.answer.closed().await,
            ActiveKind::Form(form) => form.closed().await,
        }
    }

    /// Whether the chat itself asks.
    fn is_own(&self) -> bool {
        matches!(&self.kind, ActiveKind::Approval(approval) if approval.question.call_id.is_empty())
    }

    /// The rows in place of the input line, and the cursor position in them.
    pub(super) fn input_rows(
        &self,
        columns: usize,
        most: usize,
        context: &QuestionContext,
    ) -> (Vec<Line>, (usize, usize)) {
        let (below, cursor) = match &self.kind {
            _ if !self.accepts_keys => {
                let words = "one moment: keys typed now do not answer this";
                (Line::new(words, Style::YELLOW).all_rows(columns), (0, 0))
            }
            ActiveKind::Approval(approval) => approval.input_rows(columns),
            ActiveKind::Form(form) => form.input_rows(columns),
        };
        let ActiveKind::Approval(approval) = &self.kind else {
            return (below, cursor);
        };
        // With the keys, never more than a third of the screen; on a tiny one what runs is
        // still shown.
        let room = most.saturating_sub(below.len()).max(2);
        let mut rows = question::summary(&approval.question, context, columns, room).lines;
        let above = rows.len();
        rows.extend(below);
        (rows, (above + cursor.0, cursor.1))
    }

    /// The line being typed, if there is one.
    fn editor(&mut self) -> Option<&mut Editor> {
        match &mut self.kind {
            ActiveKind::Approval(approval) => match &mut approval.stage {
                Stage::Keys => None,
                Stage::Reason(editor) | Stage::Arguments(editor) => Some(editor),
            },
            ActiveKind::Form(form) => form.editor(),
        }
    }

    /// Goes back from the line to the keys.
    fn back(&mut self) {
        match &mut self.kind {
            ActiveKind::Approval(approval) => approval.stage = Stage::Keys,
            ActiveKind::Form(form) => form.back(),
        }
    }
}

impl ApprovalPrompt {
    fn input_rows(&self, columns: usize) -> (Vec<Line>, (usize, usize)) {
        match &self.stage {
            Stage::Keys => (self.key_hints().all_rows(columns), (0, 0)),
            Stage::Reason(editor) => {
                prompted_line("why not (Enter: no reason) › ", editor, columns)
            }
            Stage::Arguments(editor) => {
                let words = "arguments (Enter: run with these, Esc: back) › ";
                prompted_line(words, editor, columns)
            }
        }
    }

    fn key_hints(&self) -> Line {
        let mut all = match &self.question {
            question if question.review.is_some() => vec![("k", "keep"), ("r", "revert")],
            question if question.call_id.is_empty() => vec![("y", "yes"), ("n", "no")],
            _ => vec![("y", "approve"), ("n", "reject"), ("e", "edit")],
        };
        if self.question.offers_session() {
            all.push(("s", "for\u{a0}this\u{a0}session"));
        }
        if self.question.offers_always() {
            all.push(("a", "always"));
        }
        if self.has_more {
            all.push(("v", "show\u{a0}all"));
        }
        if !self.question.call_id.is_empty() {
            all.push(("Esc", "stop"));
        }
        key_hints(&all)
    }
}

/// A line of keys with their meaning.
pub(super) fn key_hints(all: &[(&str, &str)]) -> Line {
    let mut line = Line::default();
    for (key, what) in all {
        let between = if line.is_empty() { "" } else { " · " };
        line.push(between, Style::DIM);
        line.push(key, Style::BOLD.and(Style::YELLOW));
        // Keep a key and its label in one row.
        line.push(&format!("\u{a0}{what}"), Style::PLAIN);
    }
    line
}

/// The rows of a line being typed, and the cursor position in them.
pub(super) fn prompted_line(
    prompt: &str,
    editor: &Editor,
    columns: usize,
) -> (Vec<Line>, (usize, usize)) {
    // On a narrow screen the prompt stands above.
    let words = Line::new(prompt, Style::YELLOW);
    if words.width() * 2 > columns {
        let shown = editor.view(&Line::new("› ", Style::YELLOW), columns);
        let mut rows = words.all_rows(columns);
        let above = rows.len();
        rows.extend(shown.rows);
        return (rows, (above + shown.row, shown.column));
    }
    let shown = editor.view(&words, columns);
    (shown.rows, (shown.row, shown.column))
}

impl App {
    /// Shows the next request that is due, unless one is shown already.
    pub(super) fn show_next_request(&mut self, input: &mut InputReader) -> io::Result<()> {
        if self.active.is_some() {
            return Ok(());
        }
        let transcript = &self.transcript;
        match self
            .requests
            .take(|request| transcript.is_announced(request))
        {
            Some(request) => {
                // Keys typed before the question do not answer it.
                input.forget();
                self.show_request(request)
            }
            None => Ok(()),
        }
    }

    fn show_request(&mut self, request: Request) -> io::Result<()> {
        let columns = self.screen.columns();
        match request {
            Request::Question(question, answer) => {
                let context = &self.setup.question_context;
                // With a border and one row of keys.
                let room = (self.screen.height() / 3).saturating_sub(3).max(2);
                let summary =
                    question::summary(&question, context, columns.saturating_sub(4), room);
                let call = question.call_id.clone();
                let mut question = question;
                if self.transcript.is_sub_agent_call(&call) && question.agent.is_none() {
                    question.agent = Some("a sub-agent".to_owned());
                }
                let approval = ApprovalPrompt {
                    has_more: summary.has_more || question::has_more(&question, columns),
                    question: *question,
                    answer,
                    stage: Stage::Keys,
                };
                let kind = ActiveKind::Approval(Box::new(approval));
                self.activate(kind, Vec::new(), &call, "haft waits for your approval")
            }
            Request::Form(form, filled) => match FormState::new(form) {
                Ok(form_state) => {
                    let lines = form_state.lines(columns);
                    let call = form_state.call_id().to_owned();
                    let kind = ActiveKind::Form(Box::new(FormPrompt::new(form_state, filled)));
                    self.activate(kind, lines, &call, "haft waits for your answer")
                }
                Err(why) => {
                    let _ = filled.send(haft::Filled::Declined);
                    self.note(&why, Style::YELLOW);
                    Ok(())
                }
            },
        }
    }

    /// Prints a request and waits for its answer.
    fn activate(
        &mut self,
        kind: ActiveKind,
        mut lines: Vec<Line>,
        call_id: &str,
        words: &str,
    ) -> io::Result<()> {
        if !lines.is_empty() {
            if self.transcript.is_sub_agent_call(call_id) {
                lines.push(question::fact("for", "a sub-agent"));
            }
            let lines = self.transcript.section(lines);
            self.print(&lines);
        }
        let now = Instant::now();
        let accepts_keys = self.last_key.is_none_or(|last| now > last + TYPING);
        self.menu = None;
        self.search = None;
        self.active = Some(ActiveRequest {
            kind,
            accepts_keys,
            last_ignored_key: now,
        });
        let call = self.setup.terminal.notification.sequence(words);
        self.screen.send_sequence(&call)
    }

    /// Removes a request that was withdrawn.
    pub(super) fn withdraw(&mut self) {
        self.active = None;
        self.note("the question was withdrawn", Style::DIM);
    }

    /// Handles a key while a request is shown.
    pub(super) fn answer_key(&mut self, key: KeyEvent) {
        let Some(active) = &mut self.active else {
            return;
        };
        if !active.accepts_keys {
            active.last_ignored_key = Instant::now();
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(editor) = active.editor() else {
            match key.code {
                KeyCode::Esc if self.active.as_ref().is_some_and(ActiveRequest::is_own) => {
                    self.answer(Answer::Reject { reason: None }, "no");
                }
                KeyCode::Esc => {
                    self.stop();
                }
                KeyCode::Char(letter) if !is_control => self.answer_letter(letter),
                _ => {}
            }
            return;
        };
        match key.code {
            KeyCode::Esc => active.back(),
            KeyCode::Enter => self.answer_text(),
            KeyCode::Backspace => editor.delete(Direction::Backward, Unit::Grapheme),
            KeyCode::Delete => editor.delete(Direction::Forward, Unit::Grapheme),
            KeyCode::Left => editor.move_cursor(Direction::Backward, Unit::Grapheme),
            KeyCode::Right => editor.move_cursor(Direction::Forward, Unit::Grapheme),
            KeyCode::Home => editor.move_cursor(Direction::Backward, Unit::Line),
            KeyCode::End => editor.move_cursor(Direction::Forward, Unit::Line),
            KeyCode::Char('u') if is_control => editor.delete(Direction::Backward, Unit::Line),
            KeyCode::Char('k') if is_control => editor.delete(Direction::Forward, Unit::Line),
            KeyCode::Char('w') if is_control => editor.delete(Direction::Backward, Unit::Word),
            KeyCode::Char('a') if is_control => editor.move_cursor(Direction::Backward, Unit::Line),
            KeyCode::Char('e') if is_control => editor.move_cursor(Direction::Forward, Unit::Line),
            KeyCode::Char(letter) if !is_control => editor.insert(&letter.to_string()),
            _ => {}
        }
    }

    /// Handles a paste while a request is shown: inserted into a line, never an answer.
    pub(super) fn answer_paste(&mut self, text: &str) {
        if let Some(editor) = self.active.as_mut().and_then(ActiveRequest::editor) {
            editor.insert(text);
        }
    }

    fn answer_letter(&mut self, letter: char) {
        let letter = letter.to_ascii_lowercase();
        match self.active.as_mut().map(|active| &mut active.kind) {
            Some(ActiveKind::Approval(approval)) => {
                let question = &approval.question;
                let is_own = question.call_id.is_empty();
                match letter {
                    'k' | 'y' if question.review.is_some() => self.answer(Answer::Approve, "kept"),
                    'r' | 'n' if question.review.is_some() => {
                        approval.stage = Stage::Reason(Editor::default());
                    }
                    'e' | 'a' | 's' if question.review.is_some() || is_own => {}
                    'y' if is_own => self.answer(Answer::Approve, "yes"),
                    'n' if is_own => self.answer(Answer::Reject { reason: None }, "no"),
                    'y' => self.answer(Answer::Approve, "approved"),
                    'n' => approval.stage = Stage::Reason(Editor::default()),
                    's' if question.offers_session() => {
                        self.answer(Answer::ForSession, "approved for this session");
                    }
                    'a' if question.offers_always() => {
                        let file = question.rules_file.clone().unwrap_or_default();
                        let words =
                            format!("approved always; the rule goes into {}", file.display());
                        self.answer(Answer::Always, &words);
                    }
                    'e' if self.setup.editor.is_some() => {
                        self.terminal_task = Some(TerminalTask::EditArguments);
                    }
                    'e' => {
                        let mut editor = Editor::default();
                        editor.set(question.arguments.to_string());
                        approval.stage = Stage::Arguments(editor);
                    }
                    'v' if approval.has_more => {
                        approval.has_more = false;
                        let (context, columns) =
                            (&self.setup.question_context, self.screen.columns());
                        let lines =
                            question::question_lines(question, context, Detail::Full, columns);
                        let lines = self.transcript.section(lines);
                        self.print(&lines);
                    }
                    _ => {}
                }
            }
            Some(ActiveKind::Form(_)) => self.fill_letter(letter),
            None => {}
        }
    }

    fn answer_text(&mut self) {
        match self.active.as_mut().map(|active| &mut active.kind) {
            Some(ActiveKind::Approval(approval)) => match &mut approval.stage {
                Stage::Keys => {}
                Stage::Reason(editor) => {
                    let reason = editor.take().trim().to_owned();
                    let reason = Some(reason).filter(|reason| !reason.is_empty());
                    let words = match approval.question.review {
                        Some(_) => "reverted",
                        None => "rejected",
                    };
                    self.answer(Answer::Reject { reason }, words);
                }
                Stage::Arguments(editor) => match serde_json::from_str(editor.text()) {
                    Ok(arguments @ Value::Object(_)) => self.answer_with(arguments),
                    Ok(_) => self.hint("not a JSON object"),
                    Err(error) => self.hint(&format!("not valid JSON: {error}")),
                },
            },
            Some(ActiveKind::Form(_)) => self.fill_field(),
            None => {}
        }
    }

    fn answer_with(&mut self, arguments: Value) {
        self.answer(
            Answer::ApproveWith { arguments },
            "approved with other arguments",
        );
    }

    /// Opens the arguments in the user's editor, which takes over the terminal.
    pub(super) fn edit_arguments(&mut self) {
        let kind = self.active.as_ref().map(|active| &active.kind);
        let (Some(ActiveKind::Approval(approval)), Some(editor)) = (kind, &self.setup.editor)
        else {
            return;
        };
        let arguments = &approval.question.arguments;
        match edit_arguments(editor, self.setup.scratch_folder.as_deref(), arguments) {
            Ok(arguments) => self.answer_with(arguments),
            Err(why) => self.hint(&why),
        }
    }

    fn answer(&mut self, answer: Answer, words: &str) {
        if let Some(ActiveRequest {
            kind: ActiveKind::Approval(approval),
            ..
        }) = self.active.take()
        {
            // Fails if the request was withdrawn.
            let _ = approval.answer.send(answer);
            let subject = question::subject(&approval.question);
            let line = Line::new(&format!("{words}: "), Style::DIM).and(&subject, Style::DIM);
            let line = line.truncated(self.screen.columns());
            let lines = self.transcript.section(vec![line]);
            self.print(&lines);
        }
    }

    /// Accepts keys as an answer once the user has paused.
    pub(super) fn accept_keys_after_pause(&mut self) {
        if let Some(active) = &mut self.active
            && !active.accepts_keys
            && Instant::now() > active.last_ignored_key + PAUSE
        {
            active.accepts_keys = true;
        }
    }
}
