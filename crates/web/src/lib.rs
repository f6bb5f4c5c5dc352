//! How haft speaks to other machines: one guarded HTTP client, and the channels
//! that messages go to.
//!
//! Nothing else in haft opens a connection. What a model can make this crate
//! dial goes through [`guard`]; what a person configured is dialled as it is.

pub mod channels;
pub mod client;
pub mod guard;
pub mod html;
mod secret;

pub use channels::{Channel, Channels};
pub use client::{Client, HttpError, Request, Response, Settings};
pub use secret::Secret;
