//! The behaviour that every backend must have, wherever it stores files.
//!
//! Edit, search, glob and all tools are written once on top of [`haft_ops::Backend`] and rely on
//! the behaviour tested here, so any backend that passes works with all of them. Call [`all`] in
//! a test of your own crate, with `haft-testing` as a dev-dependency:
//!
//! ```
//! use haft_ops::{Scope, backend::Memory};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! haft_testing::conformance::all(|| {
//!     let backend = Memory::new(); // yours, empty
//!     (Box::new(backend), Scope::detached(), ())
//! })
//! .await;
//! # }
//! ```
//!
//! It panics at the first violation and names it. The requirements:
//!
//! - **Content.** Reading returns exactly the bytes written, including 5 MiB files. An open file
//!   keeps its content when it is replaced or removed.
//! - **Expectations.** [`Expect`] is compared and the file replaced in one step. A refused write
//!   changes nothing. Of several concurrent writers, one wins.
//! - **Folders.** A write creates missing parent folders. Folders are not files and files are not
//!   folders, with matching errors. A backend may keep or drop empty folders.
//! - **Names.** Any bytes except `/` and NUL, unchanged: newlines, invalid UTF-8, wildcards of
//!   query languages, 255 bytes, both encodings of `é`.
//! - **Listings** contain every entry once, sorted by the bytes of its name, with the same data as
//!   `stat`.
//! - **Walks** visit parents before children and skip what the visitor skips.
//!
//! The suite cannot test two things: that a completed write survives a crash, and that [`Expect`]
//! also holds between processes. Test those yourself.

mod content;
mod names;

use haft_ops::backend::{Backend, Expect, Kind, Step, Visit};
use haft_ops::{Access, Error, FilePath, Scope};
use std::io::Read;
use std::sync::Arc;

/// A new backend, a scope for it, and anything that must live as long.
pub type Made<T> = (Box<dyn Backend>, Scope, T);

/// Runs the whole suite. `make` must return a new, empty backend for each case, with a scope that
/// admits paths below its root. Use [`Scope::detached`] unless the backend is the local disk.
///
/// Needs a Tokio runtime if the backend does.
///
/// # Panics
/// Panics if the backend violates a requirement.
pub async fn all<T>(make: impl Fn() -> Made<T>) {
    macro_rules! cases {
        ($($case:path),* $(,)?) => {$({
            let (backend, scope, _keep) = make();
            $case(&Files { backend: &*backend, scope: &scope }).await;
        })*};
    }
    cases!(
        written_content_is_read_back,
        parents_are_created,
        expectations_hold,
        folders_are_not_files,
        listings_are_sorted,
        only_files_can_be_removed,
        walks_visit_everything_in_order,
        walks_can_skip_folders,
        any_bytes_can_be_stored,
        only_one_concurrent_writer_wins,
        content::large_files_are_complete,
        content::an_open_file_keeps_its_content,
        content::timestamps_reflect_changes,
        content::refusals_change_nothing,
        content::writers_do_not_disturb_each_other,
        names::any_name_is_preserved,
        names::names_around_the_slash_stay_apart,
        names::wildcards_are_literal,
        names::siblings_with_a_common_prefix_stay_apart,
        names::files_have_no_children,
    );
}

struct Files<'a> {
    backend: &'a dyn Backend,
    scope: &'a Scope,
}

impl Files<'_> {
    fn path(&self, path: &str) -> FilePath {
        self.scope.resolve(path, Access::Read).unwrap()
    }

    async fn put(&self, path: &str, content: &str) {
        self.backend
            .write(&self.path(path), content.into(), Expect::Anything)
            .await
            .unwrap();
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>, Error> {
        let mut content = self.backend.read(&self.path(path)).await?;
        let mut bytes = Vec::new();
        content.reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(
            content.stat.size,
            bytes.len() as u64,
            "the size is that of the content"
        );
        Ok(bytes)
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let entries = self.backend.list(&self.path(path)).await.unwrap();
        entries
            .iter()
            .map(|entry| entry.name.to_string_lossy().into_owned())
            .collect()
    }
}

async fn written_content_is_read_back(files: &Files<'_>) {
    let written = files
        .backend
        .write(&files.path("a.txt"), b"one".to_vec(), Expect::Anything)
        .await
        .unwrap();
    assert!(written.created);
    let written = files
        .backend
        .write(&files.path("a.txt"), b"two".to_vec(), Expect::Anything)
        .await
        .unwrap();
    assert!(!written.created);
    assert_eq!(files.get("a.txt").await.unwrap(), b"two");
    let stat = files.backend.stat(&files.path("a.txt")).await.unwrap();
    assert_eq!((stat.kind, stat.size), (Kind::File, 3));
    assert!(stat.modified.is_some());
    assert!(matches!(
        files.get("missing").await,
        Err(Error::NotFound { .. })
    ));
    assert!(matches!(
        files.backend.stat(&files.path("missing")).await,
        Err(Error::NotFound { .. })
    ));
}

async fn parents_are_created(files: &Files<'_>) {
    files.put("a/b/c/d.txt", "x").await;
    assert_eq!(files.get("a/b/c/d.txt").await.unwrap(), b"x");
    assert_eq!(
        files.backend.stat(&files.path("a/b")).await.unwrap().kind,
        Kind::Directory
    );
}

async fn expectations_hold(files: &Files<'_>) {
    let path = files.path("f");
    let exactly = |bytes: &[u8]| Expect::Exactly(Arc::from(bytes));
    assert!(matches!(
        files.backend.write(&path, vec![], exactly(b"x")).await,
        Err(Error::Contended { .. })
    ));
    files
        .backend
        .write(&path, b"one".to_vec(), Expect::Absent)
        .await
        .unwrap();
    assert!(matches!(
        files.backend.write(&path, vec![], Expect::Absent).await,
        Err(Error::AlreadyExists { .. })
    ));
    assert!(matches!(
        files.backend.write(&path, vec![], exactly(b"two")).await,
        Err(Error::Contended { .. })
    ));
    assert_eq!(
        files.get("f").await.unwrap(),
        b"one",
        "a refused write changes nothing"
    );
    files
        .backend
        .write(&path, b"three".to_vec(), exactly(b"one"))
        .await
        .unwrap();
    assert_eq!(files.get("f").await.unwrap(), b"three");
}

async fn folders_are_not_files(files: &Files<'_>) {
    files.put("d/f", "x").await;
    let (folder, below_file) = (files.path("d"), files.path("d/f/x"));
    let write = |path| files.backend.write(path, vec![], Expect::Anything);
    assert!(matches!(
        files.get("d").await,
        Err(Error::IsDirectory { .. })
    ));
    assert!(matches!(
        write(&folder).await,
        Err(Error::IsDirectory { .. })
    ));
    assert!(matches!(
        write(&below_file).await,
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        files.get("d/f/x").await,
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        files.backend.list(&files.path("d/f")).await,
        Err(Error::NotADirectory { .. })
    ));
    assert!(matches!(
        files.backend.list(&files.path("missing")).await,
        Err(Error::NotFound { .. })
    ));
    assert_eq!(files.get("d/f").await.unwrap(), b"x");
}

async fn listings_are_sorted(files: &Files<'_>) {
    for name in ["b", "a-b", "a/x", "a.txt", "B", ".hidden", "a"]
        .into_iter()
        .filter(|name| *name != "a")
    {
        files.put(name, "x").await;
    }
    assert_eq!(
        files.names(".").await,
        [".hidden", "B", "a", "a-b", "a.txt", "b"]
    );
    assert_eq!(files.names("a").await, ["x"]);
}

async fn only_files_can_be_removed(files: &Files<'_>) {
    files.put("d/f", "x").await;
    let path = |path: &str| files.scope.resolve(path, Access::Unlink).unwrap();
    assert!(matches!(
        files.backend.remove(&path("d")).await,
        Err(Error::IsDirectory { .. })
    ));
    assert!(matches!(
        files.backend.remove(&path("missing")).await,
        Err(Error::NotFound { .. })
    ));
    files.backend.remove(&path("d/f")).await.unwrap();
    assert!(matches!(
        files.get("d/f").await,
        Err(Error::NotFound { .. })
    ));
}

async fn walk(files: &Files<'_>, lead: impl Fn(&str) -> Step + Send + Sync) -> Vec<String> {
    let mut visited = Vec::new();
    let visit = &mut |visit: Visit<'_>| {
        let Visit::Entry { below, stat, .. } = visit else {
            panic!("all folders can be read")
        };
        let below = below.to_string_lossy().into_owned();
        let step = lead(&below);
        visited.push(if stat.kind == Kind::Directory {
            format!("{below}/")
        } else {
            below
        });
        step
    };
    files.backend.walk(&files.path("."), visit).await.unwrap();
    visited
}

async fn walks_visit_everything_in_order(files: &Files<'_>) {
    for name in ["a/b/c", "a/a", "b", "a/z"] {
        files.put(name, "x").await;
    }
    let visited = walk(files, |_| Step::Into).await;
    let mut sorted = visited.clone();
    sorted.sort();
    assert_eq!(sorted, ["a/", "a/a", "a/b/", "a/b/c", "a/z", "b"]);
    let position = |name: &str| visited.iter().position(|visited| visited == name).unwrap();
    assert!(
        position("a/") < position("a/b/") && position("a/b/") < position("a/b/c"),
        "parents come first: {visited:?}"
    );
}

async fn walks_can_skip_folders(files: &Files<'_>) {
    for name in ["a/x", "b/x", "c"] {
        files.put(name, "x").await;
    }
    let visited = walk(
        files,
        |below| if below == "a" { Step::Over } else { Step::Into },
    )
    .await;
    assert!(
        !visited.iter().any(|visited| visited == "a/x")
            && visited.iter().any(|visited| visited == "b/x"),
        "{visited:?}"
    );
    assert_eq!(walk(files, |_| Step::Stop).await.len(), 1);
}

async fn any_bytes_can_be_stored(files: &Files<'_>) {
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    files
        .backend
        .write(&files.path("bytes"), bytes.clone(), Expect::Anything)
        .await
        .unwrap();
    assert_eq!(files.get("bytes").await.unwrap(), bytes);
    files
        .backend
        .write(&files.path("empty"), Vec::new(), Expect::Anything)
        .await
        .unwrap();
    assert_eq!(files.get("empty").await.unwrap(), b"");
}

/// Comparing and replacing are one step: of several writers that saw the same content, one wins
/// and the others get an error.
async fn only_one_concurrent_writer_wins(files: &Files<'_>) {
    files.put("counter", "start").await;
    let path = files.path("counter");
    let attempts = (0..16).map(|number: u8| {
        files.backend.write(
            &path,
            vec![number],
            Expect::Exactly(Arc::from(&b"start"[..])),
        )
    });
    let mut won = 0;
    for attempt in futures_join(attempts).await {
        match attempt {
            Ok(_) => won += 1,
            Err(Error::Contended { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(won, 1);
}

/// Polls all futures together, without an extra dependency.
async fn futures_join<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).map(Some).collect();
    let mut outputs = Vec::new();
    std::future::poll_fn(move |context| {
        for slot in &mut futures {
            if let Some(future) = slot
                && let std::task::Poll::Ready(output) = future.as_mut().poll(context)
            {
                outputs.push(output);
                *slot = None;
            }
        }
        if futures.iter().all(Option::is_none) {
            std::task::Poll::Ready(std::mem::take(&mut outputs))
        } else {
            std::task::Poll::Pending
        }
    })
    .await
}
