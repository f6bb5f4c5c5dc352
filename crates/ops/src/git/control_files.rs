//! The files and folders of one repository that git obeys.

use super::config::{Named, is_configuration};
use super::shape::{Shape, is_whole};
use super::{CONTROL, Controls, UNFINISHED, is, kind, list, pointer, real};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Names of hooks that git runs.
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

/// Returns the git folders that a `.git` leads to: its own, and the one shared with other
/// work trees.
pub(super) fn behind(dot_git: &Path) -> Vec<PathBuf> {
    let git = match kind(dot_git) {
        Some(FileType::Directory) => dot_git.to_owned(),
        Some(FileType::Symlink) if kind(&real(dot_git)) == Some(FileType::Directory) => {
            real(dot_git)
        }
        Some(_) => match named_by_pointer(dot_git) {
            Some(target) => real(&target),
            None => return Vec::new(),
        },
        None => return Vec::new(),
    };
    let shared = common(&git);
    std::iter::once(git).chain(shared).collect()
}

/// Returns the path that a `.git` file names, before following links.
fn named_by_pointer(dot_git: &Path) -> Option<PathBuf> {
    // If the file is reached through a link, the path is relative to the file's real
    // folder.
    let file = real(dot_git);
    let text = pointer(&file)?;
    let target = text.strip_prefix(b"gitdir:")?;
    let target = target.strip_prefix(b" ").unwrap_or(target);
    Some(file.parent()?.join(OsStr::from_bytes(target)))
}

/// Adds a `.git` that is a file or a link, with the links between it and the git folder
/// that it leads to.
pub(super) fn add_pointer(found: &mut Controls, dot_git: &Path) {
    if let Some(target) = named_by_pointer(dot_git) {
        found.follow(&target);
    }
    found.add(dot_git.to_owned());
}

/// Returns the folder that a git folder shares with others.
pub(super) fn common(git: &Path) -> Option<PathBuf> {
    let shared = real(&named_by_common(git)?);
    (shared != git).then_some(shared)
}

/// Returns the path that `commondir` names, before following links.
fn named_by_common(git: &Path) -> Option<PathBuf> {
    let text = pointer(&git.join("commondir"))?;
    Some(git.join(OsStr::from_bytes(&text)))
}

/// Returns what git obeys in a git folder, whether it exists yet or not, and the targets of
/// its hooks and configuration. `trees` are its work trees.
pub(super) fn controls(git: &Path, trees: &[PathBuf], home: Option<&Path>) -> Controls {
    let trees = &with_configured(git, trees, home);
    let mut found = Controls::default();
    for name in CONTROL {
        let path = git.join(name);
        // Only the git folder of a linked work tree has a `gitdir`, from the start.
        if name != "gitdir" || kind(&path).is_some() {
            found.add_in_real_folder(path);
        }
    }
    if let Some(shared) = named_by_common(git) {
        found.follow(&shared);
    }
    add_linked_hooks(&mut found, &git.join("hooks"));
    let mut named = Named::default();
    for name in ["config", "config.worktree"] {
        let config = git.join(name);
        named.read(&config, home);
        if kind(&config) == Some(FileType::RegularFile) {
            found.configs.push(config);
        }
    }
    for tree in &named.trees {
        found.follow(&git.join(tree));
    }
    let places: Vec<PathBuf> = trees.iter().cloned().chain([git.to_owned()]).collect();
    add_configured(&mut found, &named, &places);
    found
}

/// Adds the files that configurations make git obey in these work trees and git folders. A
/// configuration that is too long to be read may name any file in them.
fn add_configured(found: &mut Controls, named: &Named, places: &[PathBuf]) {
    for file in named.files() {
        found.add(file);
    }
    for template in &named.templates {
        let hooks = template.join("hooks");
        add_link_target(found, &hooks);
        add_linked_hooks(found, &hooks);
        found.add(template.clone());
    }
    add_hook_folders(found, named, places);
    if named.is_cut {
        found.paths.extend_from_slice(places);
    }
}

/// Returns these work trees and those that `core.worktree` of a git folder names.
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

/// Returns the user's configurations that are below a root, and what they and the machine's
/// make git obey in these work trees and git folders. `more` are those that the environment
/// names.
pub(super) fn of_the_person(
    root: &Path,
    places: &[PathBuf],
    home: Option<&Path>,
    more: &[PathBuf],
) -> Controls {
    let usual = home
        .into_iter()
        .flat_map(|home| [".gitconfig", ".config/git/config"].map(|below| home.join(below)));
    let configs: Vec<PathBuf> = usual.chain(more.iter().cloned()).collect();
    let mut named = Named::default();
    named.read(Path::new("/etc/gitconfig"), home);
    for file in &configs {
        named.read(file, home);
    }
    let mut found = Controls::default();
    for file in &configs {
        found.paths.push(real(file));
        found.add(file.clone());
    }
    found.retain_below(root);
    add_configured(&mut found, &named, places);
    found
}

/// Adds the hook folders. A relative one starts where git runs the hook: in the work tree,
/// or in the git folder for hooks that receive something.
fn add_hook_folders(found: &mut Controls, named: &Named, places: &[PathBuf]) {
    let mut folders: Vec<PathBuf> = Vec::new();
    for hooks in &named.hooks {
        match hooks.is_absolute() {
            true => folders.push(hooks.clone()),
            false => folders.extend(places.iter().map(|place| place.join(hooks))),
        }
    }
    for folder in folders {
        let real = real(&folder);
        found.follow(&folder);
        // `/dev/null` switches hooks off.
        if real == Path::new("/dev/null") {
            continue;
        }
        if places.iter().any(|place| place.starts_with(&real)) {
            // The folder contains the work tree, which must stay writable, so only the
            // hooks themselves are added.
            for hook in HOOKS {
                add_link_target(found, &real.join(hook));
                found.paths.push(real.join(hook));
            }
        } else {
            add_linked_hooks(found, &folder);
            found.paths.push(folder);
        }
    }
}

/// Adds the targets of hooks that are links.
fn add_linked_hooks(found: &mut Controls, hooks: &Path) {
    let all: Vec<PathBuf> = match list(hooks) {
        Some(all) => all.iter().map(std::fs::DirEntry::path).collect(),
        None => HOOKS.iter().map(|hook| hooks.join(hook)).collect(),
    };
    for hook in all {
        add_link_target(found, &hook);
    }
}

/// Adds the target of a path if that is a link, and the links between them.
fn add_link_target(found: &mut Controls, path: &Path) {
    if kind(path) == Some(FileType::Symlink) {
        found.follow(path);
        found.paths.push(real(path));
    }
}

/// Returns what git obeys in a folder that may be a work tree, a repository or neither. The
/// name `.git` is included even if it does not exist yet.
pub(crate) fn in_folder(folder: &Path, home: Option<&Path>) -> Controls {
    let dot_git = folder.join(".git");
    let trees = [folder.to_owned()];
    let gits = behind(&dot_git);
    let mut found = Controls::default();
    for git in &gits {
        found.extend(controls(git, &trees, home));
    }
    if Shape::of(folder).is_repository() {
        found.extend(controls(folder, &[], home));
    }
    let mut places = [gits, trees.into()].concat();
    for above in folder.ancestors().skip(1) {
        add_repository_above(&mut found, above, folder, home);
    }
    places.extend(places_above(folder));
    found.extend(of_the_person(folder, &places, home, &[]));
    if kind(&dot_git) != Some(FileType::Directory) {
        add_pointer(&mut found, &dot_git);
    }
    found
}

/// Returns the work trees and git folders of the repositories above a folder.
pub(super) fn places_above(folder: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for above in folder.ancestors().skip(1) {
        let gits = behind(&above.join(".git"));
        if !gits.is_empty() || is_whole(above) {
            places.push(above.to_owned());
        }
        places.extend(gits);
    }
    places
}

/// Adds what a repository above a folder makes git obey, because its hooks and includes may
/// be in the folder.
fn add_repository_above(found: &mut Controls, above: &Path, folder: &Path, home: Option<&Path>) {
    let dot_git = above.join(".git");
    // The folder also counts as a work tree, so that it stays writable if it is inside the
    // hook folder.
    let trees = [above.to_owned(), folder.to_owned()];
    for git in behind(&dot_git) {
        found.extend(controls(&git, &trees, home));
        add_pointer(found, &dot_git);
    }
    // A bare repository, or a `.git` folder that is used as the work folder.
    if is_whole(above) {
        found.extend(controls(above, &[folder.to_owned()], home));
    }
}

/// The kind of folder in which git would obey a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// In a folder named `.git`, or a `.git` file itself.
    Named,
    /// In another folder that looks like a repository.
    Alike(PathBuf),
}

/// Returns whether a write to a path could make git obey it, and in which kind of folder.
/// Applies to any folder and ignores case, because git on a file system that ignores case
/// would accept `.GIT` too. A file named `.git` points to a repository, so it can never be
/// written. The order in which the files of a repository are created makes no difference.
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

/// Whether git would obey a file of that name if the rest of a repository existed. An
/// existing `config` that does not look like git's belongs to the project and may be
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

/// Whether git runs a file of that name in a hook folder.
pub(super) fn is_hook(name: &OsStr) -> bool {
    HOOKS.iter().any(|hook| is(name, hook))
}

/// Whether creating that name makes a folder a repository that already contains something
/// to obey.
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
