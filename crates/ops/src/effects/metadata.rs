//! Modes, owners, times and extended attributes for an undo.

use super::attributes;
use super::hands::{Hands, step};
use super::outcome::UndoError;
use super::picture::Place;
use super::recorder::Touch;
use super::state::{self, State, Time};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chmodat,
    chownat, openat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

impl Hands<'_> {
    /// Gives an entry its mode, owner, time and extended attributes.
    pub(super) fn attributes(&mut self, place: &Place, before: &State) -> Result<(), UndoError> {
        step().map_err(|errno| self.error("change", place, errno))?;
        let Some(dir) = self.dir(place.0)? else {
            return Ok(());
        };
        self.recorder.before(&self.path(place), Touch::Attributes);
        self.set_attributes(&dir, place, before)
    }

    pub(super) fn set_attributes(
        &self,
        dir: &Arc<OwnedFd>,
        place: &Place,
        before: &State,
    ) -> Result<(), UndoError> {
        let name = state::name(&place.1);
        let fail = |errno: Errno| self.error("restore the attributes of", place, errno);
        let Some(now) = state::read(&**dir, name).map_err(fail)? else {
            return Ok(());
        };
        if (now.uid, now.gid) != (before.uid, before.gid) {
            let (uid, gid) = (Uid::from_raw(before.uid), Gid::from_raw(before.gid));
            // Only root may give a file away.
            let _ = chownat(
                &**dir,
                name,
                Some(uid),
                Some(gid),
                AtFlags::SYMLINK_NOFOLLOW,
            );
        }
        if now.file_type != FileType::Symlink {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = openat(&**dir, name, flags, Mode::empty()).map_err(fail)?;
            if let Some(list) = self.picture.attributes.get(&before.inode) {
                attributes::restore(&by_handle(&handle), list).map_err(fail)?;
            }
            let mode = Mode::from_raw_mode(before.mode);
            if state::of(&handle).map_err(fail)?.mode != before.mode {
                chmodat(CWD, by_handle(&handle), mode, AtFlags::empty()).map_err(fail)?;
            }
        }
        if !now.is_dir() {
            set_time(&**dir, name, before.modified).map_err(fail)?;
        }
        Ok(())
    }

    pub(super) fn set_time(&mut self, place: &Place, time: Time) {
        if let Ok(Some(dir)) = self.dir(place.0) {
            // A folder of another user keeps its time.
            let _ = set_time(&*dir, state::name(&place.1), time);
        }
    }
}

fn set_time(dir: impl AsFd, name: &OsStr, time: Time) -> rustix::io::Result<()> {
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: time.seconds,
            tv_nsec: time.nanos.into(),
        },
    };
    utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// A path that leads to an open file, whatever happens to its name.
pub(super) fn by_handle(file: &impl AsFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
}
