//! Settings of a chat. The caller provides them: nothing here reads the environment.

use super::question::QuestionContext;
use super::styled_text::Paint;
use std::ffi::OsString;
use std::path::PathBuf;

/// Settings of a chat.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The first lines.
    pub(crate) greeting: Greeting,
    /// Capabilities of the terminal.
    pub(crate) features: TerminalFeatures,
    /// File of the input history.
    pub(crate) history: Option<PathBuf>,
    /// A private folder that commands cannot reach, for arguments while an editor changes
    /// them.
    pub(crate) scratch: Option<PathBuf>,
    /// The user's editor, from `$VISUAL` or `$EDITOR`.
    pub(crate) editor: Option<OsString>,
    /// Context of questions.
    pub(crate) context: QuestionContext,
}

/// The first line, and notes below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) model: String,
    pub(crate) folder: String,
    /// Short: also shown in the status line.
    pub(crate) sandbox: String,
    /// Other notes, such as what is not trusted here; one line each.
    pub(crate) notes: Vec<String>,
    /// Last exchange of a session that is resumed.
    pub(crate) before: Option<LastExchange>,
}

/// The last exchange of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastExchange {
    /// The user's prompt.
    pub(crate) prompt: String,
    /// The model's answer; empty if there was none.
    pub(crate) answer: String,
}

/// Capabilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalFeatures {
    pub(crate) surface: Surface,
    pub(crate) paint: Paint,
    pub(crate) notice: Notice,
}

/// Kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A screen with a cursor.
    Screen,
    /// Plain lines.
    Lines,
}

/// How to notify a user who looks elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// No notification.
    Silent,
    /// The bell.
    Bell,
    /// The bell and a desktop notification.
    Shown,
}

impl TerminalFeatures {
    /// Derives the capabilities from `TERM`, and whether colours and notifications are
    /// wanted. `is_terminal` is true if both input and output are terminals.
    pub(crate) fn detect(is_terminal: bool, term: Option<&str>, colour: bool, noise: bool) -> Self {
        let has_cursor = is_terminal && term.is_some_and(|term| term != "dumb");
        Self {
            surface: if has_cursor {
                Surface::Screen
            } else {
                Surface::Lines
            },
            paint: if has_cursor && colour {
                Paint::Styled
            } else {
                Paint::Plain
            },
            notice: match term {
                _ if !has_cursor || !noise => Notice::Silent,
                // The Linux console prints such a sequence as text.
                Some("linux") => Notice::Bell,
                _ => Notice::Shown,
            },
        }
    }
}

impl Notice {
    /// The escape sequence of a notification. `words` must be haft's own text.
    pub(crate) fn sequence(self, words: &str) -> String {
        match self {
            Self::Silent => String::new(),
            Self::Bell => "\x07".to_owned(),
            Self::Shown => format!("\x07\x1b]9;{words}\x1b\\\x1b]777;notify;haft;{words}\x1b\\"),
        }
    }
}
