//! Comparing what was before with what is now.

use super::attributes;
use super::change::{Change, ChangeKind, Counts, EntryKind};
use super::keep;
use super::keep::Kept;
use super::picture::{After, Entry, Picture};
use super::session::Session;
use super::state::{Inode, State, Time};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Number of files and bytes whose content is read when a call ends, so that a later change
/// which leaves the same content is not taken for another. Above it, size and time decide.
const HASHED_FILES: u32 = 1000;
const HASHED_BYTES: u64 = 16 << 20;

/// Age from which an equal time of change means equal content. The clocks of file systems have
/// steps of some milliseconds.
const STEP_SECONDS: i64 = 2;

/// Finds the entries that changed and notes their state after the call.
pub(super) fn compare(picture: &mut Picture, session: &Session, started: Time) -> io::Result<()> {
    let now = picture.observe()?;
    let present: HashSet<Inode> = now.iter().flatten().map(|state| state.inode).collect();
    let mut budget = (HASHED_FILES, HASHED_BYTES);
    let mut afters = Vec::with_capacity(now.len());
    for (at, now) in now.into_iter().enumerate() {
        let Some(entry) = picture.entries.get(at) else {
            continue;
        };
        let is_replaced = match (&entry.before, &now) {
            (Some(before), Some(now)) => picture.is_replaced(before, now, &present),
            _ => false,
        };
        let looked = Looked { now, is_replaced };
        afters.push(after(
            picture,
            session,
            entry,
            looked,
            started,
            &mut budget,
        )?);
    }
    for (entry, after) in picture.entries.iter_mut().zip(afters) {
        entry.after = after;
    }
    Ok(())
}

/// An entry after the call.
struct Looked {
    now: Option<State>,
    /// Whether something else is there that cannot stand for what was.
    is_replaced: bool,
}

fn after(
    picture: &Picture,
    session: &Session,
    entry: &Entry,
    Looked { now, is_replaced }: Looked,
    started: Time,
    budget: &mut (u32, u64),
) -> io::Result<Option<After>> {
    let mut opened = None;
    let mut content = true;
    match (&entry.before, &now) {
        (None, None) => return Ok(None),
        (Some(before), Some(now)) => {
            content = !before.same_content(now) || is_replaced;
            let may_be_same =
                !is_replaced && before.is_file() && now.is_file() && before.size == now.size;
            let was_opened = picture.contents.contains_key(&before.inode);
            if may_be_same && before.inode == now.inode && !was_opened {
                // Only its attributes were set, its times for example.
                content = false;
            } else if may_be_same && is_doubtful(before, now, was_opened, started) {
                if is_small(now, budget) {
                    opened = open_now(picture, entry);
                } else {
                    content = true;
                }
                if let Some(file) = &mut opened {
                    content = !is_kept_content(picture, session, before.inode, file, content)?;
                }
            }
            let is_same = !content
                && before.same_access(now)
                && (before.modified == now.modified || !now.is_file())
                && has_same_attributes(picture, entry, before, now);
            if is_same {
                return Ok(None);
            }
        }
        _ => {}
    }
    let hash = match &now {
        Some(now) if now.is_file() && is_small(now, budget) => {
            budget.0 = budget.0.saturating_sub(1);
            budget.1 = budget.1.saturating_sub(now.size);
            let file = opened.or_else(|| open_now(picture, entry));
            file.and_then(|file| hash(&file).ok())
        }
        _ => None,
    };
    Ok(Some(After {
        state: now,
        content,
        hash,
    }))
}

fn is_small(now: &State, budget: &(u32, u64)) -> bool {
    budget.0 > 0 && now.size <= budget.1
}

/// Whether size and time do not tell if the content is the same. A program can set the time
/// of a file that it wrote to what it was.
fn is_doubtful(before: &State, now: &State, was_opened: bool, started: Time) -> bool {
    before.modified != now.modified
        || before.inode != now.inode
        || (was_opened && before.changed != now.changed)
        || before.modified.seconds >= started.seconds.saturating_sub(STEP_SECONDS)
}

/// Whether a file has the content that was kept. Without kept content, the answer is what size
/// and time say.
fn is_kept_content(
    picture: &Picture,
    session: &Session,
    inode: Inode,
    file: &mut File,
    differs: bool,
) -> io::Result<bool> {
    let Some((set, kept)) = picture.contents.get(&inode) else {
        return Ok(!differs);
    };
    let Some(source) = keep::open(&session.objects(*set), kept)? else {
        return Ok(!differs);
    };
    same_bytes(&mut *source.reader(), file)
}

/// Whether a file at a path, which looks as an inode did before, has its content.
pub(super) fn has_content_of(
    picture: &Picture,
    session: &Session,
    inode: Inode,
    path: &Path,
) -> io::Result<bool> {
    match picture.contents.get(&inode) {
        None | Some((_, Kept::Linked(_) | Kept::No(_))) => Ok(true),
        Some(_) => {
            #[expect(clippy::disallowed_methods, reason = "haft's own file")]
            let mut file = File::open(path)?;
            is_kept_content(picture, session, inode, &mut file, false)
        }
    }
}

/// Whether a file that looks as before is as before. A program can set the time of a file that
/// it wrote to what it was, so one that was opened for writing is read.
pub(super) fn is_as_before(
    picture: &Picture,
    session: &Session,
    entry: &Entry,
    before: &State,
) -> io::Result<bool> {
    if !before.is_file() || !picture.contents.contains_key(&before.inode) {
        return Ok(true);
    }
    match &mut open_now(picture, entry) {
        Some(file) => is_kept_content(picture, session, before.inode, file, false),
        None => Ok(false),
    }
}

fn same_bytes(one: &mut dyn Read, other: &mut dyn Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = fill(one, &mut left)?;
        if fill(other, &mut right)? != read || left.get(..read) != right.get(..read) {
            return Ok(false);
        }
        if read < left.len() {
            return Ok(true);
        }
    }
}

fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub(super) fn has_same_attributes(
    picture: &Picture,
    entry: &Entry,
    before: &State,
    now: &State,
) -> bool {
    let Some(list) = picture.attributes.get(&before.inode) else {
        return true;
    };
    if before.inode != now.inode && list.is_empty() {
        return true;
    }
    picture.path_now(entry.folder).is_some_and(|folder| {
        let path = folder.join(super::state::name(&entry.name));
        attributes::of_path(&path).is_ok_and(|present| present == *list)
    })
}

/// Opens a file where it is now.
pub(super) fn open_now(picture: &Picture, entry: &Entry) -> Option<File> {
    use rustix::fs::{Mode, OFlags, openat};
    let folder = picture.path_now(entry.folder)?;
    let folder = super::folders::open_folder(picture.root(), &folder).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let name = super::state::name(&entry.name);
    openat(folder, name, flags, Mode::empty())
        .ok()
        .map(File::from)
}

/// SHA-256 of a file, from its start.
pub(super) fn hash(mut file: &File) -> io::Result<[u8; 32]> {
    use std::io::Seek;
    file.rewind()?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(read) => hasher.update(chunk.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The changes of a set as people see them, sorted by path.
pub(super) fn changes(picture: &Picture) -> Vec<Change> {
    let changes = numbered_changes(picture).into_iter();
    let mut changes: Vec<Change> = changes.map(|(_, change)| change).collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// The same with the number of the entry, not sorted.
pub(super) fn numbered_changes(picture: &Picture) -> Vec<(u32, Change)> {
    let states = picture.recorded();
    // Original inodes that are now where there was nothing.
    let mut arrived: HashMap<Inode, u32> = HashMap::new();
    for ((at, entry), now) in (0..).zip(&picture.entries).zip(&states) {
        if let (None, Some(now)) = (&entry.before, now)
            && let Some(home) = picture.originals.get(&now.inode)
        {
            let left = states.get(*home as usize).and_then(Option::as_ref);
            if left.is_none_or(|left| left.inode != now.inode) {
                arrived.entry(now.inode).or_insert(at);
            }
        }
    }
    let mut changes = Vec::new();
    for (at, entry) in (0..).zip(&picture.entries) {
        let Some(after) = &entry.after else {
            continue;
        };
        let change = match (&entry.before, &after.state) {
            (None, None) => None,
            (Some(before), None) => match arrived.get(&before.inode) {
                Some(_) => None,
                None => Some(Change {
                    path: picture.original_path(entry),
                    kind: ChangeKind::Deleted,
                    entry: before.kind(),
                    before: Some(before.side()),
                    after: None,
                    kept: is_kept(picture, before),
                }),
            },
            (None, Some(now)) => Some(match arrived.get(&now.inode) {
                Some(first) if *first == at => {
                    let home = picture.originals.get(&now.inode);
                    let home = home.and_then(|home| picture.entry(*home));
                    let before = home.and_then(|home| home.before.as_ref());
                    let is_same = before.is_some_and(|before| before.same_content(now));
                    Change {
                        path: picture.path_after(entry),
                        kind: ChangeKind::Renamed {
                            from: home
                                .map(|home| picture.original_path(home))
                                .unwrap_or_default(),
                        },
                        entry: now.kind(),
                        before: before.map(State::side),
                        after: Some(now.side()),
                        kept: is_same || before.is_some_and(|before| is_kept(picture, before)),
                    }
                }
                _ => Change {
                    path: picture.path_after(entry),
                    kind: ChangeKind::Created,
                    entry: now.kind(),
                    before: None,
                    after: Some(now.side()),
                    kept: true,
                },
            }),
            (Some(before), Some(now)) => modified(picture, entry, before, now, after),
        };
        changes.extend(change.map(|change| (at, change)));
    }
    changes
}

fn modified(
    picture: &Picture,
    entry: &Entry,
    before: &State,
    now: &State,
    after: &After,
) -> Option<Change> {
    let home = picture.originals.get(&now.inode).filter(|_| now.is_dir());
    let home = home.and_then(|home| picture.entry(*home));
    let kind = match home.filter(|_| before.inode != now.inode) {
        Some(home) => ChangeKind::Renamed {
            from: picture.original_path(home),
        },
        None if !after.content => ChangeKind::Attributes,
        // A folder that was removed and made again is the same to people.
        None if before.is_dir() && now.is_dir() && before.same_access(now) => return None,
        None => ChangeKind::Modified,
    };
    Some(Change {
        path: picture.path_after(entry),
        kind,
        entry: now.kind(),
        before: Some(before.side()),
        after: Some(now.side()),
        kept: !after.content || is_kept(picture, before),
    })
}

fn is_kept(picture: &Picture, before: &State) -> bool {
    if before.kind() != EntryKind::File || before.size == 0 {
        return true;
    }
    match picture.contents.get(&before.inode) {
        Some((_, Kept::No(_))) => false,
        Some(_) => true,
        // It lives on under another name that was there before.
        None => picture.entries.iter().any(|entry| {
            let now = entry.after.as_ref().map(|after| &after.state);
            matches!(now, Some(Some(now)) if now.inode == before.inode && before.same_content(now))
        }),
    }
}

/// Reason why a changed entry cannot be restored, of the first of them.
pub(super) fn first_lost(picture: &Picture) -> Option<String> {
    picture.entries.iter().find_map(|entry| {
        let after = entry.after.as_ref().filter(|after| after.content)?;
        let before = entry.before.as_ref().filter(|before| before.is_file())?;
        let is_elsewhere = after
            .state
            .as_ref()
            .is_none_or(|now| now.inode != before.inode);
        match picture.contents.get(&before.inode) {
            Some((_, Kept::No(why))) if !is_elsewhere || !is_kept(picture, before) => {
                Some(why.clone())
            }
            _ => None,
        }
    })
}

/// Counts changes.
pub(super) fn count(changes: &[Change]) -> [u64; 5] {
    let mut counts = [0; 5];
    for change in changes {
        let at = match change.kind {
            ChangeKind::Created => 0,
            ChangeKind::Modified => 1,
            ChangeKind::Deleted => 2,
            ChangeKind::Renamed { .. } => 3,
            ChangeKind::Attributes => 4,
        };
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
    }
    counts
}

/// Counts as callers see them.
pub(super) fn counts(
    [created, modified, deleted, renamed, attributes]: [u64; 5],
    why: Option<String>,
) -> Counts {
    Counts {
        created,
        modified,
        deleted,
        renamed,
        attributes,
        complete: why.is_none(),
        why,
    }
}
