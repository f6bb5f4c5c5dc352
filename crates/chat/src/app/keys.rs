//! Key bindings of the input line.

use super::{App, CompletionMenu, EndReason, HistorySearch, TaskResult, TerminalTask};
use crate::complete::{self, CompletionTarget, Completions};
use crate::editor::{Direction, Unit};
use crate::slash::COMMANDS;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Instant;

impl App {
    /// Handles input from the terminal.
    pub(super) fn input(&mut self, at: Instant, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.key(key);
                self.last_key = Some(at);
            }
            Event::Paste(text) if self.active.is_some() => self.answer_paste(&text),
            Event::Paste(text) => {
                self.search = None;
                self.completion = None;
                self.history.stop_browsing();
                self.editor.insert(&text);
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
        if self.active.is_some() {
            self.answer_key(key);
        } else if self.search.is_some() {
            self.search_key(key);
        } else if control {
            self.control_key(key.code);
        } else if key.modifiers.contains(KeyModifiers::ALT) {
            self.alt_key(key.code);
        } else {
            self.plain_key(key);
        }
    }

    fn plain_key(&mut self, key: KeyEvent) {
        let is_vertical = matches!(key.code, KeyCode::Up | KeyCode::Down);
        let is_tab = matches!(key.code, KeyCode::Tab | KeyCode::BackTab);
        if !is_vertical {
            self.history.stop_browsing();
        }
        if !is_tab && self.completion.take().is_some() && key.code == KeyCode::Enter {
            // Enter accepts the completion; a second Enter sends the input.
            return;
        }
        match key.code {
            KeyCode::Char(letter) => self.editor.insert(&letter.to_string()),
            KeyCode::Enter if self.editor.before_cursor().ends_with('\\') => {
                self.editor.delete(Direction::Backward, Unit::Grapheme);
                self.editor.insert("\n");
            }
            KeyCode::Enter => self.submit(),
            KeyCode::Backspace => self.editor.delete(Direction::Backward, Unit::Grapheme),
            KeyCode::Delete => self.editor.delete(Direction::Forward, Unit::Grapheme),
            KeyCode::Left => self.editor.move_cursor(Direction::Backward, Unit::Grapheme),
            KeyCode::Right => self.editor.move_cursor(Direction::Forward, Unit::Grapheme),
            KeyCode::Home => self.editor.move_cursor(Direction::Backward, Unit::Line),
            KeyCode::End => self.editor.move_cursor(Direction::Forward, Unit::Line),
            KeyCode::Up => self.move_or_browse(Direction::Backward),
            KeyCode::Down => self.move_or_browse(Direction::Forward),
            KeyCode::Tab => self.complete_word(Direction::Forward),
            KeyCode::BackTab => self.complete_word(Direction::Backward),
            KeyCode::Esc if self.editor.is_empty() => {
                self.stop();
            }
            _ => {}
        }
    }

    fn control_key(&mut self, code: KeyCode) {
        self.completion = None;
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
                Some(lines) => {
                    let lines = self.transcript.section(lines);
                    self.print(&lines);
                }
                None => self.hint("no calls yet"),
            },
            KeyCode::Char('r') => {
                let text = self.editor.text().to_owned();
                self.search = Some(HistorySearch { text, skip: 0 });
            }
            _ => {}
        }
    }

    fn alt_key(&mut self, code: KeyCode) {
        self.completion = None;
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

    /// Tab: completes the word before the cursor, or cycles through the completions.
    fn complete_word(&mut self, direction: Direction) {
        if let Some(completion) = &mut self.completion {
            let count = completion.completions.choices.len();
            completion.selected = match direction {
                Direction::Forward => (completion.selected + 1) % count.max(1),
                Direction::Backward => {
                    (completion.selected + count.saturating_sub(1)) % count.max(1)
                }
            };
            return self.insert_choice();
        }
        match CompletionTarget::of(self.editor.before_cursor()) {
            Some(CompletionTarget::Command(typed)) => {
                let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
                let choices = names.filter(|name| name.starts_with(&typed)).collect();
                self.show_completions(Completions { start: 0, choices });
            }
            Some(CompletionTarget::File { start, letters }) => {
                let Some(folder) = self.driver.work_folder() else {
                    return;
                };
                let results = self.task_sender.clone();
                tokio::spawn(async move {
                    let completions = complete::files(folder, start, letters).await;
                    let _ = results.send(TaskResult::Completions(completions));
                });
            }
            None => {}
        }
    }

    /// Shows completions, unless the user has typed on since.
    pub(super) fn show_completions(&mut self, completions: Completions) {
        let still = match CompletionTarget::of(self.editor.before_cursor()) {
            Some(CompletionTarget::Command(_)) => completions.start == 0,
            Some(CompletionTarget::File { start, .. }) => completions.start == start,
            None => false,
        };
        if !still {
            return;
        }
        let count = completions.choices.len();
        if count == 0 {
            return self.hint("no completions");
        }
        self.completion = Some(CompletionMenu {
            completions,
            selected: 0,
        });
        self.insert_choice();
        if count == 1 {
            self.completion = None;
        }
    }

    fn insert_choice(&mut self) {
        let Some(completion) = &self.completion else {
            return;
        };
        if let Some(choice) = completion.completions.choices.get(completion.selected) {
            self.editor
                .replace_before(completion.completions.start, choice);
        }
    }
}
