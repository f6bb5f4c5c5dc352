//! A tree as it is on disk, for comparisons.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Everything that undo must restore: type, mode, content, and which names share a file.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Entry {
    mode: u32,
    content: Vec<u8>,
    /// First name of the same file.
    same_as: Option<PathBuf>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Size in bytes from which only the size of a file is compared.
const LARGE: u64 = 64 << 20;

pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

pub(crate) fn read(folders: &[&Path]) -> Tree {
    let mut tree = Tree::new();
    let mut names = BTreeMap::new();
    for folder in folders {
        add(folder, &mut tree, &mut names);
    }
    tree
}

fn add(path: &Path, tree: &mut Tree, names: &mut BTreeMap<(u64, u64), PathBuf>) {
    let found = std::fs::symlink_metadata(path).unwrap();
    let kind = found.file_type();
    let content = if kind.is_symlink() {
        std::fs::read_link(path)
            .unwrap()
            .into_os_string()
            .into_encoded_bytes()
    } else if kind.is_file() && found.len() > LARGE {
        found.len().to_string().into_bytes()
    } else if kind.is_file() {
        std::fs::read(path).unwrap_or_else(|_| b"unreadable".to_vec())
    } else if kind.is_fifo() {
        b"fifo".to_vec()
    } else {
        Vec::new()
    };
    let same_as = if kind.is_dir() {
        None
    } else {
        Some(
            names
                .entry((found.dev(), found.ino()))
                .or_insert_with(|| path.to_owned())
                .clone(),
        )
    };
    let entry = Entry {
        mode: found.mode(),
        content,
        same_as,
        attributes: attributes(path),
    };
    tree.insert(path.to_owned(), entry);
    if kind.is_dir() {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        below.sort();
        for path in below {
            add(&path, tree, names);
        }
    }
}

fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = [0_u8; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names[..]) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0) {
        if name.starts_with(b"user.") {
            let mut value = [0_u8; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
            found.push((name.to_vec(), value[..length].to_vec()));
        }
    }
    found.sort();
    found
}

/// Returns the differences in a readable form.
pub(crate) fn differences(before: &Tree, after: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for path in before.keys().chain(after.keys()) {
        let (one, other) = (before.get(path), after.get(path));
        if one != other {
            let text = format!("{}: {} -> {}", path.display(), show(one), show(other));
            if !found.contains(&text) {
                found.push(text);
            }
        }
    }
    found
}

fn show(entry: Option<&Entry>) -> String {
    let Some(entry) = entry else {
        return "nothing".to_owned();
    };
    let text = String::from_utf8_lossy(&entry.content);
    let text: String = text.chars().take(60).collect();
    let same = entry
        .same_as
        .as_ref()
        .map(|path| path.display().to_string());
    format!(
        "{:o} {text:?} ({} bytes) same as {same:?} {:?}",
        entry.mode,
        entry.content.len(),
        entry.attributes
    )
}
