//! Random trees, walked by every implementation: all must return the same results.

use super::tree::{Hintless, Tree, run};
use super::*;
use crate::backend::{Composite, Expect, Memory as MemoryBackend, Mount};
use crate::glob::{self, Kinds, Matching};
use crate::scope::Visibility;
use crate::{Access, Scope};
use proptest::prelude::*;
use std::collections::BTreeMap;

const RULES: [&str; 18] = [
    "*.log", "!*.log", "a", "!a", "/b", "b/", "!b/", "c/*", "!c/a", "**/d", "a/**/b", "*.t*",
    "!.x", ".x", "# no", "\\!a", "d/**", "a.log\r",
];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "c", "d", ".x", "a.log", "b.txt", "c.tmp", "e-f", "é",
    ])
}

fn rules() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(RULES.to_vec()), 1..5)
        .prop_map(|lines| lines.join("\n").into_bytes())
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(vec![
        b"needle\n".to_vec(),
        b"one\r\nneedle two\r\nthree\r\n".to_vec(),
        b"\xEF\xBB\xBFneedle with a mark\nneedle".to_vec(),
        b"\xFF\xFEn\0e\0e\0d\0l\0e\0\n\0".to_vec(),
        b"needle\n\0binary".to_vec(),
        b"\xFF\xC3 needle \x80\n\nneedle\n\n\nneedle".to_vec(),
        b"nothing here\n".to_vec(),
        Vec::new(),
        b"x".repeat(300_000)
            .into_iter()
            .chain(*b"\nneedle far down\n")
            .collect(),
    ])
}

#[derive(Debug, Clone)]
struct Request {
    start: Vec<&'static str>,
    glob: Option<&'static str>,
    context: usize,
    max: usize,
}

fn files_of_a_tree() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let folder = || prop::collection::vec(name(), 0..4).prop_map(|parts| parts.join("/"));
    let plain = (folder(), name(), content())
        .prop_map(|(folder, name, content)| (format!("{folder}/{name}"), content));
    let ignore = (
        folder(),
        prop::sample::select(vec![".gitignore", ".ignore", ".git/info/exclude", ".git/x"]),
        rules(),
    )
        .prop_map(|(folder, name, content)| (format!("{folder}/{name}"), content));
    let entries = (
        prop::collection::vec(plain, 1..25),
        prop::collection::vec(ignore, 0..5),
    );
    entries.prop_map(|(files, ignores)| {
        let mut tree: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (path, content) in files.into_iter().chain(ignores) {
            let path = path.trim_start_matches('/').to_owned();
            // If a name is both a file and a folder, the first one wins.
            let below = format!("{path}/");
            let above = |other: &String| path.starts_with(&format!("{other}/"));
            if !tree
                .keys()
                .any(|other| other.starts_with(&below) || above(other))
            {
                tree.insert(path, content);
            }
        }
        tree
    })
}

fn request() -> impl Strategy<Value = Request> {
    let glob = prop::option::of(prop::sample::select(vec![
        "*.log", "a/**", "**/b*", "{a,b}*", "[a-c]", "b/", "*/*/*",
    ]));
    (
        prop::collection::vec(name(), 0..2),
        glob,
        0_usize..3,
        prop::sample::select(vec![1_usize, 3, 100]),
    )
        .prop_map(|(start, glob, context, max)| Request {
            start,
            glob,
            context,
            max,
        })
}

fn search_of(path: FilePath, request: &Request) -> Search {
    Search {
        path,
        pattern: Pattern::Literal("needle".to_owned()),
        case: Case::Sensitive,
        glob: request.glob.map(str::to_owned),
        collect: Collect::Lines,
        context: request.context,
        max_matches: request.max,
        max_line: 80,
        deadline: None,
        cancel: CancellationToken::new(),
    }
}

fn glob_of(path: FilePath, request: &Request, ignored: IgnoreFiles, dots: Dots) -> glob::Glob {
    let matching = match request.glob {
        None => Matching::Everything,
        Some(pattern) => Matching::Glob {
            pattern: pattern.to_owned(),
            anchored: Anchored::AnyDepthByName,
        },
    };
    glob::Glob {
        path,
        matching,
        dots,
        kinds: Kinds::Both,
        ignored,
        max: request.max,
        deadline: None,
        cancel: CancellationToken::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn every_walk_returns_the_same_results(files in files_of_a_tree(), request in request()) {
        let tree = Tree::new();
        let memory = MemoryBackend::new();
        let detached = Scope::detached();
        run(async {
            for (path, content) in &files {
                tree.file(path, content);
                let path = detached.resolve(&format!("/{path}"), Access::Write).unwrap();
                memory.write(&path, content.clone(), Expect::Absent).await.unwrap();
            }
            let start = if request.start.is_empty() { ".".to_owned() } else { request.start.join("/") };
            let on_disk = tree.path(&start);
            let in_memory = detached.resolve(&format!("/{start}"), Access::Read).unwrap();
            let hintless = Hintless(tree.disk.clone());
            let disk = super::files(&tree.disk, search_of(on_disk.clone(), &request), &|_| ()).await.ok();
            let other = super::files(&hintless, search_of(on_disk.clone(), &request), &|_| ()).await.ok();
            let third = super::files(&memory, search_of(in_memory.clone(), &request), &|_| ()).await.ok();
            prop_assert_eq!(&disk, &other);
            prop_assert_eq!(&disk, &third);
            for (ignored, dots) in [(IgnoreFiles::Honour, Dots::Match), (IgnoreFiles::Disregard, Dots::ExplicitOnly)] {
                let disk = glob::entries(&tree.disk, glob_of(on_disk.clone(), &request, ignored, dots), &|_| ()).await.ok();
                let other = glob::entries(&hintless, glob_of(on_disk.clone(), &request, ignored, dots), &|_| ()).await.ok();
                let third = glob::entries(&memory, glob_of(in_memory.clone(), &request, ignored, dots), &|_| ()).await.ok();
                prop_assert_eq!(&disk, &other);
                prop_assert_eq!(&disk, &third);
            }
            Ok(())
        })?;
    }
}

/// Whether a path can exist in a tree that has mounts at `a` and `b/c`.
fn fits_mounts(path: &str) -> bool {
    let ignores = [".gitignore", ".ignore", ".git"];
    !["a", "b", "b/c"].contains(&path) && !path.split('/').any(|part| ignores.contains(&part))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn several_backends_act_as_one_tree(files in files_of_a_tree(), request in request()) {
        let tree = Tree::new();
        let whole = MemoryBackend::new();
        let detached = Scope::detached();
        let mount = |at: &str, backend: Arc<dyn Backend>, scope: Scope| Mount {
            at: at.into(), backend, scope, visibility: Visibility::Listed,
        };
        let (composite, scope) = Composite::new(vec![
            mount("/", Arc::new(MemoryBackend::new()), Scope::detached()),
            mount("/a", Arc::new(tree.disk.clone()), tree.scope.clone()),
            mount("/b/c", Arc::new(MemoryBackend::new()), Scope::detached()),
        ], "/".into());
        run(async {
            for (path, content) in files.iter().filter(|(path, _)| fits_mounts(path)) {
                let alone = detached.resolve(&format!("/{path}"), Access::Write).unwrap();
                whole.write(&alone, content.clone(), Expect::Absent).await.unwrap();
                let routed = scope.resolve(&format!("/{path}"), Access::Write).unwrap();
                composite.write(&routed, content.clone(), Expect::Absent).await.unwrap();
            }
            let start = format!("/{}", request.start.join("/"));
            let alone = detached.resolve(&start, Access::Read).unwrap();
            let routed = scope.resolve(&start, Access::Read).unwrap();
            let one = super::files(&whole, search_of(alone.clone(), &request), &|_| ()).await;
            let many = super::files(&composite, search_of(routed.clone(), &request), &|_| ()).await;
            match (one, many) {
                (Ok(one), Ok(many)) => prop_assert_eq!(one, many),
                // Mounts are folders even if they are empty.
                (Err(_), Ok(many)) => prop_assert_eq!(many.searched, 0),
                (one, many) => prop_assert_eq!(one.is_ok(), many.is_ok()),
            }
            for dots in [Dots::Match, Dots::ExplicitOnly] {
                let files = |path| glob::Glob {
                    kinds: Kinds::Files,
                    ..glob_of(path, &request, IgnoreFiles::Disregard, dots)
                };
                let one = glob::entries(&whole, files(alone.clone()), &|_| ()).await;
                let many = glob::entries(&composite, files(routed.clone()), &|_| ()).await;
                match (one, many) {
                    (Ok(one), Ok(many)) => prop_assert_eq!(one, many),
                    (Err(_), Ok(many)) => prop_assert_eq!(many.total, 0),
                    (one, many) => prop_assert_eq!(one.is_ok(), many.is_ok()),
                }
            }
            Ok(())
        })?;
    }
}

/// A walk does not enter an excluded folder just because something is mounted in it.
#[test]
fn a_mount_below_an_excluded_folder_is_not_walked() {
    let mount = |at: &str| Mount {
        at: at.into(),
        backend: Arc::new(MemoryBackend::new()),
        scope: Scope::detached(),
        visibility: Visibility::Listed,
    };
    let mounts = vec![mount("/"), mount("/b/c"), mount("/.x/m")];
    let (composite, scope) = Composite::new(mounts, "/".into());
    let request = |glob| Request {
        start: Vec::new(),
        glob,
        context: 0,
        max: 10,
    };
    run(async {
        for path in ["/b/c/a", "/.x/m/a"] {
            let path = scope.resolve(path, Access::Write).unwrap();
            let content = b"needle".to_vec();
            composite
                .write(&path, content, Expect::Absent)
                .await
                .unwrap();
        }
        let start = scope.resolve("/", Access::Read).unwrap();
        let found = async |glob, dots| {
            let glob = glob_of(start.clone(), &request(glob), IgnoreFiles::Disregard, dots);
            let files = glob::Glob {
                kinds: Kinds::Files,
                ..glob
            };
            let found = glob::entries(&composite, files, &|_| ()).await.unwrap();
            (found.total, found.visited)
        };
        assert_eq!(found(Some("a/**"), Dots::Match).await, (0, 0));
        assert_eq!(found(Some("b/**"), Dots::Match).await, (1, 1));
        assert_eq!(found(None, Dots::Match).await, (2, 2));
        assert_eq!(found(None, Dots::ExplicitOnly).await, (1, 1));
        let search = search_of(start.clone(), &request(Some("b/**")));
        let searched = super::files(&composite, search, &|_| ()).await.unwrap();
        assert_eq!((searched.searched, searched.total), (1, 1));
    });
}
