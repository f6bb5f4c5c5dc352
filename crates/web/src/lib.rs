//! Everything in haft that connects to other machines: one guarded HTTP client, the tools that
//! search the web and fetch pages, and the channels that deliver messages.
//!
//! Nothing else in haft opens a connection. Addresses that a model can choose are checked by
//! [`guard`]; addresses that the user configured are dialled unchecked.

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
