//! Trees that could make a search hang, overflow or report wrong results.

use super::tree::{Hintless, Tree, run};
use super::*;
use crate::backend::{Content, Entry, Expect, Stat, Written};
use crate::{Access, Scope};
use async_trait::async_trait;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
fn special_files_are_skipped_and_counted() {
    let tree = Tree::new();
    tree.file("a", "needle\n");
    tree.file("nul", "needle\n\0");
    tree.fifo("fifo");
    tree.fifo(".gitignore");
    tree.link("link", "a");
    tree.link("broken", "nowhere");
    tree.link("around", ".");
    let searched = found(&tree, |_| ());
    assert_eq!(shown(&searched), ["a:1:needle"]);
    assert_eq!(
        searched.skipped,
        Skipped {
            binary: 1,
            special: 2,
            links: 3,
            unreadable: 0,
            too_long_lines: 0,
            excluded: crate::scope::filter::LeftOut::default(),
            hidden: 0
        }
    );
    assert_eq!((searched.searched, searched.skipped.total()), (1, 6));
    // Files that the glob excludes are not counted.
    let named = found(&tree, |search| search.glob = Some("br*".to_owned()));
    assert_eq!((named.searched, named.skipped.links), (0, 1));
}

#[test]
fn a_late_nul_byte_does_not_stop_the_search() {
    let tree = Tree::new();
    let text = |before: usize| {
        let lines = [b"text\n".repeat(before), b"nul \0 needle\nneedle".to_vec()];
        lines.concat()
    };
    tree.file("early", text(100));
    tree.file("late", text(10_000));
    tree.file("large", text(100_000));
    let searched = found(&tree, |_| ());
    assert_eq!((searched.total, searched.skipped.binary), (4, 1));
    let lines: Vec<u64> = searched
        .files
        .iter()
        .flat_map(|file| file.lines.iter().map(|line| line.number))
        .collect();
    assert_eq!(lines, [100_001, 100_002, 10_001, 10_002]);
}

#[test]
fn files_hidden_by_the_scope_are_not_searched() {
    let tree = Tree::new();
    tree.file("sub/own/secret", "needle\n");
    tree.file("sub/x", "needle\n");
    let tree = tree.hiding("sub/own");
    let disk = run(files(&tree.disk, search(tree.path("."), "needle"), &|_| ())).unwrap();
    assert_eq!(shown(&disk), ["sub/x:1:needle"]);
    assert_eq!(disk.skipped.hidden, 1);
    // A listing of the disk omits it already, so it cannot be counted.
    let other = run(files(
        &Hintless(tree.disk.clone()),
        search(tree.path("."), "needle"),
        &|_| (),
    ))
    .unwrap();
    assert_eq!(shown(&other), ["sub/x:1:needle"]);
}

#[test]
fn names_may_be_invalid_utf8() {
    let tree = Tree::new();
    let name = std::path::Path::new(std::ffi::OsStr::from_bytes(b"n\xFF\xFEme"));
    tree.file(name, "needle\n");
    assert_eq!(
        found(&tree, |search| search.glob = Some("n*".into())).files[0].below,
        name
    );
}

#[test]
fn unreadable_files_are_counted() {
    let tree = Tree::new();
    tree.file("closed/x", "needle\n");
    tree.file("file", "needle\n");
    tree.file("open", "needle\n");
    for path in ["closed", "file"] {
        std::fs::set_permissions(tree.root.join(path), std::fs::Permissions::from_mode(0o0))
            .unwrap();
    }
    // Root can read everything.
    let root = std::fs::read(tree.root.join("file")).is_ok();
    let searched = found(&tree, |_| ());
    std::fs::set_permissions(
        tree.root.join("closed"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(searched.skipped.unreadable, if root { 0 } else { 2 });
    assert_eq!(searched.total, if root { 3 } else { 1 });
}

#[test]
fn a_deep_tree_is_searched() {
    let tree = Tree::new();
    // Deeper than the maximum path length, so it is created and removed step by step.
    let mut dir = rustix::fs::open(
        &tree.root,
        rustix::fs::OFlags::PATH,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..5_000 {
        rustix::fs::mkdirat(&dir, "d", rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        dir = rustix::fs::openat(
            &dir,
            "d",
            rustix::fs::OFlags::PATH,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file =
        rustix::fs::openat(&dir, "f", flags, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    rustix::io::write(&file, b"needle\n").unwrap();
    let searched = run(files(&tree.disk, search(tree.path("."), "needle"), &|_| ())).unwrap();
    assert_eq!((searched.total, searched.skipped.total()), (1, 0));
    assert_eq!(searched.files[0].below.components().count(), 5_001);
}

#[test]
fn a_wide_folder_is_searched() {
    let tree = Tree::new();
    for file in 0..5_000 {
        tree.file(
            format!("f{file}"),
            if file % 100 == 0 { "needle\n" } else { "" },
        );
    }
    assert_eq!(found(&tree, |_| ()).total, 50);
}

#[test]
fn a_huge_sparse_file_is_binary_at_once() {
    let tree = Tree::new();
    tree.file("giant", "needle");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(tree.root.join("giant"))
        .unwrap();
    file.set_len(1 << 40).unwrap();
    let began = std::time::Instant::now();
    let searched = found(&tree, |_| ());
    assert_eq!((searched.total, searched.skipped.binary), (0, 1));
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// A backend with one file that is generated while it is read.
struct MadeUp {
    line: Vec<u8>,
    size: u64,
}

struct Endless {
    line: Vec<u8>,
    left: u64,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        for byte in &mut buffer[..size] {
            *byte = self.line[self.at];
            self.at = (self.at + 1) % self.line.len();
        }
        self.left -= size as u64;
        Ok(size)
    }
}

#[async_trait]
impl Backend for MadeUp {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        let reader = Endless {
            line: self.line.clone(),
            left: self.size,
            at: 0,
        };
        Ok(Content {
            stat: self.stat(path).await?,
            reader: Box::new(reader),
            weight: crate::blocking::Weight::Heavy,
        })
    }

    async fn write(&self, _: &FilePath, _: Vec<u8>, _: Expect) -> Result<Written> {
        Err(Error::Cancelled)
    }

    async fn remove(&self, _: &FilePath) -> Result<()> {
        Err(Error::Cancelled)
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        let kind = if path.below().as_os_str().is_empty() {
            Kind::Directory
        } else {
            Kind::File
        };
        Ok(Stat {
            kind,
            size: 0,
            modified: None,
            mode: None,
        })
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let stat = self.stat(&path.child("f".as_ref()).unwrap()).await?;
        Ok(vec![Entry {
            name: "f".into(),
            stat,
            target: None,
        }])
    }
}

fn made_up(line: &[u8], size: u64, change: impl FnOnce(&mut Search)) -> Searched {
    let backend = MadeUp {
        line: line.to_vec(),
        size,
    };
    let mut request = search(
        Scope::detached().resolve("/", Access::Read).unwrap(),
        "needle",
    );
    change(&mut request);
    run(files(&backend, request, &|_| ())).unwrap()
}

#[test]
fn an_endless_line_is_skipped() {
    let searched = made_up(b"no end", 1 << 40, |_| ());
    assert_eq!((searched.searched, searched.skipped.too_long_lines), (0, 1));
}

#[test]
fn a_long_line_is_cut() {
    let long = [
        vec![b'x'; 3_000_000],
        b"needle".to_vec(),
        vec![b'y'; 3_000_000],
        b"\n".to_vec(),
    ]
    .concat();
    let searched = made_up(&long, long.len() as u64, |search| search.max_line = 50);
    assert_eq!(searched.files[0].lines[0].text.chars().count(), 52);
    assert!(searched.files[0].lines[0].text.contains("needle"));
}

#[test]
fn an_endless_file_stops_at_the_deadline_with_results_so_far() {
    let searched = made_up(b"a needle\n", u64::MAX, |search| {
        search.max_matches = 5;
        search.deadline = Some(std::time::Instant::now() + Duration::from_millis(300));
    });
    assert_eq!(searched.stopped, Some(Stopped::Deadline));
    assert_eq!((searched.shown, searched.searched), (5, 0));
    assert!(searched.total > 5);
}

#[test]
fn cancelling_stops_the_search_and_progress_is_reported() {
    let backend = MadeUp {
        line: b"a needle\n".to_vec(),
        size: u64::MAX,
    };
    let request = search(
        Scope::detached().resolve("/", Access::Read).unwrap(),
        "needle",
    );
    let cancel = request.cancel.clone();
    let told = AtomicU64::new(0);
    let began = std::time::Instant::now();
    let searched = run(files(&backend, request, &|_| {
        if told.fetch_add(1, Ordering::Relaxed) == 2 {
            cancel.cancel();
        }
    }))
    .unwrap();
    assert_eq!(searched.stopped, Some(Stopped::Cancelled));
    assert!(told.load(Ordering::Relaxed) >= 3);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert!(searched.total > 0);
}

#[test]
fn a_search_cancelled_before_it_starts_is_empty() {
    let tree = Tree::new();
    tree.file("a", "needle\n");
    for backend in [&tree.disk as &dyn Backend, &Hintless(tree.disk.clone())] {
        let request = search(tree.path("."), "needle");
        request.cancel.cancel();
        let searched = run(files(backend, request, &|_| ())).unwrap();
        assert_eq!(searched.stopped, Some(Stopped::Cancelled));
    }
}

#[test]
fn an_unresponsive_disk_does_not_block_the_result() {
    struct Dead;
    #[async_trait]
    impl Backend for Dead {
        async fn read(&self, _: &FilePath) -> Result<Content> {
            std::future::pending().await
        }
        async fn write(&self, _: &FilePath, _: Vec<u8>, _: Expect) -> Result<Written> {
            std::future::pending().await
        }
        async fn remove(&self, _: &FilePath) -> Result<()> {
            std::future::pending().await
        }
        async fn stat(&self, _: &FilePath) -> Result<Stat> {
            Ok(Stat {
                kind: Kind::Directory,
                size: 0,
                modified: None,
                mode: None,
            })
        }
        async fn list(&self, _: &FilePath) -> Result<Vec<Entry>> {
            std::future::pending().await
        }
    }
    let mut request = search(Scope::detached().resolve("/", Access::Read).unwrap(), "x");
    request.deadline = Some(std::time::Instant::now() + Duration::from_millis(50));
    assert_eq!(
        run(files(&Dead, request, &|_| ())).unwrap().stopped,
        Some(Stopped::Deadline)
    );
}
