//! The terminal.
mod editor;
mod ink;
mod markdown;
mod screen;
