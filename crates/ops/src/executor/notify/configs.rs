//! The calls with which git changes a protected configuration. haft makes them itself if they
//! are harmless.
//!
//! Only git's own way is let through: it creates `config.lock`, which keeps other git
//! processes away, reads `config`, and renames the lock over it. Every other call goes on to
//! the kernel, which refuses it.

use super::calls::{self, Act, Call, Last, Way};
use super::raw::{Answer, Listener, Notification};
use super::resolve::{Resolver, Slash};
use crate::effects::{Recorder, Touch};
use crate::git::{self, ConfigGate};
use rustix::fs::{AtFlags, unlinkat};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Git configurations, and their changes in progress.
pub(super) struct Configs<'a> {
    gate: &'a ConfigGate,
    /// Content of each configuration when its lock was created. A change that the user has
    /// made since must not be lost.
    before: HashMap<PathBuf, Vec<u8>>,
}

impl<'a> Configs<'a> {
    pub(super) fn new(gate: &'a ConfigGate) -> Self {
        Self {
            gate,
            before: HashMap::new(),
        }
    }

    pub(super) fn gate(&self) -> &'a ConfigGate {
        self.gate
    }

    /// Handles a call. Returns `None` if it is not about a configuration, or if the kernel is
    /// to decide.
    pub(super) fn handle(
        &mut self,
        resolver: &mut Resolver,
        listener: &Listener,
        notification: &Notification,
        call: Call,
        recorder: Option<&Recorder>,
    ) -> io::Result<Option<Answer>> {
        let thread = notification.thread;
        let mut find = |place, last, is_wanted: &dyn Fn(&Path) -> bool| {
            resolver.resolve(thread, place, last, Slash::Root, is_wanted)
        };
        match call {
            Call::Open { place, flags } if flags & calls::IS_NEW == calls::IS_NEW => {
                let is_lock = |path: &Path| self.gate.locked_by(path).is_some();
                if let Some(lock) = find(place, Last::Kept, &is_lock)? {
                    self.begin(&lock);
                }
                Ok(None)
            }
            Call::Change {
                place,
                last,
                act: Act::Mode(mode),
            } => {
                let is_config = |path: &Path| self.gate.has(path);
                let Some(config) = find(place, last, &is_config)? else {
                    return Ok(None);
                };
                if let Some(recorder) = recorder {
                    recorder.before(&config, Touch::Attributes);
                }
                let is_set = git::set_mode(&config, mode).unwrap_or(false);
                Ok(is_set.then_some(Answer::Done))
            }
            Call::Rename {
                from,
                to,
                way: Way::Replace,
            } => {
                let is_lock = |path: &Path| self.gate.locked_by(path).is_some();
                let Some(lock) = find(from, Last::Kept, &is_lock)? else {
                    return Ok(None);
                };
                let config = self.gate.locked_by(&lock);
                let is_its_config = |path: &Path| config == Some(path);
                let Some(config) = find(to, Last::Kept, &is_its_config)? else {
                    return Ok(None);
                };
                let Some(folder) = config.parent() else {
                    return Ok(None);
                };
                let folder = resolver.open_folder(thread, folder)?;
                if !listener.is_waiting(notification.id) {
                    return Ok(None);
                }
                self.complete(&folder, &lock, &config, recorder)
            }
            _ => Ok(None),
        }
    }

    /// Remembers the content from which a change starts.
    fn begin(&mut self, lock: &Path) {
        // If there is a lock already, the call fails, and the change that goes on started
        // from another content.
        if super::handler::kind(lock).is_some() {
            return;
        }
        if let Some(config) = self.gate.locked_by(lock)
            && let Ok(content) = git::present(config)
        {
            self.before.insert(config.to_owned(), content);
        }
    }

    /// Replaces a configuration with what is in its lock, and removes the lock.
    fn complete(
        &mut self,
        folder: &OwnedFd,
        lock: &Path,
        config: &Path,
        recorder: Option<&Recorder>,
    ) -> io::Result<Option<Answer>> {
        let (Some(before), Some(name)) = (self.before.remove(config), lock.file_name()) else {
            return Ok(None);
        };
        let Ok(new) = git::prepared(folder, name) else {
            return Ok(None);
        };
        let keep = || {
            if let Some(recorder) = recorder {
                recorder.before(config, Touch::Content);
                recorder.before(lock, Touch::Remove);
            }
        };
        let replaced = self.gate.replace(config, &before, &new, keep);
        if let Err(objection) = replaced {
            self.gate.refuse(config, objection);
            return Ok(Some(Answer::Denied));
        }
        // The command can remove and create it as it likes.
        let _ = unlinkat(folder, name, AtFlags::empty());
        Ok(Some(Answer::Done))
    }
}
