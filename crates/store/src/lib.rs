//! Data that outlives a session, in SQLite databases.
//!
//! A [`Database`] is a file; a [`Store`] is one namespace of files in it, and implements
//! [`haft_ops::Backend`] like the disk. Several sessions and processes may use one database
//! at the same time: an acknowledged write is on disk, and compare-and-replace is atomic
//! among all of them.
//!
//! ```
//! use haft_ops::backend::Expect;
//! use haft_ops::{Access, Backend, Scope};
//! use haft_store::{Database, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let database = Database::open(folder.path().join("store.db"))?;
//! let store = Store::new(database, "memories");
//! let path = Scope::detached().resolve("/people/ada.md", Access::Write)?;
//! store.write(&path, b"Likes engines.".to_vec(), Expect::Absent).await?;
//! assert_eq!(store.stat(&path).await?.size, 14);
//! # Ok(())
//! # }
//! ```
//!
//! [`record`] holds the types of a session's record, for programs that store it elsewhere.
//! Without the feature `sqlite`, the crate has nothing else.
//!
//! Nothing else in the process may open the files of the database, not even to read them:
//! closing such a file drops SQLite's locks on it. A program that lets a model read its
//! disk must list the database's folder in `haft_ops::scope::ScopeConfig::own`.

#![cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "only the database uses parts of the record")
)]

#[cfg(feature = "sqlite")]
mod database;
#[cfg(feature = "sqlite")]
mod files;
#[cfg(feature = "sqlite")]
mod problem;
pub mod record;
#[cfg(feature = "sqlite")]
pub mod sessions;

#[cfg(feature = "sqlite")]
pub use database::{Database, OpenError};
#[cfg(feature = "sqlite")]
pub use files::{MAX_FILE, Store};
#[cfg(feature = "sqlite")]
pub use problem::Problem;
