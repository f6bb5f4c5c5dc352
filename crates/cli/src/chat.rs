//! The interactive chat: shows what an agent does and takes the user's input.
//!
//! Finished output is printed as lines that scroll up and stay in the terminal. A small
//! live region below them shows work in progress and the input line. Without a cursor
//! (`TERM=dumb`, a pipe) the same lines are printed one after the other.
//!
//! To start a chat:
//!
//! 1. [`chat_approver`] returns an approver for the runtime and the [`Questions`] that the chat
//!    answers;
//! 2. implement [`Driver`] for the agent that has that runtime;
//! 3. [`TerminalFeatures::detect`] describes the terminal; fill in a [`Setup`];
//! 4. [`run`] returns when the user quits, and restores the terminal.
//!
//! Nothing else may write to the terminal meanwhile: logs go to a file or are dropped.
//!
//! `styled_text` sanitizes all text; `transcript` turns events into lines; `app` is the chat on a
//! screen, `lines` the chat without one.

mod app;
mod card;
mod complete;
mod driver;
mod editor;
mod external_editor;
mod fields;
mod form;
mod history;
mod lines;
mod markdown;
mod play;
mod question;
mod screen;
mod setup;
mod slash;
mod styled_text;
mod terminal;
mod transcript;

pub(crate) use driver::{ChatEvent, Driver, Events, Questions, chat_approver};
pub(crate) use external_editor::edit_arguments;
pub(crate) use form::FormState;
pub(crate) use play::{PlayOptions, play};
pub(crate) use question::{Extent, QuestionContext, lines as question_lines};
pub(crate) use setup::{Greeting, LastExchange, Setup, Surface, TerminalFeatures};
pub(crate) use styled_text::{Line, Paint};
pub(crate) use transcript::background_task;

use std::io;
use std::sync::Arc;

/// Reason why a chat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The user quit.
    Quit,
    /// A signal with this number.
    Signal(u8),
}

/// Runs a chat until it ends. Requires a tokio runtime.
///
/// # Errors
/// If the terminal cannot be used.
pub(crate) async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    mut questions: Questions,
) -> io::Result<Ended> {
    match setup.features.surface {
        Surface::Screen => app::run(driver, setup, &mut questions).await,
        Surface::Lines => lines::run(driver, setup, &mut questions).await,
    }
}

/// Prepends the commands that the user ran, with their output, to a prompt.
fn with_outputs(ran: Vec<(String, String)>, text: &str) -> String {
    let mut all = String::new();
    for (line, output) in ran {
        all.push_str(&format!("I ran `{line}` myself. It said:\n\n"));
        // A fence longer than any in the output.
        let ticks = output.split(|c| c != '`').map(str::len).max();
        let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
        all.push_str(&format!("{fence}\n{}\n{fence}\n\n", output.trim_end()));
    }
    all + text
}
