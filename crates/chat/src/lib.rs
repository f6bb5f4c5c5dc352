//! The interactive chat in a terminal: shows what an agent does and takes the user's input.
//!
//! Finished output is printed as lines that scroll up and stay in the terminal. A small
//! live region below them shows work in progress and the input line. Without a cursor
//! (`TERM=dumb`, a pipe) the same lines are printed one after the other.
//!
//! To start a chat:
//!
//! 1. [`approver`] returns an approver for the runtime, and the [`Requests`] that the chat
//!    answers;
//! 2. implement [`Driver`] for the agent that has that runtime;
//! 3. [`TerminalFeatures::detect`] describes the terminal; fill in a [`Setup`];
//! 4. [`run`] returns when the user quits, and restores the terminal.
//!
//! Nothing else may write to the terminal meanwhile: logs go to a file or are dropped.
//!
//! Programs that ask line by line use [`question_text`], [`FormState`] and
//! [`edit_arguments`] without a chat.

// `styled_text` sanitizes all text; `transcript` turns events into lines; `app` is the chat
// on a screen, `line_mode` the chat without one.
mod ansi;
mod app;
mod card;
mod complete;
mod diff;
mod driver;
mod editor;
mod external_editor;
mod fields;
mod form;
mod highlight;
mod history;
mod line_mode;
mod markdown;
mod menu;
mod paste;
mod plan;
mod question;
mod screen;
mod setup;
mod single_prompt;
mod slash;
mod style;
mod styled_text;
mod terminal;
mod transcript;

pub use driver::{
    ChatEvent, Driver, EarlierPrompt, EventStream, Requests, SessionEntry, Topic, approver,
};
pub use external_editor::edit_arguments;
pub use form::FormState;
pub use question::{Detail, QuestionContext, question_text};
pub use setup::{Greeting, Recalled, SavedPrompt, Setup, TerminalFeatures};
pub use single_prompt::{SinglePromptOptions, run_single_prompt};
pub use style::Theme;
pub use transcript::background_task_line;

use setup::Display;
use std::io;
use std::sync::Arc;

/// Reason why a chat ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The user quit, or the input ended.
    Quit,
    /// The user wants another session.
    Switch(NextSession),
    /// The process received this signal, such as 15 for SIGTERM.
    Signal(u8),
}

/// A session that the user goes on with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextSession {
    /// Its id; `None` for a new session.
    pub id: Option<String>,
    /// Whether it is in plan mode.
    pub is_planning: bool,
    /// A prompt to send at once.
    pub prompt: Option<String>,
    /// Text for the input line.
    pub draft: String,
}

impl NextSession {
    fn existing(id: String) -> Self {
        Self {
            id: Some(id),
            ..Self::default()
        }
    }
}

/// Runs a chat until it ends. Requires a tokio runtime.
///
/// # Errors
/// If the terminal cannot be used.
pub async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    mut requests: Requests,
) -> io::Result<EndReason> {
    match setup.terminal.display {
        Display::Screen => app::run(driver, setup, &mut requests).await,
        Display::Lines => line_mode::run(driver, setup, &mut requests).await,
    }
}

/// What the model is told with the next prompt about a command that the user ran.
fn told_command(line: &str, output: &str) -> String {
    // A fence longer than any in the output.
    let ticks = output.split(|c| c != '`').map(str::len).max();
    let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
    let output = output.trim_end();
    format!("I ran `{line}` myself. It said:\n\n{fence}\n{output}\n{fence}\n\n")
}

/// What the model is told with the next prompt about a new instruction.
fn told_instruction(line: &str) -> String {
    format!("I added this to the project's instructions: {line}\n\n")
}
