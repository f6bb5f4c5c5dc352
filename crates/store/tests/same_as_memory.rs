//! A store and the memory backend give the same results for any sequence of operations.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test, which the lints see only in functions marked so"
)]

mod common;

use common::{folder, get, path, store};
use haft_ops::backend::{Expect, Kind, Memory};
use haft_ops::{Backend, Error};
use proptest::prelude::*;
use std::mem::discriminant;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Act {
    Write(String, Vec<u8>, Expected),
    Remove(String),
    Look(String),
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    Anything,
    Absent,
    Current,
    Other,
}

/// Few and similar names, so that paths often collide.
fn name() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "a!", "a.b", "a0", "b", "%", "é"]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn act() -> impl Strategy<Value = Act> {
    let expected = prop::sample::select(vec![
        Expected::Anything,
        Expected::Anything,
        Expected::Absent,
        Expected::Current,
        Expected::Other,
    ]);
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        3 => (name(), bytes, expected).prop_map(|(name, bytes, expected)| Act::Write(name, bytes, expected)),
        1 => name().prop_map(Act::Remove),
        2 => prop_oneof![name(), Just(".".to_owned())].prop_map(Act::Look),
    ]
}

fn same<T: PartialEq + std::fmt::Debug>(one: Result<T, Error>, other: Result<T, Error>) {
    match (one, other) {
        (Ok(one), Ok(other)) => assert_eq!(one, other),
        (Err(one), Err(other)) => {
            assert_eq!(discriminant(&one), discriminant(&other), "{one} / {other}")
        }
        (one, other) => panic!("{one:?} / {other:?}"),
    }
}

async fn bytes(memory: &Memory, name: &str) -> Result<Vec<u8>, Error> {
    let mut content = memory.read(&path(name)).await?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut content.reader, &mut bytes).unwrap();
    Ok(bytes)
}

/// Kind, size and name of all entries. Times are ignored because they differ.
async fn listed(backend: &dyn Backend, name: &str) -> Result<Vec<(String, Kind, u64)>, Error> {
    let entries = backend.list(&path(name)).await?;
    Ok(entries
        .into_iter()
        .map(|entry| {
            (
                entry.name.into_string().unwrap(),
                entry.stat.kind,
                entry.stat.size,
            )
        })
        .collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_gives_the_same_results(acts in prop::collection::vec(act(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = folder();
            let (store, memory) = (store(&folder), Memory::new());
            for act in acts {
                match act {
                    Act::Write(name, content, expected) => {
                        let expect = match expected {
                            Expected::Anything => Expect::Anything,
                            Expected::Absent => Expect::Absent,
                            Expected::Current => Expect::Exactly(
                                bytes(&memory, &name).await.unwrap_or_default().into(),
                            ),
                            Expected::Other => Expect::Exactly(Arc::from(&b"something else, longer"[..])),
                        };
                        let there = path(&name);
                        same(
                            store.write(&there, content.clone(), expect.clone()).await,
                            memory.write(&there, content, expect).await,
                        );
                    }
                    Act::Remove(name) => {
                        same(store.remove(&path(&name)).await, memory.remove(&path(&name)).await);
                    }
                    Act::Look(name) => {
                        same(get(&store, &name).await, bytes(&memory, &name).await);
                        same(listed(&store, &name).await, listed(&memory, &name).await);
                        let about = |stat: haft_ops::backend::Stat| (stat.kind, stat.size);
                        same(
                            store.stat(&path(&name)).await.map(about),
                            memory.stat(&path(&name)).await.map(about),
                        );
                    }
                }
            }
            same(listed(&store, ".").await, listed(&memory, ".").await);
        });
    }
}
