//! Menus: they open at `/` and `@`, and for things to pick.

use super::{App, TaskResult};
use crate::complete::{self, CompletionTarget};
use crate::driver::SessionEntry;
use crate::menu::{Item, Menu, Purpose};
use crate::slash::menu_items;
use crate::style::Theme;
use crate::{EndReason, NextSession};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::sync::Arc;

/// Files that match what was typed.
pub(super) struct FoundFiles {
    letters: String,
    /// All files, for the next letters.
    all: Arc<Vec<String>>,
    paths: Vec<String>,
    /// Whether the best one replaces the word at once.
    accept: bool,
}

impl App {
    /// Handles a key for the open menu. Returns false if it is for the input line.
    pub(super) fn menu_key(&mut self, key: KeyEvent) -> bool {
        let Some(menu) = &mut self.menu else {
            return false;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => menu.step(false),
            KeyCode::Down => menu.step(true),
            KeyCode::Char('p') if control => menu.step(false),
            KeyCode::Char('n') if control => menu.step(true),
            KeyCode::BackTab => menu.step(false),
            KeyCode::Esc => {
                self.menu = None;
                self.menu_dismissed = true;
            }
            KeyCode::Tab | KeyCode::Enter if menu.purpose.is_picker() => self.pick(),
            KeyCode::Tab => self.accept_choice(),
            KeyCode::Enter if key.modifiers.is_empty() => return self.enter_choice(),
            KeyCode::Char(letter) if menu.purpose.is_picker() && !control => {
                menu.filter(format!("{}{letter}", menu.typed()));
            }
            KeyCode::Backspace if menu.purpose.is_picker() => {
                let mut typed = menu.typed().to_owned();
                typed.pop();
                menu.filter(typed);
            }
            // Other keys of a picker do nothing.
            _ => return menu.purpose.is_picker(),
        }
        true
    }

    /// Enter with a command or file selected. Returns false if the line is to be sent.
    fn enter_choice(&mut self) -> bool {
        let Some(menu) = &self.menu else { return false };
        let is_command = menu.purpose == Purpose::Commands;
        let name = menu.selected().map(|item| item.name.clone());
        self.accept_choice();
        // A command of the user's own waits for its arguments.
        let waits = self.setup.prompts.iter().any(|one| {
            one.hint.is_some() && name.as_deref().and_then(|name| name.get(1..)) == Some(&one.name)
        });
        !is_command || waits
    }

    /// Puts the selected item into the input line.
    fn accept_choice(&mut self) {
        let Some(menu) = self.menu.take() else { return };
        let Some(item) = menu.selected() else { return };
        let (start, text) = match menu.purpose {
            Purpose::Files(start) => (start, format!("@{} ", item.name)),
            _ => (0, format!("{} ", item.name)),
        };
        self.editor.replace_before(start, &text);
    }

    /// Opens, updates or closes the menu for the word before the cursor.
    pub(super) fn refresh_menu(&mut self) {
        if self
            .menu
            .as_ref()
            .is_some_and(|menu| menu.purpose.is_picker())
        {
            return;
        }
        let target = CompletionTarget::of(self.editor.before_cursor());
        if target.is_none() {
            self.menu_dismissed = false;
            self.files = None;
        }
        match target {
            _ if self.menu_dismissed || self.active.is_some() => self.menu = None,
            None => self.menu = None,
            Some(CompletionTarget::Command(typed)) => {
                let mut menu = Menu::new(Purpose::Commands, menu_items(&self.setup.prompts));
                if typed != "/" {
                    menu.filter(typed);
                }
                self.menu = Some(menu).filter(|menu| !menu.is_empty());
            }
            Some(CompletionTarget::File { letters, .. }) => self.find_files(letters, false),
        }
    }

    /// Searches files in the background: there may be many.
    fn find_files(&self, letters: String, accept: bool) {
        let Some(folder) = self.driver.work_folder() else {
            return;
        };
        let (known, results) = (self.files.clone(), self.task_sender.clone());
        tokio::spawn(async move {
            let all = match known {
                Some(all) => all,
                None => Arc::new(complete::list_files(folder).await),
            };
            let paths = complete::matching(&all, &letters);
            let _ = results.send(TaskResult::Files(FoundFiles {
                letters,
                all,
                paths,
                accept,
            }));
        });
    }

    /// Tab without a menu: completes the word before the cursor.
    pub(super) fn complete_word(&mut self) {
        self.menu_dismissed = false;
        match CompletionTarget::of(self.editor.before_cursor()) {
            Some(CompletionTarget::File { letters, .. }) => self.find_files(letters, true),
            Some(CompletionTarget::Command(_)) => {
                self.refresh_menu();
                self.accept_choice();
            }
            None => {}
        }
    }

    /// Shows files that were found, unless the user has typed on since.
    pub(super) fn show_files(&mut self, found: FoundFiles) {
        let target = CompletionTarget::of(self.editor.before_cursor());
        let Some(CompletionTarget::File { start, letters }) = target else {
            return;
        };
        self.files = Some(found.all);
        if letters != found.letters {
            return self.find_files(letters, found.accept);
        }
        let items = found.paths.iter().map(|path| Item::new(path, ""));
        let menu = Menu::new(Purpose::Files(start), items.collect());
        // Several searches may find the same files. What the user has selected since stays.
        if !self
            .menu
            .as_ref()
            .is_some_and(|open| open.has_items_of(&menu))
        {
            self.menu = Some(menu).filter(|menu| !menu.is_empty() && !self.menu_dismissed);
        }
        if found.accept {
            match self.menu.is_some() {
                true => self.accept_choice(),
                false => self.hint("no such file"),
            }
        }
    }

    /// Opens a menu to pick a session.
    pub(super) fn pick_session(&mut self, sessions: &[SessionEntry]) {
        let items = sessions.iter().map(|one| Item {
            name: one.id.clone(),
            title: match one.title.is_empty() {
                true => one.id.clone(),
                false => one.title.clone(),
            },
            about: one.about.clone(),
        });
        let items: Vec<Item> = items.collect();
        match items.is_empty() {
            true => self.hint("no other sessions in this folder"),
            false => self.menu = Some(Menu::new(Purpose::Sessions, items)),
        }
    }

    /// Opens a menu to pick a model. Returns false if the models are not known.
    pub(super) fn pick_model(&mut self) -> bool {
        let models = self.driver.models();
        let items = models.iter().map(|name| Item::new(name, ""));
        let mut menu = Menu::new(Purpose::Models, items.collect());
        menu.select(&self.driver.model());
        self.menu = Some(menu).filter(|_| models.len() > 1);
        self.menu.is_some()
    }

    /// Opens a menu to pick how much the model thinks. Returns false if it cannot be set.
    pub(super) fn pick_effort(&mut self) -> bool {
        let levels = self.driver.efforts();
        let items = levels.iter().map(|level| Item::new(level, ""));
        let mut menu = Menu::new(Purpose::Efforts, items.collect());
        menu.select(&self.driver.effort().unwrap_or_default());
        self.menu = Some(menu).filter(|_| !levels.is_empty());
        self.menu.is_some()
    }

    pub(super) fn set_effort(&mut self, level: String) {
        self.run_in_background(async move |driver| {
            driver.set_effort(&level).await?;
            Ok(format!("effort {level} from now on"))
        });
    }

    /// Opens a menu to pick a theme.
    pub(super) fn pick_theme(&mut self) {
        let all = Theme::ALL
            .iter()
            .filter(|(theme, ..)| *theme != Theme::Auto);
        let items = all.map(|(_, name, about)| Item::new(name, about));
        self.menu = Some(Menu::new(Purpose::Themes, items.collect()));
    }

    fn pick(&mut self) {
        let Some(menu) = self.menu.take() else { return };
        let Some(item) = menu.selected() else { return };
        match menu.purpose {
            Purpose::Sessions => {
                let next = NextSession::existing(item.name.clone());
                self.end_reason = Some(EndReason::Switch(next));
            }
            Purpose::Efforts => self.set_effort(item.name.clone()),
            Purpose::Prompts => {
                let id = item.name.clone();
                self.return_to(&id);
            }
            Purpose::Models => self.set_model(item.name.clone()),
            Purpose::Themes => self.set_theme(&item.name),
            Purpose::Commands | Purpose::Files(_) => {}
        }
    }

    pub(super) fn set_model(&mut self, name: String) {
        self.run_in_background(async move |driver| {
            driver.set_model(&name).await?;
            Ok(format!("using {} from now on", driver.model()))
        });
    }

    pub(super) fn set_theme(&mut self, name: &str) {
        let Some(theme) = Theme::named(name).filter(|theme| *theme != Theme::Auto) else {
            return self.hint("themes: dark, light, contrast, terminal");
        };
        self.setup.terminal = self.setup.terminal.restyled(theme);
        let styling = self.setup.terminal.styling;
        self.screen.set_styling(styling);
        self.transcript.restyle(styling);
        self.hint(&format!(
            "to keep it, in your haft.yaml: chat: {{ theme: {name} }}"
        ));
    }
}
