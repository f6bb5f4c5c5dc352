//! Decides which folders get a layer, and what it shows.

use super::CachePlace;
use crate::executor::sandbox::{self, PlaceKind, Request, Scaffold, place_kind, real_place};
use crate::scope::{Reading, is_folder};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Folders of the kernel.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Maximum number of entries of a folder whose entries get a layer each.
const MAX_ENTRIES: usize = 64;

/// The layers of a session.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Layers, outer ones first.
    pub(super) layers: Vec<Layer>,
    pub(super) scaffolds: Vec<Scaffold>,
    /// Layers that no scaffold makes a place for.
    pub(super) unreachable: BTreeSet<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    /// The places that commands cannot write otherwise, with their real paths.
    pub(super) places: Vec<(PathBuf, CachePlace)>,
}

/// A folder that gets a layer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) path: PathBuf,
    /// The user's folder, if it is shown.
    pub(super) lower: Option<PathBuf>,
}

impl Layout {
    /// Plans the layers. `store` is the folder in which they are kept.
    pub(super) fn new(places: &[CachePlace], request: &Request, store: &Path) -> Self {
        let mut layout = Self::default();
        let facts = Facts::new(request, store);
        let mut real: Vec<(PathBuf, &CachePlace)> = places
            .iter()
            .map(|place| (real_place(&place.path), place))
            .filter(|(path, _)| !facts.is_elsewhere(path))
            .collect();
        real.sort_by_key(|(path, _)| path.components().count());
        for (path, place) in real {
            let mut around = layout.layers.iter();
            let is_inside = around
                .any(|layer| path.starts_with(&layer.path) && !facts.holds_store(&layer.path));
            if !is_inside {
                layout.add(&path, &facts);
            }
            layout.places.push((path, place.clone()));
        }
        layout.scaffold(&facts);
        layout.layers.truncate(sandbox::MAX_LAYERS);
        layout
    }

    fn add(&mut self, path: &Path, facts: &Facts) {
        if self.layers.iter().any(|layer| layer.path == path) {
            return;
        }
        let lower = match place_kind(path) {
            PlaceKind::Folder if !facts.is_covered(path) => Some(path.to_owned()),
            PlaceKind::Folder | PlaceKind::Missing => None,
            PlaceKind::Other => return,
        };
        if lower.is_some() && facts.holds_store(path) {
            return self.add_entries(path, facts);
        }
        self.layers.push(Layer {
            path: path.to_owned(),
            lower,
        });
    }

    /// Adds a folder that contains the layers themselves, which the kernel refuses to show
    /// in a layer: an empty layer, in which each entry of the folder has its own.
    fn add_entries(&mut self, path: &Path, facts: &Facts) {
        let entries = sandbox::entries(path);
        if entries.len() > MAX_ENTRIES {
            return;
        }
        self.layers.push(Layer {
            path: path.to_owned(),
            lower: None,
        });
        for entry in entries.iter().filter(|entry| !facts.is_hidden(entry)) {
            if is_folder(entry) {
                self.add(entry, facts);
            } else if !entry.is_symlink() {
                self.readable.push(entry.clone());
            }
        }
    }

    /// Plans where missing folders are added.
    fn scaffold(&mut self, facts: &Facts) {
        let needs = self.layers.iter().map(|layer| &layer.path).filter(|path| {
            let is_nested = self
                .layers
                .iter()
                .any(|outer| outer.path != **path && path.starts_with(&outer.path));
            !is_nested && !facts.is_covered(path) && place_kind(path) == PlaceKind::Missing
        });
        let needs: Vec<(PathBuf, Option<PathBuf>)> = needs
            .map(|path| {
                let mut above = path.ancestors().skip(1);
                let around = above.find(|folder| is_folder(folder));
                let around = around.filter(|folder| facts.can_scaffold(folder));
                (path.clone(), around.map(Path::to_owned))
            })
            .collect();
        let folders: BTreeSet<&PathBuf> = needs
            .iter()
            .filter_map(|(_, around)| around.as_ref())
            .collect();
        for (path, around) in &needs {
            let Some(around) = around else {
                self.unreachable.insert(path.clone());
                continue;
            };
            // One scaffold for all that is below it.
            let outermost = folders.iter().find(|folder| around.starts_with(folder));
            let folder = outermost.map_or(around, |folder| *folder);
            let Ok(below) = path.strip_prefix(folder) else {
                continue;
            };
            match self
                .scaffolds
                .iter_mut()
                .find(|known| known.folder == *folder)
            {
                Some(known) => known.points.push(below.to_owned()),
                None => self.scaffolds.push(Scaffold {
                    folder: folder.clone(),
                    points: vec![below.to_owned()],
                }),
            }
        }
    }
}

/// What commands see at a path.
struct Facts {
    roots: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    /// Folders that are replaced for commands.
    covered: Vec<PathBuf>,
    is_strict: bool,
    store: PathBuf,
    mounts: Vec<PathBuf>,
}

impl Facts {
    fn new(request: &Request, store: &Path) -> Self {
        let own = request.own.iter().map(|path| real_place(path));
        let covered = crate::scope::temp::SHARED
            .iter()
            .chain(&["/run", "/var/run"])
            .map(Path::new)
            .chain(request.sockets.iter().map(PathBuf::as_path));
        Self {
            roots: super::super::sandbox::roots(request)
                .iter()
                .map(|root| real_place(root))
                .collect(),
            hidden: own.chain(sandbox::secrets(&request.homes)).collect(),
            covered: covered.map(real_place).collect(),
            is_strict: matches!(
                request.rules.reading,
                Reading::Roots | Reading::RootsAndSystem
            ),
            store: real_place(store),
            mounts: mounts(),
        }
    }

    /// Whether a folder needs no layer or can have none.
    fn is_elsewhere(&self, path: &Path) -> bool {
        let is_in = |folders: &[PathBuf]| folders.iter().any(|folder| path.starts_with(folder));
        let is_above_root = self.roots.iter().any(|root| root == path);
        path.parent().is_none()
            || is_in(&self.roots)
            || is_above_root
            || self.is_hidden(path)
            || KERNEL.iter().any(|folder| path.starts_with(folder))
    }

    fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    fn holds_store(&self, path: &Path) -> bool {
        self.store.starts_with(path)
    }

    /// Whether commands do not see what the machine has there.
    fn is_covered(&self, path: &Path) -> bool {
        let is_system = || {
            let mut system = crate::scope::rules::SYSTEM.iter();
            system.any(|folder| path.starts_with(folder))
        };
        self.covered.iter().any(|folder| path.starts_with(folder))
            || (self.is_strict && !is_system())
    }

    /// Whether folders can be added to this one. The kernel shows no mounts below it then,
    /// and refuses to hide them.
    fn can_scaffold(&self, folder: &Path) -> bool {
        let is_below = |mount: &PathBuf| mount != folder && mount.starts_with(folder);
        folder.parent().is_some()
            && !self.roots.iter().any(|root| root == folder)
            && !self.mounts.iter().any(is_below)
    }
}

/// Returns where file systems are mounted.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the kernel about the process itself"
)]
fn mounts() -> Vec<PathBuf> {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = table.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(|field| PathBuf::from(std::ffi::OsString::from_vec(unescaped(field))))
        .collect()
}

/// Undoes the kernel's escapes of blanks and backslashes, such as `\040`.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((first, more)) = rest.split_first() {
        rest = more;
        let code = match more {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if *first == b'\\' => {
                Some((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'))
            }
            _ => None,
        };
        plain.push(code.unwrap_or(*first));
        if code.is_some() {
            rest = more.get(3..).unwrap_or_default();
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_mount_points_are_read() {
        assert_eq!(unescaped(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescaped(br"/a\9"), br"/a\9");
        assert!(mounts().contains(&PathBuf::from("/")));
    }
}
