//! What haft keeps beyond a session, in one SQLite database.
//!
//! A [`Database`] is the file; a [`Store`] is one namespace of files in it, and a
//! [`haft_ops::Backend`] like the disk. Several sessions and several processes
//! may use one database at a time: a write that was acknowledged is on the disk,
//! and comparing and replacing are one step between all of them.
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
//! Nothing else in the process may open the files of the database, not even to
//! read them: closing such a file drops the locks that SQLite holds on it. A
//! program that lets a model read its disk names the database's folder in
//! `haft_ops::scope::Places::own`.

mod database;
mod files;
mod problem;
pub mod sessions;

pub use database::{Database, OpenError};
pub use files::{MAX_FILE, Store};
pub use problem::Problem;
