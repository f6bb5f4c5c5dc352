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
//! Nothing else in the process may open the files of the database, not even to read them:
//! closing such a file drops SQLite's locks on it. A program that lets a model read its
//! disk must list the database's folder in `haft_ops::scope::ScopeConfig::own`.

mod database;
mod files;
mod problem;
pub mod sessions;

pub use database::{Database, OpenError};
pub use files::{MAX_FILE, Store};
pub use problem::Problem;
