//! Keys: what each does to what is typed.

use super::{App, Choosing, Done, Ended, Errand, Searching};
use crate::chat::complete::{self, Offer, Wanted};
use crate::chat::editor::{Reach, Way};
use crate::chat::slash::COMMANDS;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::Instant;

impl App {
    /// Something came from the terminal.
    pub(super) fn input(&mut self, at: Instant, event: Event) {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.key(key);
                self.last_key = Some(at);
            }
            Event::Paste(text) if self.asking.is_some() => self.answer_paste(&text),
            Event::Paste(text) => {
                self.searching = None;
                self.choosing = None;
                self.history.leave();
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
                self.errand = Some(Errand::Suspend);
                return;
            }
            KeyCode::Char('l') if control => return self.screen.wipe(),
            _ => {}
        }
        self.interrupted = None;
        if self.asking.is_some() {
            self.answer_key(key);
        } else if self.searching.is_some() {
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
        let looking = matches!(key.code, KeyCode::Up | KeyCode::Down);
        let choosing = matches!(key.code, KeyCode::Tab | KeyCode::BackTab);
        if !looking {
            self.history.leave();
        }
        if !choosing && self.choosing.take().is_some() && key.code == KeyCode::Enter {
            // What was chosen stays; a second Enter sends it.
            return;
        }
        match key.code {
            KeyCode::Char(letter) => self.editor.insert(&letter.to_string()),
            KeyCode::Enter if self.editor.before().ends_with('\\') => {
                self.editor.delete(Way::Back, Reach::Cluster);
                self.editor.insert("\n");
            }
            KeyCode::Enter => self.submit(),
            KeyCode::Backspace => self.editor.delete(Way::Back, Reach::Cluster),
            KeyCode::Delete => self.editor.delete(Way::Forth, Reach::Cluster),
            KeyCode::Left => self.editor.go(Way::Back, Reach::Cluster),
            KeyCode::Right => self.editor.go(Way::Forth, Reach::Cluster),
            KeyCode::Home => self.editor.go(Way::Back, Reach::Line),
            KeyCode::End => self.editor.go(Way::Forth, Reach::Line),
            KeyCode::Up => self.look(Way::Back),
            KeyCode::Down => self.look(Way::Forth),
            KeyCode::Tab => self.choose(Way::Forth),
            KeyCode::BackTab => self.choose(Way::Back),
            KeyCode::Esc if self.editor.is_empty() => {
                self.stop();
            }
            _ => {}
        }
    }

    fn control_key(&mut self, code: KeyCode) {
        self.choosing = None;
        match code {
            KeyCode::Char('a') => self.editor.go(Way::Back, Reach::Line),
            KeyCode::Char('e') => self.editor.go(Way::Forth, Reach::Line),
            KeyCode::Char('b') => self.editor.go(Way::Back, Reach::Cluster),
            KeyCode::Char('f') => self.editor.go(Way::Forth, Reach::Cluster),
            KeyCode::Left => self.editor.go(Way::Back, Reach::Word),
            KeyCode::Right => self.editor.go(Way::Forth, Reach::Word),
            KeyCode::Char('u') => self.editor.delete(Way::Back, Reach::Line),
            KeyCode::Char('k') => self.editor.delete(Way::Forth, Reach::Line),
            KeyCode::Char('w') | KeyCode::Backspace => self.editor.delete(Way::Back, Reach::Word),
            KeyCode::Char('h') => self.editor.delete(Way::Back, Reach::Cluster),
            KeyCode::Char('y') => self.editor.put_back(),
            KeyCode::Char('p') => self.look(Way::Back),
            KeyCode::Char('n') => self.look(Way::Forth),
            KeyCode::Char('j') => self.editor.insert("\n"),
            KeyCode::Char('d') if self.editor.is_empty() => self.ended = Some(Ended::Quit),
            KeyCode::Char('d') => self.editor.delete(Way::Forth, Reach::Cluster),
            KeyCode::Char('o') => match self.transcript.whole() {
                Some(lines) => {
                    let lines = self.transcript.beside(lines);
                    self.print(&lines);
                }
                None => self.hint("nothing was called yet"),
            },
            KeyCode::Char('r') => {
                let text = self.editor.text().to_owned();
                self.searching = Some(Searching { text, skip: 0 });
            }
            _ => {}
        }
    }

    fn alt_key(&mut self, code: KeyCode) {
        self.choosing = None;
        match code {
            KeyCode::Enter => self.editor.insert("\n"),
            KeyCode::Char('b') | KeyCode::Left => self.editor.go(Way::Back, Reach::Word),
            KeyCode::Char('f') | KeyCode::Right => self.editor.go(Way::Forth, Reach::Word),
            KeyCode::Char('d') => self.editor.delete(Way::Forth, Reach::Word),
            KeyCode::Backspace => self.editor.delete(Way::Back, Reach::Word),
            _ => {}
        }
    }

    /// Up and down: in the text first, then in what was typed before.
    fn look(&mut self, way: Way) {
        if self.editor.go_line(way) {
            return;
        }
        let typed = self.editor.text().to_owned();
        let found = match way {
            Way::Back => self.history.older(&typed),
            Way::Forth => self.history.newer(&typed),
        };
        if let Some(text) = found {
            self.editor.set(text);
        }
    }

    fn search_key(&mut self, key: KeyEvent) {
        let Some(searching) = &mut self.searching else {
            return;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let next = self.history.search(&searching.text, searching.skip + 1);
                searching.skip += usize::from(next.is_some());
            }
            KeyCode::Char('g') if control => self.searching = None,
            KeyCode::Esc => self.searching = None,
            KeyCode::Backspace => {
                searching.text.pop();
                searching.skip = 0;
            }
            KeyCode::Char(letter) if !control => {
                searching.text.push(letter);
                searching.skip = 0;
            }
            // Anything else takes what was found and goes on with it.
            _ => {
                let found = self.history.search(&searching.text, searching.skip);
                if let Some(found) = found.map(str::to_owned) {
                    self.editor.set(found);
                }
                self.searching = None;
                if key.code != KeyCode::Enter {
                    self.key(key);
                }
            }
        }
    }

    /// Tab: what can stand here, one after the other.
    fn choose(&mut self, way: Way) {
        if let Some(choosing) = &mut self.choosing {
            let count = choosing.offer.choices.len();
            choosing.at = match way {
                Way::Forth => (choosing.at + 1) % count.max(1),
                Way::Back => (choosing.at + count.saturating_sub(1)) % count.max(1),
            };
            return self.put_choice();
        }
        match Wanted::of(self.editor.before()) {
            Some(Wanted::Command(typed)) => {
                let names = COMMANDS.iter().map(|(name, ..)| (*name).to_owned());
                let choices = names.filter(|name| name.starts_with(&typed)).collect();
                self.offered(Offer { start: 0, choices });
            }
            Some(Wanted::File { start, letters }) => {
                let Some(folder) = self.driver.folder() else {
                    return;
                };
                let done = self.done.clone();
                tokio::spawn(async move {
                    let offer = complete::files(folder, start, letters).await;
                    let _ = done.send(Done::Offered(offer));
                });
            }
            None => {}
        }
    }

    /// Something can be chosen. By now the person may have typed on.
    pub(super) fn offered(&mut self, offer: Offer) {
        let still = match Wanted::of(self.editor.before()) {
            Some(Wanted::Command(_)) => offer.start == 0,
            Some(Wanted::File { start, .. }) => offer.start == start,
            None => false,
        };
        if !still {
            return;
        }
        let count = offer.choices.len();
        if count == 0 {
            return self.hint("nothing there fits");
        }
        self.choosing = Some(Choosing { offer, at: 0 });
        self.put_choice();
        if count == 1 {
            self.choosing = None;
        }
    }

    fn put_choice(&mut self) {
        let Some(choosing) = &self.choosing else {
            return;
        };
        if let Some(choice) = choosing.offer.choices.get(choosing.at) {
            self.editor.replace_before(choosing.offer.start, choice);
        }
    }
}
