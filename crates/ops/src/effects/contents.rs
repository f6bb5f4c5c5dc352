//! Content of changed files, before and after.

use super::change::{Change, ChangeKind, Version};
use super::compare;
use super::keep::Kept;
use super::keep::{self, Source};
use super::library;
use super::picture::{Entry, Picture};
use super::session::Session;
use super::state::{self, Inode, State};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of sets to remember.
const REMEMBERED: usize = 32;

/// Sets that were read lately, so that a diff of many files reads each once.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<u64, Arc<Indexed>>>);

#[derive(Debug)]
struct Indexed {
    picture: Picture,
    by_original: HashMap<PathBuf, u32>,
    by_path: HashMap<PathBuf, u32>,
}

/// Finds where the content of an inode is kept: in the set that recorded it or, for a file that
/// was put back and removed again since, in a later one.
pub(super) fn locate(
    session: &Session,
    picture: &Picture,
    inode: Inode,
) -> io::Result<Option<(u64, Kept)>> {
    let Some((set, kept)) = picture.contents.get(&inode) else {
        return Ok(None);
    };
    match kept {
        Kept::Linked(name) => {
            let found = find_linked(session, *set, name)?;
            Ok(found.map(|number| (number, kept.clone())))
        }
        Kept::No(_) => Ok(None),
        kept => Ok(Some((*set, kept.clone()))),
    }
}

fn find_linked(session: &Session, set: u64, name: &str) -> io::Result<Option<u64>> {
    let is_in = |number: u64| {
        session
            .objects(number)
            .join(name)
            .symlink_metadata()
            .is_ok()
    };
    if is_in(set) {
        return Ok(Some(set));
    }
    let numbers = library::numbers(session.folder())?;
    let mut later = numbers.into_iter().filter(|number| *number > set);
    Ok(later.find(|number| is_in(*number)))
}

/// The object that is a file itself.
#[derive(Debug)]
pub(super) enum Linked {
    /// With the content of before, and its present state.
    Same(PathBuf, State),
    /// With the content that the calls left, and with other names.
    Changed(PathBuf),
}

/// Finds the object that is the file itself, unless others have changed it under another name.
pub(super) fn linked(
    session: &Session,
    picture: &Picture,
    before: &State,
) -> io::Result<Option<Linked>> {
    let Some((set, name)) = picture.links.get(&before.inode) else {
        return Ok(None);
    };
    let Some(set) = find_linked(session, *set, name)? else {
        return Ok(None);
    };
    let folder = session.objects(set);
    let root = super::folders::open_root()?;
    let objects = match crate::scope::real(&folder) {
        Some(real) => super::folders::open_folder(&root, &real)?,
        None => return Ok(None),
    };
    let Some(there) = state::read(objects, std::ffi::OsStr::new(name))? else {
        return Ok(None);
    };
    if before.same_version(&there) {
        let object = folder.join(name);
        // A program can set the time of a file that it wrote to what it was.
        return Ok(
            match compare::has_content_of(picture, session, before.inode, &object)? {
                true => Some(Linked::Same(object, there)),
                false => None,
            },
        );
    }
    let left = picture.links_after.get(&before.inode);
    let is_left_so = left.is_some_and(|left| left.same_version(&there));
    Ok(is_left_so.then(|| Linked::Changed(folder.join(name))))
}

/// Whether the content of an inode is kept.
pub(super) fn is_kept(session: &Session, picture: &Picture, inode: Inode) -> io::Result<bool> {
    Ok(locate(session, picture, inode)?.is_some())
}

/// Opens the kept content of an inode.
pub(super) fn source(
    session: &Session,
    picture: &Picture,
    inode: Inode,
) -> io::Result<Option<Source>> {
    match locate(session, picture, inode)? {
        Some((set, kept)) => keep::open(&session.objects(set), &kept),
        None => Ok(None),
    }
}

fn indexed(session: &Session, number: u64) -> io::Result<Option<Arc<Indexed>>> {
    let mut cache = session
        .contents()
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = cache.get(&number) {
        return Ok(Some(Arc::clone(known)));
    }
    let Some(set) = library::load(session, number)? else {
        return Ok(None);
    };
    let is_finished = set.finished.is_some();
    let header = set.header.clone();
    let mut picture = Picture::new(&[set], &[])?;
    if !is_finished && let Some(header) = header {
        compare::compare(&mut picture, session, header.time)?;
    }
    let (mut by_original, mut by_path) = (HashMap::new(), HashMap::new());
    for (entry, at) in picture.entries.iter().zip(0..) {
        if entry.after.is_some() {
            if entry.before.is_some() {
                by_original.insert(picture.original_path(entry), at);
            }
            by_path.insert(picture.path_after(entry), at);
        }
    }
    let indexed = Arc::new(Indexed {
        picture,
        by_original,
        by_path,
    });
    if is_finished {
        if cache.len() >= REMEMBERED {
            cache.clear();
        }
        cache.insert(number, Arc::clone(&indexed));
    }
    Ok(Some(indexed))
}

impl Indexed {
    fn original(&self, path: &PathBuf) -> Option<&Entry> {
        self.picture.entry(*self.by_original.get(path)?)
    }

    fn after(&self, path: &PathBuf) -> Option<&Entry> {
        self.picture.entry(*self.by_path.get(path)?)
    }
}

/// Opens one version of a changed file.
pub(super) fn open(
    session: &Session,
    number: u64,
    change: &Change,
    version: Version,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    let Some(set) = indexed(session, number)? else {
        return Ok(None);
    };
    let before = match &change.kind {
        ChangeKind::Created => None,
        ChangeKind::Renamed { from } => set.original(from),
        ChangeKind::Deleted => set.original(&change.path),
        ChangeKind::Modified | ChangeKind::Attributes => set.after(&change.path),
    };
    let before = before.and_then(|entry| entry.before.as_ref());
    let after = set
        .after(&change.path)
        .and_then(|entry| entry.after.as_ref())
        .and_then(|after| after.state.as_ref());
    match version {
        Version::Before => {
            let Some(before) = before.filter(|state| state.is_file()) else {
                return Ok(None);
            };
            if before.size == 0 {
                return Ok(Some(Box::new(io::empty())));
            }
            if let Some(source) = source(session, &set.picture, before.inode)? {
                return Ok(Some(source.reader()));
            }
            // Only its name or its attributes changed.
            match after.filter(|after| before.same_version(after)) {
                Some(after) => version_of(session, number, change, after),
                None => Ok(None),
            }
        }
        Version::After => match after.filter(|state| state.is_file()) {
            Some(after) => version_of(session, number, change, after),
            None => Ok(None),
        },
    }
}

/// The version of a file that a set left: on disk, or in the next set that changed it.
fn version_of(
    session: &Session,
    number: u64,
    change: &Change,
    wanted: &State,
) -> io::Result<Option<Box<dyn Read + Send>>> {
    use rustix::fs::{Mode, OFlags};
    let root = super::folders::open_root()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let (Some(parent), Some(name)) = (change.path.parent(), change.path.file_name())
        && let Ok(folder) = super::folders::open_folder(&root, parent)
        && let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty())
        && state::of(&file).is_ok_and(|now| wanted.same_version(&now))
    {
        return Ok(Some(Box::new(std::fs::File::from(file))));
    }
    if wanted.size == 0 {
        return Ok(Some(Box::new(io::empty())));
    }
    for later in library::numbers(session.folder())? {
        if later <= number {
            continue;
        }
        let Some(later) = indexed(session, later)? else {
            continue;
        };
        let before = later
            .original(&change.path)
            .and_then(|entry| entry.before.as_ref())
            .filter(|before| before.same_version(wanted));
        if let Some(before) = before
            && let Some(source) = source(session, &later.picture, before.inode)?
        {
            return Ok(Some(source.reader()));
        }
    }
    Ok(None)
}
