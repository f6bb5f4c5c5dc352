//! Settings of a chat. The caller provides them: nothing here reads the environment.

use crate::question::QuestionContext;
use crate::styled_text::Styling;
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
    /// Other notes, such as pending approvals; one line each.
    pub notes: Vec<String>,
    /// Last exchange of a session that is resumed.
    pub last_exchange: Option<LastExchange>,
}

/// The last exchange of a session.
#[derive(Debug, Clone, Default)]
pub struct LastExchange {
    /// The user's prompt.
    pub prompt: String,
    /// The model's answer; empty if the run ended before it.
    pub answer: String,
}

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalFeatures {
    pub(crate) display: Display,
    pub(crate) styling: Styling,
    pub(crate) notification: Notification,
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
                Styling::Ansi
            } else {
                Styling::Plain
            },
            notification: match term {
                _ if !has_cursor || !wants_notifications => Notification::Off,
                // The Linux console prints such a sequence as text.
                Some("linux") => Notification::Bell,
                _ => Notification::BellAndDesktop,
            },
        }
    }
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
