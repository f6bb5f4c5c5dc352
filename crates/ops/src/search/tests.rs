//! Searching real trees.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make trees on the real disk"
)]

mod both_walks;
mod edge_cases;
pub(crate) mod tree;

use super::*;
use tree::{Hintless, Tree, run};

fn search(path: FilePath, pattern: &str) -> Search {
    Search {
        path,
        pattern: Pattern::Regex(pattern.to_owned()),
        case: Case::Sensitive,
        glob: None,
        collect: Collect::Lines,
        context: 0,
        max_matches: 100,
        max_line: 200,
        deadline: None,
        cancel: CancellationToken::new(),
    }
}

fn found(tree: &Tree, change: impl FnOnce(&mut Search)) -> Searched {
    found_in(tree, ".", change)
}

/// Runs both implementations, which must agree.
fn found_in(tree: &Tree, path: &str, change: impl FnOnce(&mut Search)) -> Searched {
    let mut request = search(tree.path(path), "needle");
    change(&mut request);
    let Search { glob, pattern, .. } = &request;
    let again = Search {
        glob: glob.clone(),
        pattern: pattern.clone(),
        path: request.path.clone(),
        cancel: request.cancel.clone(),
        ..request
    };
    let disk = run(files(&tree.disk, request, &|_| ())).unwrap();
    let other = run(files(&Hintless(tree.disk.clone()), again, &|_| ())).unwrap();
    assert_eq!(disk, other);
    disk
}

/// `path:line:text` for matches, `path-line-text` for context.
fn shown(searched: &Searched) -> Vec<String> {
    let mut rows = Vec::new();
    for file in &searched.files {
        for line in &file.lines {
            let mark = if line.kind == LineKind::Match {
                ':'
            } else {
                '-'
            };
            rows.push(format!(
                "{}{mark}{}{mark}{}",
                file.below.display(),
                line.number,
                line.text
            ));
        }
    }
    rows
}

#[test]
fn matches_come_in_path_order_with_numbers() {
    let tree = Tree::new();
    tree.file("b.txt", "x\nneedle two\n");
    tree.file("a/c.txt", "needle one\ny\nneedle again");
    tree.file("a.txt", "needle zero\r\nNeedle\r\n");
    let searched = found(&tree, |_| ());
    // `.` sorts before `/`.
    assert_eq!(
        shown(&searched),
        [
            "a.txt:1:needle zero",
            "a/c.txt:1:needle one",
            "a/c.txt:3:needle again",
            "b.txt:2:needle two"
        ]
    );
    assert_eq!(
        (searched.shown, searched.total, searched.searched),
        (4, 4, 3)
    );
    assert_eq!(searched.skipped.total(), 0);
    assert_eq!(searched.stopped, None);
    assert_eq!(
        found(&tree, |search| search.case = Case::Insensitive).total,
        5
    );
    assert_eq!(
        found(&tree, |search| search.pattern =
            Pattern::Regex("zero$".into()))
        .total,
        1,
        "CRLF ends a line"
    );
    assert_eq!(
        found(&tree, |search| search.pattern =
            Pattern::Literal("needle.".into()))
        .total,
        0
    );
}

#[test]
fn both_line_endings_end_a_line() {
    let tree = Tree::new();
    tree.file("dos", "a needle\r\nb\r\n");
    tree.file("unix", "a needle\nb\n");
    let total = |pattern: &str| {
        found(&tree, |search| {
            search.pattern = Pattern::Regex(pattern.to_owned())
        })
        .total
    };
    assert_eq!(total("needle$"), 2);
    assert_eq!(total("^b$"), 2);
    assert_eq!(total(r"needle\r$"), 1);
    assert_eq!(total(r"\r"), 2);
    assert_eq!(total("^$"), 0);
}

#[test]
fn context_lines_are_not_repeated() {
    let tree = Tree::new();
    tree.file("f", "1\n2\nneedle 3\n4\nneedle 5\n6\n7\n8\n9\nneedle 10");
    let searched = found(&tree, |search| search.context = 1);
    assert_eq!(
        shown(&searched),
        [
            "f-2-2",
            "f:3:needle 3",
            "f-4-4",
            "f:5:needle 5",
            "f-6-6",
            "f-9-9",
            "f:10:needle 10"
        ]
    );
    let searched = found(&tree, |search| {
        search.context = 1;
        search.max_matches = 1;
    });
    assert_eq!(shown(&searched), ["f-2-2", "f:3:needle 3", "f-4-4"]);
    assert_eq!(
        (searched.shown, searched.total, searched.files[0].matches),
        (1, 3, 3)
    );
}

#[test]
fn a_single_file_can_be_searched() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n");
    tree.file("x.log", "needle\n");
    tree.file("binary", "needle\n\0");
    let searched = found_in(&tree, "x.log", |search| search.glob = Some("*.rs".into()));
    assert_eq!(searched.files[0].below, PathBuf::new());
    assert_eq!((searched.total, searched.searched), (1, 1));
    assert_eq!(found_in(&tree, "binary", |_| ()).skipped.binary, 1);
    let missing = run(files(&tree.disk, search(tree.path("nope"), "x"), &|_| ()));
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    tree.fifo("fifo");
    let fifo = run(files(&tree.disk, search(tree.path("fifo"), "x"), &|_| ()));
    assert!(matches!(fifo, Err(Error::NotRegular { .. })));
}

#[test]
fn ignore_files_apply_without_a_repository() {
    let tree = Tree::new();
    for path in [
        "a.log",
        "b.txt",
        "keep.log",
        "sub/a.log",
        "sub/c.tmp",
        "sub/deep/c.tmp",
        "out/x",
        "sub/out/x",
        ".hidden/x",
    ] {
        tree.file(path, "needle\n");
    }
    tree.file(".gitignore", "\u{FEFF}*.log\r\n!keep.log\n/out/\n[\n");
    tree.file("sub/.ignore", "*.tmp\n");
    tree.file("sub/deep/.gitignore", "!c.tmp\n");
    tree.file(".git/config", "needle\n");
    tree.file(".git/info/exclude", "b.txt\n");
    tree.file("sub/.svn/x", "needle\n");
    tree.file("worktree/.git", "gitdir: needle\n");
    let paths: Vec<String> = found(&tree, |_| ())
        .files
        .iter()
        .map(|file| file.below.display().to_string())
        .collect();
    // `.ignore` overrides `.gitignore` at every level.
    assert_eq!(paths, [".hidden/x", "keep.log", "sub/out/x"]);
}

#[test]
fn git_rules_end_at_the_repository() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n");
    tree.file(".ignore", "*.tmp\n");
    tree.file("inner/.git/config", "");
    tree.file("inner/x.log", "needle\n");
    tree.file("inner/x.tmp", "needle\n");
    tree.file("inner/sub/x.log", "needle\n");
    assert_eq!(
        shown(&found(&tree, |_| ())),
        ["inner/sub/x.log:1:needle", "inner/x.log:1:needle"]
    );
    // Neither file applies if the search starts inside.
    let paths = shown(&found_in(&tree, "inner", |_| ()));
    assert_eq!(
        paths,
        ["sub/x.log:1:needle", "x.log:1:needle", "x.tmp:1:needle"]
    );
}

#[test]
fn ignore_files_above_the_start_apply() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\nbuild/\n/logs/**\n");
    for path in [
        "sub/a.log",
        "sub/a.txt",
        "build/a.txt",
        "build/in/a.log",
        "logs/a.txt",
    ] {
        tree.file(path, "needle\n");
    }
    assert_eq!(shown(&found_in(&tree, "sub", |_| ())), ["a.txt:1:needle"]);
    // Requested by name, though ignored.
    assert_eq!(
        shown(&found_in(&tree, "build", |_| ())),
        ["a.txt:1:needle", "in/a.log:1:needle"]
    );
    assert_eq!(
        shown(&found_in(&tree, "build/in", |_| ())),
        ["a.log:1:needle"]
    );
    assert_eq!(shown(&found_in(&tree, "logs", |_| ())), ["a.txt:1:needle"]);
    assert_eq!(shown(&found(&tree, |_| ())), ["sub/a.txt:1:needle"]);
}

#[test]
fn a_stray_ignore_file_above_the_scope_has_no_effect() {
    let tree = Tree::new();
    tree.file(".gitignore", "*\n");
    tree.file("home/work/a.txt", "needle\n");
    let inner = tree.rooted_at("home/work");
    assert_eq!(found(&inner, |_| ()).total, 1);
    // But a repository's rules apply everywhere below its root.
    tree.file("home/.git/HEAD", "");
    tree.file("home/.gitignore", "a.*\n");
    tree.file("home/work/b.txt", "needle\n");
    let request = search(inner.path("."), "needle");
    assert_eq!(
        shown(&run(files(&inner.disk, request, &|_| ())).unwrap()),
        ["b.txt:1:needle"]
    );
}

#[test]
fn globs_select_files() {
    let tree = Tree::new();
    for path in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.py", "test/e.rs"] {
        tree.file(path, "needle\n");
    }
    let paths = |glob: &str| {
        let searched = found(&tree, |search| search.glob = Some(glob.to_owned()));
        assert_eq!(searched.searched, searched.total);
        searched
            .files
            .iter()
            .map(|file| file.below.display().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        paths("*.rs"),
        ["a.rs", "src/b.rs", "src/deep/c.rs", "test/e.rs"]
    );
    assert_eq!(paths("src/*.rs"), ["src/b.rs"]);
    assert_eq!(
        paths("src/**/*.{rs,py}"),
        ["src/b.rs", "src/d.py", "src/deep/c.rs"]
    );
    assert_eq!(paths("{a,e}.rs"), ["a.rs", "test/e.rs"]);
    assert_eq!(paths("src/"), ["src/b.rs", "src/d.py", "src/deep/c.rs"]);
    let mut request = search(tree.path("."), "x");
    request.glob = Some("[".to_owned());
    assert!(matches!(
        run(files(&tree.disk, request, &|_| ())),
        Err(Error::InvalidGlob { .. })
    ));
}

#[test]
fn counts_list_every_file() {
    let tree = Tree::new();
    tree.file("a", "needle\nneedle\n");
    tree.file("b", "needle\n");
    let searched = found(&tree, |search| {
        search.collect = Collect::Counts;
        search.max_matches = 1;
    });
    let counts: Vec<u64> = searched.files.iter().map(|file| file.matches).collect();
    assert_eq!((counts, searched.shown, searched.total), (vec![2, 1], 0, 3));
    assert!(searched.files.iter().all(|file| file.lines.is_empty()));
}

#[test]
fn the_first_matches_are_the_same_every_time() {
    let tree = Tree::new();
    for file in 0..200 {
        let text = format!("needle {file}\nno\nneedle again\n").repeat(1 + file % 3);
        tree.file(format!("d{}/{}/f{file}", file % 7, file % 3), &text);
    }
    let all = found(&tree, |search| search.max_matches = 10_000);
    for max in [0, 1, 2, 7, 50] {
        let first = found(&tree, |search| search.max_matches = max);
        assert_eq!(
            shown(&first),
            shown(&all).into_iter().take(max).collect::<Vec<_>>()
        );
        assert_eq!((first.shown, first.total), (max as u64, all.total));
        for _ in 0..20 {
            assert_eq!(found(&tree, |search| search.max_matches = max), first);
        }
    }
}

#[test]
fn both_walks_skip_and_count_entries_hidden_by_rules() {
    let tree = Tree::new();
    for file in ["open", "shut/a", "shut/in/b", "shut/in/ner/c", "x/shut"] {
        tree.file(file, "needle");
    }
    tree.link("x/way", "../shut/a");
    let searched = found(&tree, |search| {
        search.path = tree.judged(&["shut"], &["shut/in/ner"]);
    });
    assert_eq!(
        shown(&searched),
        ["open:1:needle", "shut/in/ner/c:1:needle", "x/shut:1:needle"]
    );
    // `shut`, its content, and the link to it.
    assert_eq!(searched.skipped.excluded.denied, 5);
    assert_eq!(searched.skipped.total(), 5);
    let whole = found(&tree, |search| search.path = tree.judged(&["shut"], &[]));
    assert_eq!(shown(&whole), ["open:1:needle", "x/shut:1:needle"]);
    assert_eq!(whole.skipped.excluded.denied, 2);
}
