//! Settings of a chat. The caller provides them: nothing here reads the environment.

use crate::question::QuestionContext;
use crate::style::{Depth, Palette, Theme};
use crate::styled_text::Styling;
use crate::terminal;
use std::ffi::OsString;
use std::path::PathBuf;

/// Settings of a chat.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The first lines that the user sees.
    pub greeting: Greeting,
    /// Decides between a chat on a screen and one in plain lines.
    pub terminal: TerminalFeatures,
    /// File that keeps the input history between chats, if any.
    pub history_file: Option<PathBuf>,
    /// A private folder that commands cannot reach, for arguments while an editor changes
    /// them.
    pub scratch_folder: Option<PathBuf>,
    /// The user's editor, such as the value of `$EDITOR`; a shell splits it into words.
    /// Without one, arguments are edited in the input line.
    pub editor: Option<OsString>,
    /// Facts that every approval question shows.
    pub question_context: QuestionContext,
    /// The user's own slash commands.
    pub prompts: Vec<SavedPrompt>,
    /// A prompt to send at once.
    pub first_prompt: Option<String>,
    /// Text for the input line.
    pub draft: String,
}

/// A slash command that sends a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedPrompt {
    /// Name without the slash.
    pub name: String,
    /// Short description.
    pub description: String,
    /// Hint at its arguments, if it takes any.
    pub hint: Option<String>,
    /// The prompt; `$ARGUMENTS` stands for what was typed after the name.
    pub prompt: String,
}

impl SavedPrompt {
    /// The prompt with its arguments. Those that it does not mention come last.
    #[must_use]
    pub fn with_arguments(&self, arguments: &str) -> String {
        match (self.prompt.contains("$ARGUMENTS"), arguments) {
            (true, arguments) => self.prompt.replace("$ARGUMENTS", arguments),
            (false, "") => self.prompt.clone(),
            (false, arguments) => format!("{}\n\n{arguments}", self.prompt),
        }
    }
}

/// The first line, and notes below it. Empty parts are left out.
#[derive(Debug, Clone, Default)]
pub struct Greeting {
    /// Version of haft.
    pub version: String,
    /// Name of the model that the chat starts with.
    pub model: String,
    /// The work folder, as the user should see it.
    pub folder: String,
    /// State of the sandbox in a word or two: also shown in the status line.
    pub sandbox: String,
    /// Network of commands in a word or two, for the status line.
    pub network: String,
    /// Other notes, such as pending approvals; one line each.
    pub notes: Vec<String>,
    /// The conversation before, if a session is resumed.
    pub conversation: Vec<Recalled>,
}

/// A part of a conversation before.
#[derive(Debug, Clone)]
pub enum Recalled {
    /// A note of haft's, such as about what is left out.
    Note(String),
    /// A prompt of the user.
    Prompt(String),
    /// A text of the model.
    Answer(String),
    /// The start or the end of a call.
    Call(haft::EventKind),
}

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalFeatures {
    pub(crate) display: Display,
    pub(crate) styling: Styling,
    pub(crate) notification: Notification,
    /// Whether the terminal must be asked for its background to choose a theme.
    asks_background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Display {
    /// A screen with a cursor.
    Screen,
    /// Plain lines, one after the other.
    Lines,
}

/// How to notify a user who looks elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notification {
    Off,
    Bell,
    BellAndDesktop,
}

impl TerminalFeatures {
    /// Derives the capabilities from `term`, the value of `$TERM`, and from the user's
    /// wishes. `is_terminal` is true if both input and output are terminals.
    pub fn detect(
        is_terminal: bool,
        term: Option<&str>,
        wants_colour: bool,
        wants_notifications: bool,
    ) -> Self {
        let has_cursor = is_terminal && term.is_some_and(|term| term != "dumb");
        Self {
            display: if has_cursor {
                Display::Screen
            } else {
                Display::Lines
            },
            styling: if has_cursor && wants_colour {
                let depth = match term {
                    Some(term) if term.contains("256color") => Depth::Indexed,
                    Some(term) if term.contains("kitty") || term.contains("direct") => Depth::Rgb,
                    _ => Depth::Sixteen,
                };
                Styling::Ansi(Palette::new(Theme::Terminal, depth))
            } else {
                Styling::Plain
            },
            notification: match term {
                _ if !has_cursor || !wants_notifications => Notification::Off,
                // The Linux console prints such a sequence as text.
                Some("linux") => Notification::Bell,
                _ => Notification::BellAndDesktop,
            },
            asks_background: false,
        }
    }

    /// Chooses a theme. `colorterm` and `colorfgbg` are the values of `$COLORTERM` and
    /// `$COLORFGBG`.
    #[must_use]
    pub fn themed(
        mut self,
        theme: Theme,
        colorterm: Option<&str>,
        colorfgbg: Option<&str>,
    ) -> Self {
        let Styling::Ansi(palette) = self.styling else {
            return self;
        };
        let depth = match colorterm {
            Some("truecolor" | "24bit") => Depth::Rgb,
            _ => palette.depth(),
        };
        let named = match theme {
            Theme::Auto => colorfgbg.and_then(theme_of_colorfgbg),
            theme => Some(theme),
        };
        self.styling = Styling::Ansi(Palette::new(named.unwrap_or(Theme::Auto), depth));
        // The Linux console does not answer.
        self.asks_background = named.is_none() && depth > Depth::Sixteen;
        self
    }

    /// Asks the terminal for its background if the theme depends on it. Waits for the answer
    /// for a moment; everything typed meanwhile is dropped.
    #[must_use]
    pub fn ask_background(self) -> Self {
        let mut all = self;
        if self.asks_background && crossterm::terminal::enable_raw_mode().is_ok() {
            all = self.in_raw_mode().0;
            // The next program that reads from the terminal would report an error too.
            let _ = crossterm::terminal::disable_raw_mode();
        }
        all
    }

    /// Like [`Self::ask_background`] for a terminal in raw mode. Also returns what was typed
    /// meanwhile.
    pub(crate) fn in_raw_mode(mut self) -> (Self, String) {
        let (Styling::Ansi(palette), true) = (self.styling, self.asks_background) else {
            return (self, String::new());
        };
        self.asks_background = false;
        let (is_light, typed) = terminal::ask_background();
        if let Some(is_light) = is_light {
            let theme = if is_light { Theme::Light } else { Theme::Dark };
            self.styling = Styling::Ansi(Palette::new(theme, palette.depth()));
        }
        (self, typed)
    }

    /// The same terminal with another theme.
    pub(crate) fn restyled(mut self, theme: Theme) -> Self {
        if let Styling::Ansi(palette) = self.styling {
            self.styling = Styling::Ansi(Palette::new(theme, palette.depth()));
        }
        self
    }
}

/// `$COLORFGBG` is "foreground;background", as numbers of the 16 colours.
fn theme_of_colorfgbg(value: &str) -> Option<Theme> {
    let background: u8 = value.rsplit(';').next()?.parse().ok()?;
    Some(match background {
        7 | 9..=15 => Theme::Light,
        _ => Theme::Dark,
    })
}

impl Notification {
    /// Returns the escape sequence of a notification. `words` must be haft's own text.
    pub(crate) fn sequence(self, words: &str) -> String {
        match self {
            Self::Off => String::new(),
            Self::Bell => "\x07".to_owned(),
            Self::BellAndDesktop => {
                format!("\x07\x1b]9;{words}\x1b\\\x1b]777;notify;haft;{words}\x1b\\")
            }
        }
    }
}
