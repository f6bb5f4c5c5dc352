//! The files and folders that git obeys, of one repository.

use super::config::{Named, is_configuration};
use super::shape::Shape;
use super::{CONTROL, UNFINISHED, is, kind, list, pointer, real};
use rustix::fs::{CWD, FileType, readlinkat};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More than the kernel follows.
const MOST_LINKS: usize = 41;

/// What git runs in a folder of hooks.
const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// The git folders that a `.git` leads to: its own, and the one it shares with other
/// work trees.
pub(super) fn behind(dot_git: &Path) -> Vec<PathBuf> {
    let folder = dot_git.parent().unwrap_or(Path::new("/"));
    let git = match kind(dot_git) {
        Some(FileType::Directory) => dot_git.to_owned(),
        Some(FileType::Symlink) if kind(&real(dot_git)) == Some(FileType::Directory) => {
            real(dot_git)
        }
        Some(_) => {
            // Of a link to a pointer, the pointer's own folder counts.
            let file = real(dot_git);
            let folder = file.parent().unwrap_or(folder);
            let Some(text) = pointer(&file) else {
                return Vec::new();
            };
            let Some(target) = text.strip_prefix(b"gitdir:") else {
                return Vec::new();
            };
            let target = target.strip_prefix(b" ").unwrap_or(target);
            real(&folder.join(OsStr::from_bytes(target)))
        }
        None => return Vec::new(),
    };
    let shared = common(&git);
    std::iter::once(git).chain(shared).collect()
}

/// The folder that a git folder shares with others.
pub(super) fn common(git: &Path) -> Option<PathBuf> {
    let text = pointer(&git.join("commondir"))?;
    let shared = real(&git.join(OsStr::from_bytes(&text)));
    (shared != git).then_some(shared)
}

/// What git obeys in a git folder, whether it is there yet or not, and what its hooks
/// and its configuration lead to. `trees` are the folders that are worked in with it.
pub(super) fn controls(git: &Path, trees: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let trees = &with_configured(git, trees, home);
    let mut found: Vec<PathBuf> = CONTROL
        .iter()
        .map(|name| git.join(name))
        // Of a work tree only, and there it is from the beginning.
        .filter(|path| !path.ends_with("gitdir") || kind(path).is_some())
        .collect();
    found.extend(linked(&git.join("hooks")));
    let mut named = Named::default();
    for name in ["config", "config.worktree"] {
        named.read(&git.join(name), home);
    }
    let places: Vec<PathBuf> = trees.iter().cloned().chain([git.to_owned()]).collect();
    found.extend(told(&named, &places));
    found
}

/// The files that configurations make git obey in these work trees and git folders. A
/// configuration that is too long to be read may name any file in there.
fn told(named: &Named, places: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = named.files().collect();
    found.extend(hook_folders(named, places));
    if named.is_cut {
        found.extend_from_slice(places);
    }
    found
}

/// A file and, where it is a link, all that it leads through, each in its real folder.
fn led_through(file: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next = Some(file.to_owned());
    while let Some(path) = next.take()
        && found.len() < MOST_LINKS
    {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            break;
        };
        let folder = real(folder);
        let path = folder.join(name);
        next = readlinkat(CWD, &path, Vec::new())
            .ok()
            .map(|target| folder.join(OsStr::from_bytes(target.as_bytes())));
        found.push(path);
    }
    found
}

/// These work trees and those that `core.worktree` of a git folder names.
pub(super) fn with_configured(git: &Path, trees: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let mut named = Named::default();
    for name in ["config", "config.worktree"] {
        named.read(&git.join(name), home);
    }
    let mut all = trees.to_vec();
    for tree in named.trees {
        let tree = real(&git.join(tree));
        if !all.contains(&tree) {
            all.push(tree);
        }
    }
    all
}

/// The configurations of the person as far as they lie below a root, and what they and
/// that of the machine make git obey in these work trees and git folders. `more` are
/// those that the environment names.
pub(super) fn of_the_person(
    root: &Path,
    places: &[PathBuf],
    home: Option<&Path>,
    more: &[PathBuf],
) -> Vec<PathBuf> {
    let usual = home
        .into_iter()
        .flat_map(|home| [".gitconfig", ".config/git/config"].map(|below| home.join(below)));
    let configs: Vec<PathBuf> = usual.chain(more.iter().cloned()).collect();
    let mut named = Named::default();
    named.read(Path::new("/etc/gitconfig"), home);
    for file in &configs {
        named.read(file, home);
    }
    let mut found: Vec<PathBuf> = configs.iter().flat_map(|file| led_through(file)).collect();
    found.retain(|file| file.starts_with(root));
    found.extend(told(&named, places));
    found
}

/// The folders of hooks. A relative one begins where git runs the hook: in the work tree,
/// or in the git folder when something is received.
fn hook_folders(named: &Named, places: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for hooks in &named.hooks {
        match hooks.is_absolute() {
            true => folders.push(hooks.clone()),
            false => folders.extend(places.iter().map(|place| place.join(hooks))),
        }
    }
    let mut found = Vec::new();
    for folder in folders {
        let real = real(&folder);
        // `/dev/null` switches hooks off.
        if kind(&real).is_some_and(|kind| kind != FileType::Directory) {
            continue;
        }
        if places.iter().any(|place| place.starts_with(&real)) {
            // Not everything can be protected; what git would run can.
            found.extend(HOOKS.iter().map(|hook| real.join(hook)));
        } else {
            found.extend(linked(&folder));
            found.push(folder);
        }
    }
    found
}

/// What hooks lead to that are links: it runs as well.
fn linked(hooks: &Path) -> Vec<PathBuf> {
    let all: Vec<PathBuf> = match list(hooks) {
        Some(all) => all.iter().map(std::fs::DirEntry::path).collect(),
        None => HOOKS.iter().map(|hook| hooks.join(hook)).collect(),
    };
    all.iter()
        .filter(|hook| kind(hook) == Some(FileType::Symlink))
        .map(|hook| real(hook))
        .collect()
}

/// What git obeys in a folder that may be a work tree, a repository or neither. Where
/// there is no `.git`, that name is told.
pub(crate) fn in_folder(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let dot_git = folder.join(".git");
    let trees = [folder.to_owned()];
    let gits = behind(&dot_git);
    let mut found: Vec<PathBuf> = gits
        .iter()
        .flat_map(|git| controls(git, &trees, home))
        .collect();
    if Shape::of(folder).is_repository() {
        found.extend(controls(folder, &[], home));
    }
    let places = [gits, trees.into()].concat();
    found.extend(of_the_person(folder, &places, home, &[]));
    if kind(&dot_git) != Some(FileType::Directory) {
        found.push(dot_git);
    }
    found
}

/// The kind of folder in which git would obey a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// In a folder named `.git`, or such a file itself.
    Named,
    /// In another folder that looks like a repository.
    Alike(PathBuf),
}

/// Whether a write to a path could make git obey it, and in which folder. In any folder,
/// in any case: git on a file system that ignores case would take `.GIT` too. A file
/// named `.git` points to a repository, so nobody may write one. In which order the files
/// of a repository come to be makes no difference.
pub(crate) fn control_of(path: &Path) -> Option<Control> {
    let parts: Vec<&OsStr> = path.iter().collect();
    if parts.last().is_some_and(|last| is(last, ".git")) {
        return Some(Control::Named);
    }
    parts.iter().enumerate().skip(1).find_map(|(at, part)| {
        let above = parts.get(..at).unwrap_or_default();
        let below = parts.get(at + 1..).unwrap_or_default();
        let folder: PathBuf = above.iter().collect();
        let is_control = CONTROL.iter().any(|name| is(part, name));
        if !is_control && !UNFINISHED.iter().any(|name| is(part, name)) {
            return completes(&folder, part).then_some(Control::Alike(folder));
        }
        let named = above.last().is_some_and(|folder| is(folder, ".git"));
        // `.git/modules/NAME/hooks` and `.git/worktrees/NAME/gitdir`.
        let inner = above
            .iter()
            .zip(above.iter().skip(1))
            .any(|(git, kind)| is(git, ".git") && (is(kind, "modules") || is(kind, "worktrees")));
        if named || inner {
            return Some(Control::Named);
        }
        let shape = Shape::of(&folder);
        let is_alike = shape.is_repository()
            || shape.has_part() && is_control && would_obey(&folder, part, below);
        is_alike.then_some(Control::Alike(folder))
    })
}

/// Whether git would obey a file of that name if the rest of a repository were there. A
/// `config` that exists and does not look like git's belongs to the project and may be
/// changed: the rest of a repository cannot be added while it is there.
fn would_obey(folder: &Path, part: &OsStr, below: &[&OsStr]) -> bool {
    match below {
        [] if is(part, "config") || is(part, "config.worktree") => {
            let file = folder.join(part);
            kind(&file).is_none() || is_configuration(&file)
        }
        [] => !is(part, "hooks"),
        [hook] => is(part, "hooks") && is_hook(hook),
        _ => false,
    }
}

/// Whether git runs something of that name in a folder of hooks.
pub(super) fn is_hook(name: &OsStr) -> bool {
    HOOKS.iter().any(|hook| is(name, hook))
}

/// Whether something new of that name makes a folder a repository that has something
/// to obey already.
fn completes(folder: &Path, part: &OsStr) -> bool {
    let (head, objects, refs) = (is(part, "HEAD"), is(part, "objects"), is(part, "refs"));
    if !(head || objects || refs) || kind(&folder.join(part)).is_some() {
        return false;
    }
    let shape = Shape::of(folder);
    let after = Shape {
        head: shape.head || head,
        objects: shape.objects || objects,
        refs: shape.refs || refs,
        ..shape
    };
    shape.has_control() && after.parts() >= 2
}
