//! Everything in haft that connects to other machines: one guarded HTTP client, the tools that
//! search the web and fetch pages, and the channels that deliver messages.
//!
//! Nothing else in haft opens a connection. Addresses that a model can choose are checked by
//! [`guard`]; addresses that the user configured are dialled unchecked.
//!
//! Without the features `channels` and `pages`, the crate is the HTTP client alone.

#![cfg_attr(
    not(all(feature = "channels", feature = "pages")),
    expect(
        dead_code,
        unused_imports,
        reason = "the client has parts that one feature alone uses"
    )
)]

#[cfg(feature = "channels")]
pub mod channels;
pub mod client;
#[cfg(feature = "pages")]
pub mod fetch;
#[cfg(feature = "gateway")]
pub mod gateway;
pub mod guard;
#[cfg(feature = "pages")]
pub mod html;
#[cfg(feature = "pages")]
pub mod packages;
#[cfg(feature = "pages")]
pub mod search;
#[cfg(feature = "pages")]
pub mod tools;

#[cfg(feature = "channels")]
pub use channels::{Channel, Channels};
pub use client::{Client, HttpError, Request, Response, Settings};
#[cfg(feature = "pages")]
pub use fetch::Fetcher;
pub use haft::Secret;
#[cfg(feature = "pages")]
pub use packages::PackageIndex;
#[cfg(feature = "pages")]
pub use search::Searcher;
#[cfg(feature = "pages")]
pub use tools::tools;
