//! Helpers shared by the tests.
#![allow(dead_code, reason = "each test uses some of it")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "all of it is test, which the lints see only in functions marked so"
)]

use haft_ops::backend::Expect;
use haft_ops::{Access, Backend, Error, FilePath, Scope};
use haft_store::{Database, Store};
use std::io::Read;
use tempfile::TempDir;

/// Creates a temporary folder on the disk that holds the build.
pub fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Opens the namespace `test` of the database in a folder.
pub fn store(folder: &TempDir) -> Store {
    let database = Database::open(folder.path().join("store.db")).unwrap();
    Store::new(database, "test")
}

pub fn path(path: &str) -> FilePath {
    Scope::detached().resolve(path, Access::Write).unwrap()
}

pub async fn put(store: &Store, name: &str, content: &[u8]) -> Result<bool, Error> {
    let written = store
        .write(&path(name), content.to_vec(), Expect::Anything)
        .await?;
    Ok(written.created)
}

pub async fn get(store: &Store, name: &str) -> Result<Vec<u8>, Error> {
    let mut content = store.read(&path(name)).await?;
    let mut bytes = Vec::new();
    content
        .reader
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io("read", name, error))?;
    Ok(bytes)
}
