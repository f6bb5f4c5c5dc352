//! Key bindings of the input line.

use super::{App, EndReason, HistorySearch, TerminalTask};
use crate::editor::{Direction, Unit};
use crate::external_editor::edit_text;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Instant;

impl App {
    /// Handles input from the terminal.
    pub(super) fn input(&mut self, at: Instant, event: Event) {
        if self.late_answer.takes(&event) {
            return;
        }
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.key(key);
                self.last_key = Some(at);
            }
            Event::Paste(text) if self.active.is_some() => self.answer_paste(&text),
            Event::Paste(text) => {
                self.search = None;
                self.history.stop_browsing();
                let text = self.pastes.fold(&text);
                self.editor.insert(&text);
                self.refresh_menu();
            }
            _ => {}
        }
    }

    fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return self.interrupt(),
            KeyCode::Char('z') if control => {
                self.terminal_task = Some(TerminalTask::Suspend);
                return;
            }
            KeyCode::Char('l') if control => return self.screen.clear_all(),
            _ => {}
        }
        self.interrupted = None;
        if key.code != KeyCode::Esc {
            self.escaped = None;
        }
        if self.active.is_some() {
            self.answer_key(key);
        } else if self.search.is_some() {
            self.search_key(key);
        } else if !self.menu_key(key) {
            if control {
                self.control_key(key.code);
            } else if key.modifiers.contains(KeyModifiers::ALT) {
                self.alt_key(key.code);
            } else {
                self.plain_key(key);
            }
            self.refresh_menu();
        }
    }

    fn plain_key(&mut self, key: KeyEvent) {
        let is_vertical = matches!(key.code, KeyCode::Up | KeyCode::Down);
        if !is_vertical {
            self.history.stop_browsing();
        }
        match key.code {
            KeyCode::Char(letter) => self.editor.insert(&letter.to_string()),
            KeyCode::Enter if self.editor.before_cursor().ends_with('\\') => {
                self.editor.delete(Direction::Backward, Unit::Grapheme);
                self.editor.insert("\n");
            }
            KeyCode::Enter => self.submit(),
            KeyCode::Backspace => match self.pastes.label_before(self.editor.before_cursor()) {
                Some(length) => self.editor.delete_before(length),
                None => self.editor.delete(Direction::Backward, Unit::Grapheme),
            },
            KeyCode::Delete => self.editor.delete(Direction::Forward, Unit::Grapheme),
            KeyCode::Left => self.editor.move_cursor(Direction::Backward, Unit::Grapheme),
            KeyCode::Right => self.editor.move_cursor(Direction::Forward, Unit::Grapheme),
            KeyCode::Home => self.editor.move_cursor(Direction::Backward, Unit::Line),
            KeyCode::End => self.editor.move_cursor(Direction::Forward, Unit::Line),
            KeyCode::Up => self.move_or_browse(Direction::Backward),
            KeyCode::Down => self.move_or_browse(Direction::Forward),
            KeyCode::Tab => self.complete_word(),
            KeyCode::Esc if self.editor.is_empty() => self.stop_or_go_back(),
            _ => {}
        }
    }

    fn control_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('a') => self.editor.move_cursor(Direction::Backward, Unit::Line),
            KeyCode::Char('e') => self.editor.move_cursor(Direction::Forward, Unit::Line),
            KeyCode::Char('b') => self.editor.move_cursor(Direction::Backward, Unit::Grapheme),
            KeyCode::Char('f') => self.editor.move_cursor(Direction::Forward, Unit::Grapheme),
            KeyCode::Left => self.editor.move_cursor(Direction::Backward, Unit::Word),
            KeyCode::Right => self.editor.move_cursor(Direction::Forward, Unit::Word),
            KeyCode::Char('u') => self.editor.delete(Direction::Backward, Unit::Line),
            KeyCode::Char('k') => self.editor.delete(Direction::Forward, Unit::Line),
            KeyCode::Char('w') | KeyCode::Backspace => {
                self.editor.delete(Direction::Backward, Unit::Word)
            }
            KeyCode::Char('h') => self.editor.delete(Direction::Backward, Unit::Grapheme),
            KeyCode::Char('y') => self.editor.yank(),
            KeyCode::Char('p') => self.move_or_browse(Direction::Backward),
            KeyCode::Char('n') => self.move_or_browse(Direction::Forward),
            KeyCode::Char('j') => self.editor.insert("\n"),
            KeyCode::Char('d') if self.editor.is_empty() => self.end_reason = Some(EndReason::Quit),
            KeyCode::Char('d') => self.editor.delete(Direction::Forward, Unit::Grapheme),
            KeyCode::Char('o') => match self.transcript.last_call_lines() {
                Some(lines) => self.section(lines),
                None => self.hint("no calls yet"),
            },
            KeyCode::Char('t') => match self.transcript.last_reasoning_lines() {
                Some(lines) => self.section(lines),
                None => self.hint("the model has not shown what it thinks"),
            },
            KeyCode::Char('g') if self.setup.editor.is_some() => {
                self.terminal_task = Some(TerminalTask::EditMessage);
            }
            KeyCode::Char('g') => self.hint("set EDITOR to write the message in an editor"),
            KeyCode::Char('r') => {
                let text = self.editor.text().to_owned();
                self.search = Some(HistorySearch { text, skip: 0 });
            }
            _ => {}
        }
    }

    fn alt_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.editor.insert("\n"),
            KeyCode::Char('b') | KeyCode::Left => {
                self.editor.move_cursor(Direction::Backward, Unit::Word)
            }
            KeyCode::Char('f') | KeyCode::Right => {
                self.editor.move_cursor(Direction::Forward, Unit::Word)
            }
            KeyCode::Char('d') => self.editor.delete(Direction::Forward, Unit::Word),
            KeyCode::Backspace => self.editor.delete(Direction::Backward, Unit::Word),
            _ => {}
        }
    }

    /// Lets the user write the message in their editor.
    pub(super) fn edit_message(&mut self) {
        let editor = self.setup.editor.as_deref().unwrap_or_default();
        let folder = self.setup.scratch_folder.as_deref();
        let text = self.pastes.unfold(self.editor.text());
        match edit_text(editor, folder, ".md", &text) {
            Ok(text) => self.editor.set(text.trim_end()),
            Err(message) => {
                self.editor.set(text);
                self.hint(&message);
            }
        }
    }

    /// Up and down: moves in the text first, then in the history.
    fn move_or_browse(&mut self, direction: Direction) {
        if self.editor.move_line(direction) {
            return;
        }
        let typed = self.editor.text().to_owned();
        let found = match direction {
            Direction::Backward => self.history.older(&typed),
            Direction::Forward => self.history.newer(&typed),
        };
        if let Some(text) = found {
            self.editor.set(text);
        }
    }

    fn search_key(&mut self, key: KeyEvent) {
        let Some(search) = &mut self.search else {
            return;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let next = self.history.search(&search.text, search.skip + 1);
                search.skip += usize::from(next.is_some());
            }
            KeyCode::Char('g') if control => self.search = None,
            KeyCode::Esc => self.search = None,
            KeyCode::Backspace => {
                search.text.pop();
                search.skip = 0;
            }
            KeyCode::Char(letter) if !control => {
                search.text.push(letter);
                search.skip = 0;
            }
            // Any other key accepts the match and is handled as usual.
            _ => {
                let found = self.history.search(&search.text, search.skip);
                if let Some(found) = found.map(str::to_owned) {
                    self.editor.set(found);
                }
                self.search = None;
                if key.code != KeyCode::Enter {
                    self.key(key);
                }
            }
        }
    }
}
