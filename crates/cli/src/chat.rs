//! The terminal.
mod card;
mod driver;
mod editor;
mod ink;
mod markdown;
mod outside;
mod question;
mod screen;

pub(crate) use ink::Paint;
pub(crate) use outside::edited;
pub(crate) use question::{Around, Extent, lines as question_lines};
