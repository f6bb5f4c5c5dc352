//! A menu below the input line: commands, files, or things to pick.

use crate::complete::score;
use crate::styled_text::{Background, Line, Style, width};

/// Maximum number of items on the screen.
const MAX_ROWS: usize = 8;

/// An item of a menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Text to match, and to insert or pick.
    pub(crate) name: String,
    /// Shown instead of the name, if not empty.
    pub(crate) title: String,
    pub(crate) about: String,
}

impl Item {
    pub(crate) fn new(name: &str, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: String::new(),
            about: about.to_owned(),
        }
    }

    fn title(&self) -> &str {
        match self.title.is_empty() {
            true => &self.name,
            false => &self.title,
        }
    }
}

/// Purpose of a menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Slash commands for the input line.
    Commands,
    /// Files for the word that starts at this byte.
    Files(usize),
    Sessions,
    Models,
    Efforts,
    Themes,
    /// Earlier prompts to return to.
    Prompts,
}

impl Purpose {
    /// Whether it takes the keys, instead of following the input line.
    pub(crate) fn is_picker(self) -> bool {
        !matches!(self, Self::Commands | Self::Files(_))
    }

    /// Label of a picker.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Commands | Self::Files(_) => "",
            Self::Sessions => "resume",
            Self::Models => "model",
            Self::Efforts => "effort",
            Self::Themes => "theme",
            Self::Prompts => "return to",
        }
    }
}

/// A menu and its selected item.
#[derive(Debug, Clone)]
pub(crate) struct Menu {
    pub(crate) purpose: Purpose,
    all: Vec<Item>,
    /// Matching items, best first.
    shown: Vec<usize>,
    filter: String,
    selected: usize,
}

impl Menu {
    pub(crate) fn new(purpose: Purpose, all: Vec<Item>) -> Self {
        let mut menu = Self {
            purpose,
            all,
            shown: Vec::new(),
            filter: String::new(),
            selected: 0,
        };
        menu.filter(String::new());
        menu
    }

    pub(crate) fn typed(&self) -> &str {
        &self.filter
    }

    /// Shows the items that match; the best one is selected.
    pub(crate) fn filter(&mut self, filter: String) {
        let score_of = |item: &Item| match self.purpose {
            // They come in the right order.
            Purpose::Files(_) => Some(0),
            Purpose::Sessions | Purpose::Prompts => {
                let text = format!("{} {} {}", item.name, item.title, item.about);
                let found = text.to_lowercase().contains(&filter.to_lowercase());
                found.then_some(0)
            }
            _ if filter.is_empty() => Some(0),
            _ => score(&item.name, &filter),
        };
        let mut scored: Vec<(i64, usize)> = self
            .all
            .iter()
            .enumerate()
            .filter_map(|(at, item)| Some((score_of(item)?, at)))
            .collect();
        scored.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        self.shown = scored.into_iter().map(|(_, at)| at).collect();
        self.filter = filter;
        self.selected = 0;
    }

    /// Whether both offer the same items for the same purpose.
    pub(crate) fn has_items_of(&self, other: &Self) -> bool {
        self.purpose == other.purpose && self.all == other.all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Selects the item with this name.
    pub(crate) fn select(&mut self, name: &str) {
        let named = |at: &usize| self.all.get(*at).is_some_and(|item| item.name == name);
        self.selected = self.shown.iter().position(named).unwrap_or(0);
    }

    /// Moves the selection, from the end to the beginning too.
    pub(crate) fn step(&mut self, forward: bool) {
        let count = self.shown.len().max(1);
        let by = if forward { 1 } else { count - 1 };
        self.selected = (self.selected + by) % count;
    }

    pub(crate) fn selected(&self) -> Option<&Item> {
        let at = self.shown.get(self.selected)?;
        self.all.get(*at)
    }

    /// Rows for a screen with this many columns, at most `room`.
    pub(crate) fn rows(&self, columns: usize, room: usize) -> Vec<Line> {
        let most = MAX_ROWS.min(room);
        let first = (self.selected + 1).saturating_sub(most);
        let items = || {
            let shown = self.shown.iter().skip(first).take(most);
            shown.filter_map(|at| self.all.get(*at))
        };
        let widest = items().map(|item| width(item.title())).max().unwrap_or(0);
        let titles = widest.min(columns * 2 / 3);
        let mut rows: Vec<Line> = items()
            .enumerate()
            .map(|(at, item)| {
                let is_selected = first + at == self.selected;
                let (mark, style) = match is_selected {
                    true => ("▸ ", Style::BOLD),
                    false => ("  ", Style::PLAIN),
                };
                let title = Line::new(item.title(), style).truncated(titles);
                let gap = titles.saturating_sub(title.width()) + 2;
                let mut line = Line::new("  ", Style::PLAIN).and(mark, Style::CYAN);
                line.append(title);
                if !item.about.is_empty() {
                    line.push(&" ".repeat(gap), Style::PLAIN);
                    line.push(&item.about, Style::DIM);
                }
                let line = line.truncated(columns);
                match is_selected {
                    true => line.filled(Background::Selected),
                    false => line,
                }
            })
            .collect();
        let more = self.shown.len().saturating_sub(first + most);
        if more > 0 && rows.len() > 2 {
            rows.push(Line::new(&format!("    and {more} more"), Style::DIM));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::{Item, Menu, Purpose};
    use crate::styled_text::Line;

    #[test]
    fn items_are_filtered_and_chosen() {
        let items = [("/model", "a"), ("/compact", "b"), ("/context", "c")];
        let items = items.iter().map(|(name, about)| Item::new(name, about));
        let mut menu = Menu::new(Purpose::Commands, items.collect());
        let rows: Vec<String> = menu.rows(40, 9).iter().map(Line::text).collect();
        assert_eq!(
            rows,
            ["  ▸ /model    a", "    /compact  b", "    /context  c"]
        );
        menu.filter("/co".to_owned());
        assert_eq!(menu.selected().unwrap().name, "/compact");
        menu.step(true);
        assert_eq!(menu.selected().unwrap().name, "/context");
        menu.step(true);
        assert_eq!(menu.selected().unwrap().name, "/compact");
        menu.filter("/ctx".to_owned());
        assert_eq!(menu.selected().unwrap().name, "/context");
        menu.filter("/zz".to_owned());
        assert!(menu.is_empty() && menu.selected().is_none());
        assert!(menu.rows(40, 9).is_empty());
    }
}
