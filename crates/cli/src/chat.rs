//! The chat: what a person sees of an agent, and how they speak to it.
//!
//! Finished things are lines that scroll up and stay in the terminal; a small live
//! region below them shows what is under way and what is typed. Without a cursor
//! (`TERM=dumb`, a pipe) the same lines come one after the other.
//!
//! To start one:
//!
//! 1. [`person`] gives an approver for the runtime and the [`Questions`] that the chat
//!    answers;
//! 2. implement [`Driver`] over the agent that has that runtime;
//! 3. [`Look::of`] says what the terminal can do; fill a [`Setup`];
//! 4. [`run`] returns when the person has had enough, with the terminal as it was.
//!
//! Nothing else may write to the terminal meanwhile: logs go to a file or nowhere.
//!
//! `ink` is where all text is made harmless; `transcript` turns events into lines;
//! `app` is the screen, `lines` the way without one.

mod app;
mod card;
mod complete;
mod driver;
mod editor;
mod fields;
mod form;
mod history;
mod ink;
mod lines;
mod markdown;
mod outside;
mod play;
mod question;
mod screen;
mod setup;
mod slash;
mod terminal;
mod transcript;

pub(crate) use driver::{Driver, Events, Questions, Seen, person};
pub(crate) use form::Sheet;
pub(crate) use ink::{Line, Paint};
pub(crate) use outside::edited;
pub(crate) use play::{Stage, play};
pub(crate) use question::{Around, Extent, lines as question_lines};
pub(crate) use setup::{Before, Greeting, Look, Setup, Surface};
pub(crate) use transcript::background_task;

use std::io;
use std::sync::Arc;

/// How a chat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The person said so.
    Quit,
    /// A signal of this number did.
    Signal(u8),
}

/// Runs a chat until it ends. Needs a tokio runtime around it.
///
/// # Errors
/// When the terminal cannot be used.
pub(crate) async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    mut questions: Questions,
) -> io::Result<Ended> {
    match setup.look.surface {
        Surface::Screen => app::run(driver, setup, &mut questions).await,
        Surface::Lines => lines::run(driver, setup, &mut questions).await,
    }
}

/// What the person ran, and then what they say.
fn with_outputs(ran: Vec<(String, String)>, text: &str) -> String {
    let mut all = String::new();
    for (line, output) in ran {
        all.push_str(&format!("I ran `{line}` myself. It said:\n\n"));
        // A fence that the output cannot end.
        let ticks = output.split(|c| c != '`').map(str::len).max();
        let fence = "`".repeat(ticks.unwrap_or(0).max(2) + 1);
        all.push_str(&format!("{fence}\n{}\n{fence}\n\n", output.trim_end()));
    }
    all + text
}
