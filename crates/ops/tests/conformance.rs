//! Every backend of this crate passes the conformance suite, alone and as part of a tree.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use haft_ops::backend::local::{Litter, Local};
use haft_ops::backend::{Composite, Expect, Kind, Limited, Memory, Mount};
use haft_ops::scope::{Mode, ScopeConfig, Visibility};
use haft_ops::{Access, Backend, Error, Scope};
use haft_testing::conformance;
use std::sync::Arc;
use tempfile::TempDir;

#[tokio::test]
async fn memory() {
    conformance::all(|| (Box::new(Memory::new()), Scope::detached(), ())).await;
}

fn disk_in(temp: &TempDir) -> (Local, Scope) {
    let work_dir = temp.path().join("work");
    std::fs::create_dir(&work_dir).unwrap();
    let config = ScopeConfig {
        work_dir,
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: Mode::Workspace.rules(),
    };
    let backend = Local::with_litter(Litter::new(temp.path().join("litter")));
    (backend, Scope::disk(config).unwrap())
}

#[tokio::test]
async fn disk() {
    conformance::all(|| {
        let temp = TempDir::new().unwrap();
        let (backend, scope) = disk_in(&temp);
        (Box::new(backend), scope, temp)
    })
    .await;
}

#[tokio::test]
async fn disk_with_a_limit() {
    conformance::all(|| {
        let temp = TempDir::new().unwrap();
        let (backend, scope) = disk_in(&temp);
        (Box::new(Limited::new(backend, 16 << 20)), scope, temp)
    })
    .await;
}

fn mount(at: &str, backend: impl Backend, scope: Scope) -> Mount {
    Mount {
        at: at.into(),
        backend: Arc::new(backend),
        scope,
        visibility: Visibility::Listed,
    }
}

/// The disk as the root of a tree, with a mount that does not appear in listings.
#[tokio::test]
async fn a_tree_with_its_root_on_disk() {
    conformance::all(|| {
        let temp = TempDir::new().unwrap();
        let (backend, scope) = disk_in(&temp);
        let hidden = Mount {
            visibility: Visibility::ByNameOnly,
            ..mount("/.kept", Memory::new(), Scope::detached())
        };
        let mounts = vec![mount("/", backend, scope), hidden];
        let (tree, scope) = Composite::new(mounts, "/".into());
        (Box::new(tree), scope, temp)
    })
    .await;
}

#[tokio::test]
async fn a_tree_with_its_root_in_memory() {
    conformance::all(|| {
        let mounts = vec![mount("/", Memory::new(), Scope::detached())];
        let (tree, scope) = Composite::new(mounts, "/".into());
        (Box::new(tree), scope, ())
    })
    .await;
}

/// A tree of three backends, with one mount in a folder that exists only because of it.
fn tree_of_three() -> (Composite, Scope) {
    let memory = |at| mount(at, Memory::new(), Scope::detached());
    Composite::new(
        vec![memory("/"), memory("/notes"), memory("/deep/inside")],
        "/".into(),
    )
}

async fn names(tree: &Composite, scope: &Scope, path: &str) -> Vec<String> {
    let path = scope.resolve(path, Access::Read).unwrap();
    let entries = tree.list(&path).await.unwrap();
    entries
        .iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect()
}

#[tokio::test]
async fn mounts_appear_as_folders_in_their_parent() {
    let (tree, scope) = tree_of_three();
    let at = |path: &str| scope.resolve(path, Access::Write).unwrap();
    assert_eq!(names(&tree, &scope, "/").await, ["deep", "notes"]);
    assert_eq!(names(&tree, &scope, "/deep").await, ["inside"]);
    assert!(names(&tree, &scope, "/notes").await.is_empty());
    for folder in ["/", "/deep", "/deep/inside", "/notes"] {
        assert_eq!(tree.stat(&at(folder)).await.unwrap().kind, Kind::Directory);
        for result in [
            tree.write(&at(folder), vec![], Expect::Anything)
                .await
                .err(),
            tree.read(&at(folder)).await.err(),
            tree.remove(&at(folder)).await.err(),
        ] {
            assert!(
                matches!(result, Some(Error::IsDirectory { .. })),
                "{folder}: {result:?}"
            );
        }
    }
    for file in ["/notes/a", "/deep/inside/a", "/deep/a", "/a"] {
        let bytes = file.as_bytes().to_vec();
        tree.write(&at(file), bytes, Expect::Absent).await.unwrap();
    }
    assert_eq!(names(&tree, &scope, "/").await, ["a", "deep", "notes"]);
    assert_eq!(names(&tree, &scope, "/deep").await, ["a", "inside"]);
}

/// The longest mount path decides, and it is removed from the path.
#[tokio::test]
async fn a_path_is_routed_by_its_longest_prefix() {
    let shared = Arc::new(Memory::new());
    let memory = |at: &str, backend: Arc<dyn Backend>| Mount {
        at: at.into(),
        backend,
        scope: Scope::detached(),
        visibility: Visibility::Listed,
    };
    let (tree, scope) = Composite::new(
        vec![
            memory("/", Arc::new(Memory::new())),
            memory("/notes", Arc::clone(&shared) as Arc<dyn Backend>),
            memory("/notes/old", Arc::new(Memory::new())),
        ],
        "/".into(),
    );
    for path in ["/notes/a", "/notes/old/b", "/notesy", "/notes//./c"] {
        let path = scope.resolve(path, Access::Write).unwrap();
        tree.write(&path, vec![], Expect::Absent).await.unwrap();
    }
    let alone = Scope::detached();
    let entries = shared
        .list(&alone.resolve("/", Access::Read).unwrap())
        .await;
    let entries: Vec<_> = entries
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(entries, ["a", "c"]);
    assert_eq!(names(&tree, &scope, "/notes").await, ["a", "c", "old"]);
    assert_eq!(names(&tree, &scope, "/").await, ["notes", "notesy"]);
}
