//! Finding entries in real trees.

use super::*;
use crate::search::tests::tree::{Hintless, Tree, run};
use std::time::Duration;

fn all(path: FilePath) -> Glob {
    Glob {
        path,
        matching: Matching::Everything,
        dots: Dots::Match,
        kinds: Kinds::Both,
        ignored: IgnoreFiles::Honour,
        max: 1_000,
        deadline: None,
        cancel: CancellationToken::new(),
    }
}

/// Runs both implementations, which must agree.
fn found(tree: &Tree, change: impl Fn(&mut Glob)) -> Globbed {
    let request = || {
        let mut request = all(tree.path("."));
        change(&mut request);
        request
    };
    let disk = run(entries(&tree.disk, request(), &|_| ())).unwrap();
    let other = run(entries(&Hintless(tree.disk.clone()), request(), &|_| ())).unwrap();
    assert_eq!(disk, other);
    disk
}

fn lines(globbed: &Globbed) -> Vec<String> {
    globbed
        .entries
        .iter()
        .map(|entry| {
            format!(
                "{}{}",
                entry.below.display(),
                if entry.is_dir() { "/" } else { "" }
            )
        })
        .collect()
}

fn by(pattern: &str, anchored: Anchored) -> Matching {
    Matching::Glob {
        pattern: pattern.to_owned(),
        anchored,
    }
}

fn sample() -> Tree {
    let tree = Tree::new();
    for path in [
        "a.txt",
        "a/b.txt",
        "a/.hid/c.txt",
        ".dot",
        "a-b/d.rs",
        "out/e.txt",
        ".git/config",
    ] {
        tree.file(path, "");
    }
    tree.file(".gitignore", "out/\n");
    tree.folder("empty");
    tree.link("link", "a");
    tree.link("broken", "nowhere");
    tree.fifo("fifo");
    tree
}

#[test]
fn entries_are_sorted_by_their_lines() {
    let globbed = found(&sample(), |_| ());
    assert_eq!(
        lines(&globbed),
        [
            ".dot",
            ".gitignore",
            "a-b/",
            "a-b/d.rs",
            "a.txt",
            "a/",
            "a/.hid/",
            "a/.hid/c.txt",
            "a/b.txt",
            "broken",
            "empty/",
            "fifo",
            "link/",
        ]
    );
    assert_eq!(
        (globbed.total, globbed.visited, globbed.skipped.total()),
        (13, 9, 0)
    );
}

#[test]
fn names_globs_and_types_select_entries() {
    let tree = sample();
    let with = |matching: Matching, kinds: Kinds| {
        lines(&found(&tree, |glob| {
            glob.matching = matching.clone();
            glob.kinds = kinds;
        }))
    };
    assert_eq!(
        with(by("*.txt", Anchored::AnyDepthByName), Kinds::Both),
        ["a.txt", "a/.hid/c.txt", "a/b.txt"]
    );
    assert_eq!(
        with(by("a/*.txt", Anchored::AnyDepthByName), Kinds::Both),
        ["a/b.txt"]
    );
    assert_eq!(
        with(by("a*/", Anchored::AnyDepthByName), Kinds::Both),
        ["a-b/", "a/"]
    );
    assert_eq!(
        with(Matching::NameContains("b".into()), Kinds::Files),
        ["a/b.txt", "broken"]
    );
    assert_eq!(
        with(Matching::NameContains("b".into()), Kinds::Directories),
        ["a-b/"]
    );
    assert_eq!(
        with(Matching::Everything, Kinds::Directories),
        ["a-b/", "a/", "a/.hid/", "empty/", "link/"]
    );
    // A link counts as its target.
    let linked = Matching::NameContains("ink".into());
    assert_eq!(with(linked.clone(), Kinds::Both), ["link/"]);
    assert_eq!(with(linked, Kinds::Files), [""; 0]);
    assert_eq!(
        with(by("li*/", Anchored::AnyDepthByName), Kinds::Both),
        ["link/"]
    );
}

#[test]
fn anchored_globs_match_only_explicit_dots() {
    let tree = sample();
    let with = |pattern: &str| {
        lines(&found(&tree, |glob| {
            glob.matching = by(pattern, Anchored::ToPath);
            glob.dots = Dots::ExplicitOnly;
            glob.ignored = IgnoreFiles::Disregard;
        }))
    };
    assert_eq!(with("*.txt"), ["a.txt"]);
    assert_eq!(with("**/*.txt"), ["a.txt", "a/b.txt", "out/e.txt"]);
    assert_eq!(with("a/.hid/*"), ["a/.hid/c.txt"]);
    assert_eq!(with(".*"), [".dot", ".git/", ".gitignore"]);
    assert_eq!(with("{a,out}/*.txt"), ["a/b.txt", "out/e.txt"]);
    // Folders that cannot contain a match are not entered.
    let globbed = found(&tree, |glob| glob.matching = by("*.txt", Anchored::ToPath));
    assert_eq!(globbed.visited, 6, "folders are not counted");
}

#[test]
fn the_first_entries_are_the_same_every_time() {
    let tree = Tree::new();
    for file in 0..500 {
        tree.file(format!("d{}/e{}/f{file}", file % 7, file % 5), "");
    }
    let every = lines(&found(&tree, |_| ()));
    for max in [0, 1, 10, 200] {
        for _ in 0..20 {
            let globbed = found(&tree, |glob| glob.max = max);
            assert_eq!(
                lines(&globbed),
                every.iter().take(max).cloned().collect::<Vec<_>>()
            );
            assert_eq!(globbed.total, every.len() as u64);
        }
    }
}

#[test]
fn two_hundred_thousand_entries_in_one_folder() {
    let tree = Tree::new();
    tree.file("f", "");
    // Links to one file are quick to create.
    for number in 0..200_000 {
        std::os::unix::fs::symlink("f", tree.root.join(format!("n{number:06}"))).unwrap();
    }
    let mut request = all(tree.path("."));
    request.max = 3;
    let globbed = run(entries(&tree.disk, request, &|_| ())).unwrap();
    assert_eq!(
        (lines(&globbed), globbed.total),
        (
            vec!["f".to_owned(), "n000000".to_owned(), "n000001".to_owned()],
            200_001
        )
    );
}

#[test]
fn a_deep_tree_is_walked() {
    let tree = Tree::new();
    let path = rustix::fs::OFlags::PATH;
    let mut dir = rustix::fs::open(&tree.root, path, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..5_000 {
        for name in ["a", "b"] {
            rustix::fs::mkdirat(&dir, name, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        }
        dir = rustix::fs::openat(&dir, "a", path, rustix::fs::Mode::empty()).unwrap();
    }
    let globbed = run(entries(&tree.disk, all(tree.path(".")), &|_| ())).unwrap();
    assert_eq!((globbed.total, globbed.skipped.total()), (10_000, 0));
}

#[test]
fn a_file_is_an_error_and_stopping_is_not() {
    let tree = sample();
    let file = run(entries(&tree.disk, all(tree.path("a.txt")), &|_| ()));
    assert!(matches!(file, Err(Error::NotADirectory { .. })));
    let mut request = all(tree.path("."));
    request.deadline = Instant::now().checked_sub(Duration::from_secs(1));
    request.matching = by("**", Anchored::ToPath);
    assert!(run(entries(&tree.disk, request, &|_| ())).is_ok());
    let request = all(tree.path("."));
    request.cancel.cancel();
    assert_eq!(
        run(entries(&tree.disk, request, &|_| ())).unwrap().stopped,
        Some(Stopped::Cancelled)
    );
}

#[test]
fn entries_hidden_by_rules_are_not_listed() {
    let tree = Tree::new();
    for file in ["open", "shut/a", "shut/in/b"] {
        tree.file(file, "");
    }
    tree.link("way", "shut/in");
    let globbed = found(&tree, |glob| {
        glob.path = tree.judged(&["shut"], &["shut/in"])
    });
    assert_eq!(lines(&globbed), ["open", "shut/in/", "shut/in/b", "way/"]);
    assert_eq!(globbed.skipped.excluded.denied, 2);
    let globbed = found(&tree, |glob| glob.path = tree.judged(&["shut"], &[]));
    assert_eq!(lines(&globbed), ["open"]);
}

#[test]
fn a_write_in_progress_is_not_shown() {
    let tree = Tree::new();
    tree.file("a.txt", "x");
    tree.file("sub/.haft-0123456789abcdef.tmp", "half of it");
    tree.file(".haft-0123456789abcdef.tmp", "half of it");
    // Files of another program, and a folder.
    tree.file(".haft-notes.tmp", "x");
    tree.file(".haft-fedcba9876543210.tmp/b.txt", "x");
    let globbed = found(&tree, |_| ());
    assert_eq!(
        lines(&globbed),
        [
            ".haft-fedcba9876543210.tmp/",
            ".haft-fedcba9876543210.tmp/b.txt",
            ".haft-notes.tmp",
            "a.txt",
            "sub/"
        ]
    );
    assert_eq!(globbed.visited, 3, "it is not counted either");
    let request = crate::list::List {
        path: tree.path("."),
        hidden: crate::list::Hidden::Show,
    };
    let listed = run(crate::list::directory(&tree.disk, &request)).unwrap();
    let names: Vec<_> = listed.entries.iter().map(|entry| &entry.name).collect();
    assert_eq!(
        names,
        [
            ".haft-fedcba9876543210.tmp",
            ".haft-notes.tmp",
            "a.txt",
            "sub"
        ]
    );
}
