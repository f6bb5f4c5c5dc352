//! The store passes the conformance suite for backends, with and without other namespaces.

mod common;

use common::{folder, store};
use haft_ops::backend::Expect;
use haft_ops::{Access, Backend, Scope};
use haft_store::{Database, Store};
use haft_testing::conformance;

#[tokio::test]
async fn alone() {
    conformance::all(|| {
        let folder = folder();
        (Box::new(store(&folder)), Scope::detached(), folder)
    })
    .await;
}

/// Runs the cases of the suite one after the other, each in a namespace of a database that
/// is full of the same paths in namespaces with similar names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_others() {
    let folder = folder();
    let database = Database::open(folder.path().join("store.db")).unwrap();
    let case = std::cell::Cell::new(0);
    let names = ["", "a", "a/", "a/x", "a0", "d", "/", "%", "é", "a\nb"];
    for name in names {
        let store = Store::new(database.clone(), name);
        for path in ["a", "d/f", "f", "counter", "large", "folder/x", "z/y"] {
            let path = Scope::detached().resolve(path, Access::Write).unwrap();
            let bytes = name.as_bytes().to_vec();
            store.write(&path, bytes, Expect::Absent).await.unwrap();
        }
    }
    conformance::all(|| {
        case.set(case.get() + 1);
        let namespace = format!("a/{}", case.get());
        let store = Store::new(database.clone(), namespace);
        (Box::new(store), Scope::detached(), ())
    })
    .await;
    for name in names {
        let store = Store::new(database.clone(), name);
        let root = Scope::detached().resolve("/", Access::Read).unwrap();
        let entries = store.list(&root).await.unwrap();
        let listed: Vec<_> = entries.iter().map(|entry| entry.name.as_os_str()).collect();
        assert_eq!(listed, ["a", "counter", "d", "f", "folder", "large", "z"]);
    }
}
