//! How haft speaks to other machines: one guarded HTTP client, the tools that search
//! the web and fetch pages, and the channels that messages go to.
//!
//! Nothing else in haft opens a connection. What a model can make this crate
//! dial goes through [`guard`]; what a person configured is dialled as it is.

pub mod channels;
pub mod client;
pub mod fetch;
pub mod guard;
pub mod html;
pub mod packages;
pub mod search;
mod secret;
pub mod tools;

pub use channels::{Channel, Channels};
pub use client::{Client, HttpError, Request, Response, Settings};
pub use fetch::Fetcher;
pub use packages::PackageIndex;
pub use search::Searcher;
pub use secret::Secret;
pub use tools::tools;
