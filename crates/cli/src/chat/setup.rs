//! What a chat is started with. Everything comes from whoever starts it: nothing in
//! here looks at the environment.

use super::ink::Paint;
use super::question::Around;
use std::ffi::OsString;
use std::path::PathBuf;

/// What a chat is started with.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The first line.
    pub(crate) greeting: Greeting,
    /// What the terminal can do.
    pub(crate) look: Look,
    /// Where what was typed is kept.
    pub(crate) history: Option<PathBuf>,
    /// A folder of the person's own that commands cannot reach, for arguments while
    /// an editor changes them.
    pub(crate) scratch: Option<PathBuf>,
    /// The person's editor, as `$VISUAL` or `$EDITOR` says.
    pub(crate) editor: Option<OsString>,
    /// What is said around questions.
    pub(crate) around: Around,
}

/// The first line, and what stands below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Greeting {
    pub(crate) version: String,
    pub(crate) model: String,
    pub(crate) folder: String,
    /// In a few words: it stands in the status line too.
    pub(crate) sandbox: String,
    /// What else is to be known, such as what is not trusted here; a line each.
    pub(crate) notes: Vec<String>,
    /// What was said last in a session that goes on.
    pub(crate) before: Option<Before>,
}

/// The end of what was said before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Before {
    /// By the person.
    pub(crate) prompt: String,
    /// By the model; nothing if it did not come to that.
    pub(crate) answer: String,
}

/// What the terminal can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) surface: Surface,
    pub(crate) paint: Paint,
    pub(crate) call: Notice,
}

/// What lines are put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// A screen with a cursor.
    Screen,
    /// Lines, one after the other.
    Lines,
}

/// How a person who looks elsewhere is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// Not at all.
    Silent,
    /// By the bell.
    Bell,
    /// By the bell and a notification.
    Shown,
}

impl Look {
    /// By what the variable `TERM` says, and whether colours and noise are welcome.
    /// `is_terminal` holds for both the keyboard and the screen.
    pub(crate) fn of(is_terminal: bool, term: Option<&str>, colour: bool, noise: bool) -> Self {
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
            call: match term {
                _ if !has_cursor || !noise => Notice::Silent,
                // The console of Linux takes such a sequence for text.
                Some("linux") => Notice::Bell,
                _ => Notice::Shown,
            },
        }
    }
}

impl Notice {
    /// What calls the person. The words are our own.
    pub(crate) fn sequence(self, words: &str) -> String {
        match self {
            Self::Silent => String::new(),
            Self::Bell => "\x07".to_owned(),
            Self::Shown => format!("\x07\x1b]9;{words}\x1b\\\x1b]777;notify;haft;{words}\x1b\\"),
        }
    }
}
