//! What every backend must do, whatever it keeps files in.
//!
//! Edit, search, glob and all tools are written once, above
//! [`haft_ops::Backend`], and rely on what is tested here: a backend that passes
//! can be put under any of them. Call [`all`] in a test of your own crate, with
//! `haft-testing` among its `dev-dependencies`:
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
//! It panics at the first promise that is broken and says which. What it demands:
//!
//! - **Content.** What is written is read, any bytes, 5 MiB too. A file that was
//!   opened goes on being the one that was opened.
//! - **Expectations.** [`Expect`] is compared and the file replaced in one step; a
//!   write that is refused changes nothing; of many writers one wins.
//! - **Folders.** A write makes the folders above it. A folder is no file and a
//!   file no folder, with the errors that say so. Whether a folder outlives its
//!   last file is up to the backend.
//! - **Names.** Any bytes but `/` and NUL, kept as they are: newlines, invalid
//!   UTF-8, wildcards of query languages, 255 bytes, both ways to write `é`.
//! - **Listings** have every entry once, sorted by the bytes of its name, and say
//!   of it what `stat` says.
//! - **Walks** meet parents before children and go where they are led.
//!
//! What it cannot see is left to tests of yours: that a write which was answered
//! survives a crash, and that [`Expect`] holds between processes too.

mod content;
mod names;

use haft_ops::backend::{Backend, Expect, Kind, Step, Visit};
use haft_ops::{Access, Error, FilePath, Scope};
use std::io::Read;
use std::sync::Arc;

/// A fresh backend, a scope over it, and whatever must live as long.
pub type Made<T> = (Box<dyn Backend>, Scope, T);

/// Runs the whole suite, each case on a fresh backend that `make` gives: empty,
/// with a scope that admits paths below its root. Use
/// [`Scope::detached`] unless the backend is this machine's disk.
///
/// It needs a Tokio runtime where the backend does.
///
/// # Panics
/// When the backend does not do what every backend must.
pub async fn all<T>(make: impl Fn() -> Made<T>) {
    macro_rules! cases {
        ($($case:path),* $(,)?) => {$({
            let (backend, scope, _keep) = make();
            $case(&Files { backend: &*backend, scope: &scope }).await;
        })*};
    }
    cases!(
        what_is_written_is_read,
        parents_are_made,
        expectations_hold,
        folders_are_no_files,
        listings_are_sorted,
        removal_takes_files_only,
        walks_meet_everything_in_order,
        walks_can_be_led,
        bytes_are_bytes,
        only_one_of_many_wins,
        content::large_files_are_whole,
        content::an_open_file_stays_what_it_was,
        content::times_tell_of_changes,
        content::refusals_change_nothing,
        content::writers_do_not_disturb_each_other,
        names::any_name_is_kept,
        names::names_around_the_slash_stay_apart,
        names::wildcards_are_letters,
        names::neighbours_are_not_inside,
        names::there_is_nothing_below_a_file,
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

async fn what_is_written_is_read(files: &Files<'_>) {
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

async fn parents_are_made(files: &Files<'_>) {
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

async fn folders_are_no_files(files: &Files<'_>) {
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

async fn removal_takes_files_only(files: &Files<'_>) {
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
    let mut met = Vec::new();
    let visit = &mut |visit: Visit<'_>| {
        let Visit::Entry { below, stat, .. } = visit else {
            panic!("all folders can be read")
        };
        let below = below.to_string_lossy().into_owned();
        let step = lead(&below);
        met.push(if stat.kind == Kind::Directory {
            format!("{below}/")
        } else {
            below
        });
        step
    };
    files.backend.walk(&files.path("."), visit).await.unwrap();
    met
}

async fn walks_meet_everything_in_order(files: &Files<'_>) {
    for name in ["a/b/c", "a/a", "b", "a/z"] {
        files.put(name, "x").await;
    }
    let met = walk(files, |_| Step::Into).await;
    let mut sorted = met.clone();
    sorted.sort();
    assert_eq!(sorted, ["a/", "a/a", "a/b/", "a/b/c", "a/z", "b"]);
    let place = |name: &str| met.iter().position(|met| met == name).unwrap();
    assert!(
        place("a/") < place("a/b/") && place("a/b/") < place("a/b/c"),
        "parents come first: {met:?}"
    );
}

async fn walks_can_be_led(files: &Files<'_>) {
    for name in ["a/x", "b/x", "c"] {
        files.put(name, "x").await;
    }
    let met = walk(
        files,
        |below| if below == "a" { Step::Over } else { Step::Into },
    )
    .await;
    assert!(
        !met.iter().any(|met| met == "a/x") && met.iter().any(|met| met == "b/x"),
        "{met:?}"
    );
    assert_eq!(walk(files, |_| Step::Stop).await.len(), 1);
}

async fn bytes_are_bytes(files: &Files<'_>) {
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

/// Comparing and replacing are one step: of writers that saw the same content,
/// one wins and the others learn that they did not.
async fn only_one_of_many_wins(files: &Files<'_>) {
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

/// Polls all futures together, without another dependency.
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
