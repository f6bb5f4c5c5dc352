//! Keeping what each kind of change would lose.

use super::attributes;
use super::change::Incomplete;
use super::folders::Spot;
use super::keep::NotKept;
use super::notes::{Content, Empty};
use super::recorder::{Guard, Links, Opened, Recorder};
use super::session::Limits;
use super::state::{self, State};
use std::io;
use std::path::Path;
use std::sync::PoisonError;

/// Number of attempts to keep a file that other threads replace all the time.
const ATTEMPTS: usize = 8;

/// Whether the inode outlives the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Its content changes, or it may be changed where it is not recorded.
    InPlace,
    /// It loses this name.
    LosesName,
}

impl Recorder {
    pub(super) fn before_content(&self, path: &Path, links: Links) -> io::Result<Opened> {
        self.keep(path, Change::InPlace, links)
    }

    pub(super) fn before_remove(&self, path: &Path) -> io::Result<()> {
        self.keep(path, Change::LosesName, Links::Kept).map(drop)
    }

    /// Notes an entry and keeps its content. Starts again if another thread puts another file
    /// there in the meantime.
    fn keep(&self, path: &Path, change: Change, links: Links) -> io::Result<Opened> {
        for _ in 0..ATTEMPTS {
            let mut inner = self.lock();
            let Some(spot) = inner.spot(path)? else {
                return Ok(Opened::Kept);
            };
            match &spot.now {
                Some(now) if links == Links::Reported && now.is_link() => {
                    self.flush(&mut inner)?;
                    return Ok(Opened::Link);
                }
                // Nothing can be lost.
                None if change == Change::LosesName => {}
                None => inner.note(&spot),
                Some(now) if !now.is_dir() => {
                    inner.note(&spot);
                    if !self.content(inner, path, &spot, now, change) {
                        continue;
                    }
                    inner = self.lock();
                }
                Some(now) => {
                    inner.note(&spot);
                    if change == Change::LosesName {
                        inner.attributes(&spot, now.inode, Empty::Ignored)?;
                        inner.folders.forget_open();
                    }
                }
            }
            self.flush(&mut inner)?;
            return Ok(Opened::Kept);
        }
        Err(io::Error::other("it is replaced all the time"))
    }

    pub(super) fn before_create(&self, path: &Path) -> io::Result<Opened> {
        let mut inner = self.lock();
        let spot = inner.spot(path)?;
        let is_link = match &spot {
            Some(spot) if spot.now.is_none() => {
                inner.note(spot);
                false
            }
            spot => spot
                .as_ref()
                .and_then(|spot| spot.now.as_ref())
                .is_some_and(State::is_link),
        };
        self.flush(&mut inner)?;
        Ok(match is_link {
            true => Opened::Link,
            false => Opened::Kept,
        })
    }

    pub(super) fn before_link(&self, path: &Path, from: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let (Some(from), Some(spot)) = (inner.spot(from)?, inner.spot(path)?) else {
            return self.flush(&mut inner);
        };
        if from.now.is_some() && spot.now.is_none() {
            inner.note(&from);
            inner.note(&spot);
        }
        self.flush(&mut inner)
    }

    pub(super) fn before_attributes(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        if let Some(spot) = inner.spot(path)?
            && let Some(now) = &spot.now
        {
            inner.note(&spot);
            inner.attributes(&spot, now.inode, Empty::Recorded)?;
        }
        self.flush(&mut inner)
    }

    pub(super) fn before_exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        let (Some(one), Some(other)) = (inner.spot(one)?, inner.spot(other)?) else {
            return self.flush(&mut inner);
        };
        if one.now.is_some() && other.now.is_some() {
            inner.note(&one);
            inner.note(&other);
            inner.moved(&one, &other);
            inner.moved(&other, &one);
        }
        self.flush(&mut inner)
    }

    pub(super) fn before_move(
        &self,
        from: &Path,
        is_covered: bool,
        to: &Path,
        is_covered_there: bool,
    ) -> io::Result<()> {
        if !is_covered && !is_covered_there {
            return Ok(());
        }
        if !is_covered_there {
            return self.before_leaving(from);
        }
        for _ in 0..ATTEMPTS {
            let mut inner = self.lock();
            let (Some(old), Some(new)) = (inner.spot(from)?, inner.spot(to)?) else {
                return self.flush(&mut inner);
            };
            let Some(moved) = &old.now else {
                return self.flush(&mut inner);
            };
            if is_covered {
                inner.note(&old);
            }
            inner.note(&new);
            match &new.now {
                Some(lost) if lost.inode == moved.inode => {}
                Some(lost) if !lost.is_dir() => {
                    if !self.content(inner, to, &new, lost, Change::LosesName) {
                        continue;
                    }
                    inner = self.lock();
                }
                Some(lost) => inner.attributes(&new, lost.inode, Empty::Ignored)?,
                None => {}
            }
            if is_covered {
                inner.moved(&old, &new);
            } else if moved.is_dir() && moved.inode.dev == state::of(&*new.dir)?.inode.dev {
                inner.arrives(from, moved, &new)?;
            }
            inner.folders.forget_open();
            return self.flush(&mut inner);
        }
        Err(io::Error::other("it is replaced all the time"))
    }

    /// Something is moved to where nothing is recorded: like a removal, but the inode goes on
    /// to live there.
    fn before_leaving(&self, path: &Path) -> io::Result<()> {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            let now = {
                let mut inner = self.lock();
                let spot = inner.spot(&path)?;
                self.flush(&mut inner)?;
                spot.and_then(|spot| spot.now)
            };
            let is_dir = now.as_ref().is_some_and(State::is_dir);
            if !is_dir {
                self.keep(&path, Change::InPlace, Links::Kept)?;
            }
            // A file with other names is also linked, to be the same file again.
            if now.is_some_and(|now| now.is_dir() || now.links > 1) {
                self.keep(&path, Change::LosesName, Links::Kept)?;
            }
            if is_dir {
                for entry in super::disk::names(&path)? {
                    open.push(path.join(entry));
                }
            }
        }
        Ok(())
    }

    /// Keeps the content of a file that existed before the call. Returns `false` if another
    /// file is there now. Releases the lock, so that a large file does not hold up other threads.
    fn content(
        &self,
        mut inner: Guard<'_>,
        path: &Path,
        spot: &Spot,
        now: &State,
        change: Change,
    ) -> bool {
        if !inner.originals.contains(&now.inode) {
            return true;
        }
        if !now.is_file() {
            self.link_shared(&mut inner, spot, now, change);
            return true;
        }
        loop {
            match inner.contents.get(&now.inode) {
                None => break,
                Some(Content::Linked) if change == Change::LosesName => return true,
                // A file with other names is linked too, to be the same file again.
                Some(Content::Kept) => {
                    self.link_shared(&mut inner, spot, now, change);
                    return true;
                }
                // It is changed under another name, or its name was not lost after all.
                Some(Content::Linked) => break,
                Some(Content::Pending) => {
                    let copied = &self.shared.copied;
                    inner = copied.wait(inner).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        if let Some(why) = self.over_limit(path, now) {
            inner.not_kept(now.inode, &why);
            return self.flush(&mut inner).is_ok();
        }
        if inner.file.is_none() {
            // The first record makes the folder for content.
            let _ = self.flush(&mut inner);
        }
        // A file with other names gets a copy too when the call ends, if one of them is left.
        if change == Change::LosesName {
            match inner.objects.link(&*spot.dir, spot.name(), now) {
                Ok(kept) => {
                    // They stay with the inode, but an undo may change them there.
                    let _ = inner.attributes(spot, now.inode, Empty::Ignored);
                    inner.kept(now.inode, kept);
                    let _ = self.flush(&mut inner);
                    return true;
                }
                Err(NotKept::Replaced) => return false,
                // Another file system, another owner: copied instead.
                Err(NotKept::System(_)) => {}
            }
        }
        let _ = self.flush(&mut inner);
        let reserved = match inner.objects.reserve(now) {
            Ok(reserved) => reserved,
            Err(error) => {
                inner.not_kept(now.inode, &failed(path, &error));
                return self.flush(&mut inner).is_ok();
            }
        };
        inner.contents.insert(now.inode, Content::Pending);
        drop(inner);
        let copied = reserved.copy(&*spot.dir, spot.name(), now);
        let mut inner = self.lock();
        let mut is_done = true;
        match copied {
            Ok((kept, file)) => {
                if let Ok(list) = attributes::of_file(&file) {
                    inner.add_attributes(now.inode, list, Empty::Ignored);
                }
                inner.kept(now.inode, kept);
            }
            Err(NotKept::Replaced) => {
                inner.contents.remove(&now.inode);
                is_done = false;
            }
            Err(NotKept::System(error)) => inner.not_kept(now.inode, &failed(path, &error)),
        }
        let _ = self.flush(&mut inner);
        drop(inner);
        self.shared.copied.notify_all();
        is_done
    }

    /// Gives something that loses one of its names another one in the store, so that it can be
    /// the same as the others again. Without it, an equal copy has to do.
    fn link_shared(&self, inner: &mut Guard<'_>, spot: &Spot, now: &State, change: Change) {
        if change == Change::LosesName
            && now.links > 1
            && !inner.linked.contains(&now.inode)
            && let Ok(kept) = inner.objects.link(&*spot.dir, spot.name(), now)
        {
            inner.kept(now.inode, kept);
            let _ = self.flush(inner);
        }
    }

    fn over_limit(&self, path: &Path, now: &State) -> Option<String> {
        let limits = if self.shared.header.undoes.is_empty() {
            Limits::All
        } else {
            // Files that an undo removes are kept, however large they are.
            Limits::Session
        };
        self.shared
            .session
            .reserve(path, now, limits)
            .err()
            .map(|why| why.to_string())
    }
}

fn failed(path: &Path, error: &io::Error) -> String {
    Incomplete::Failed {
        path: path.to_owned(),
        error: format!("its content could not be kept: {error}"),
    }
    .to_string()
}
