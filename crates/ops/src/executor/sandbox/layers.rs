//! The layers over cache folders that the commands of a session share.
//!
//! They are overlay file systems, mounted once in a mount namespace that contains nothing
//! else. As with the network, no process keeps it alive: haft holds the descriptors and
//! passes them to the supervisor of each command. A child of the supervisor enters the
//! namespace, copies the mounts and hands them back, so that the supervisor itself stays
//! free to join other namespaces.

use super::maker::{self, Names};
use super::overlay::{self, LayerSource};
use super::probe::Helper;
use super::syscalls::Attributes;
use super::{Error, Result, busy, enter, mounts, syscalls};
use crate::executor::handle;
use rustix::fs::mkdirat;
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::{WaitOptions, chdir, pivot_root, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Word that makes the helper mount layers.
pub(super) const WORD: &str = "layers";

/// Maximum number of layers, which fits in a byte.
pub const MAX_LAYERS: usize = 200;

/// Namespaces that hold the layers of a session.
#[derive(Debug)]
pub struct SessionLayers {
    user: OwnedFd,
    mounts: OwnedFd,
    /// Lock on the folder of the layers. Each supervisor keeps a copy, so that the lock lasts
    /// as long as anything that was started with the layers.
    lease: OwnedFd,
    count: u8,
}

impl SessionLayers {
    /// Mounts layers, and returns for each why it could not be mounted, if so. Those are
    /// left out. Blocks for a few milliseconds.
    ///
    /// # Errors
    /// The machine has no namespaces, no layer could be mounted, or it is out of resources.
    pub fn open(
        helper: &Helper,
        sources: &[LayerSource],
        lease: OwnedFd,
    ) -> Result<(Self, Vec<Option<String>>)> {
        maker::is_possible(helper, &NAMES)?;
        let (user, mounts, failures) =
            busy::again(|| open_once(helper, sources), Error::is_passing)?;
        let mounted = failures.iter().filter(|failure| failure.is_none()).count();
        if mounted == 0 {
            let reason = failures.into_iter().flatten().next();
            return Err(NAMES.lacks(reason.unwrap_or_else(|| "no layers".to_owned())));
        }
        let layers = Self {
            user,
            mounts,
            lease,
            count: u8::try_from(mounted).unwrap_or(u8::MAX),
        };
        Ok((layers, failures))
    }

    /// Number of layers.
    pub(in crate::executor) fn count(&self) -> u8 {
        self.count
    }

    /// Returns the descriptors in the order in which a supervisor receives them.
    pub(in crate::executor) fn handles(&self) -> [&OwnedFd; 3] {
        [&self.user, &self.mounts, &self.lease]
    }

    /// Receives the descriptors in a supervisor.
    pub(in crate::executor) fn receive(socket: impl AsFd, count: u8) -> std::io::Result<Self> {
        Ok(Self {
            user: handle::receive(&socket)?,
            mounts: handle::receive(&socket)?,
            lease: handle::receive(&socket)?,
            count,
        })
    }

    /// Copies the mounts for the calling process, which must have one thread.
    pub(super) fn take(&self) -> Result<Vec<OwnedFd>> {
        let failed = |source| Error::Step {
            step: "copy the cache layers",
            path: None,
            source,
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let Some(child) = enter::split()? else {
            drop(ours);
            // The parent sees that mounts are missing.
            let _ = self.send_copies(&theirs);
            drop(theirs);
            end();
        };
        drop(theirs);
        let mut taken = Vec::new();
        while taken.len() < usize::from(self.count)
            && let Ok(tree) = handle::receive(&ours)
        {
            taken.push(tree);
        }
        let _ = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
        match taken.len() == usize::from(self.count) {
            true => Ok(taken),
            // The child ran out of resources or was killed.
            false => Err(failed(Errno::AGAIN.into())),
        }
    }

    fn send_copies(&self, to: &UnixStream) -> Result<()> {
        for (namespace, kind) in [
            (&self.user, LinkNameSpaceType::User),
            (&self.mounts, LinkNameSpaceType::Mount),
        ] {
            move_into_link_name_space(namespace.as_fd(), Some(kind))
                .map_err(enter::step("join the cache layers"))?;
        }
        for number in 0..self.count {
            let place = PathBuf::from(format!("/{number}"));
            let tree = mounts::clone_of(&place).map_err(enter::step("copy the cache layers"))?;
            handle::send(to, &tree).map_err(|_| enter::step("send")(Errno::AGAIN))?;
        }
        Ok(())
    }
}

#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "a forked child that must not return into the supervisor"
)]
fn end() -> ! {
    std::process::exit(0)
}

type Opened = (OwnedFd, OwnedFd, Vec<Option<String>>);

const NAMES: Names = Names {
    mechanism: "cache layers",
    step: "mount the cache layers",
};

fn open_once(helper: &Helper, sources: &[LayerSource]) -> Result<Opened> {
    let input = to_bytes(sources);
    let (received, results) = maker::make(helper, [WORD.to_owned()], &input, &NAMES)?;
    let failure = |result: &str| (result != MOUNTED).then(|| result.to_owned());
    let failures: Vec<_> = results.split('\t').map(failure).collect();
    let mut received = received.into_iter();
    match (received.next(), received.next()) {
        (Some(user), Some(mounts)) if failures.len() == sources.len() => {
            Ok((user, mounts, failures))
        }
        _ => Err(NAMES.failed(std::io::ErrorKind::UnexpectedEof)),
    }
}

/// Result of the helper for a layer that it has mounted.
const MOUNTED: &str = "mounted";

fn to_bytes(sources: &[LayerSource]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in sources
        .iter()
        .flat_map(|source| [&source.lower, &source.upper, &source.work])
    {
        bytes.extend(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

fn from_bytes(bytes: &[u8]) -> Vec<LayerSource> {
    let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(bytes.to_vec()));
    let paths: Vec<PathBuf> = bytes.split(|byte| *byte == 0).map(path).collect();
    let sources = paths.chunks_exact(3).filter_map(|paths| match paths {
        [lower, upper, work] => Some(LayerSource {
            lower: lower.clone(),
            upper: upper.clone(),
            work: work.clone(),
        }),
        _ => None,
    });
    sources.take(MAX_LAYERS).collect()
}

/// Mounts the layers in the throwaway process that [`SessionLayers::open`] started, and sends
/// the namespaces to haft through the socket on standard input. Returns the results.
pub(super) fn create() -> Result<String> {
    let failed = |step| {
        move |source| Error::Step {
            step,
            path: None,
            source,
        }
    };
    let socket = rustix::stdio::stdin();
    let mut bytes = Vec::new();
    let read = socket.try_clone_to_owned().map(UnixStream::from);
    read.and_then(|mut socket| socket.read_to_end(&mut bytes))
        .map_err(failed("read the cache layers"))?;
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    enter::new_user_namespace(UnshareFlags::NEWNS)?;
    mounts::set(rustix::fs::CWD, Path::new("/"), Attributes::Private)?;
    let stage = mounts::made(
        "tmpfs",
        &[("mode", "0755"), ("size", "65536")],
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?;
    // It exists everywhere.
    let at = Path::new("/dev");
    mounts::attach(&stage, at)?;
    let mut mounted = 0_u8;
    let mut mount = |source: &LayerSource| -> std::result::Result<(), String> {
        let tree = busy::again(
            || overlay::layer(source).map_err(std::io::Error::from),
            busy::is_passing,
        );
        let tree = tree.map_err(|error| error.to_string())?;
        let name = mounted.to_string();
        mkdirat(&stage, &name, mounts::FOLDER).map_err(|error| error.to_string())?;
        mounts::attach(&tree, &at.join(&name)).map_err(|error| error.to_string())?;
        mounted = mounted.saturating_add(1);
        Ok(())
    };
    let results: Vec<String> = from_bytes(&bytes)
        .iter()
        .map(|source| match mount(source) {
            Ok(()) => MOUNTED.to_owned(),
            Err(reason) => reason.replace(['\t', '\n'], " "),
        })
        .collect();
    rustix::process::umask(umask);
    // Without the machine's own mounts, so that these can be unmounted meanwhile.
    let leave = || {
        chdir(at)?;
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir("/")
    };
    let namespaces = [syscalls::namespace("user"), syscalls::namespace("mnt")];
    leave().map_err(enter::step("leave the machine's mounts"))?;
    for namespace in namespaces {
        let namespace = namespace.map_err(failed("open the cache layers"))?;
        handle::send(socket, &namespace).map_err(failed("send the cache layers"))?;
    }
    Ok(results.join("\t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_survive_encoding() {
        let source = |name: &str| LayerSource {
            lower: format!("/l {name}").into(),
            upper: format!("/u\n{name}").into(),
            work: PathBuf::from(std::ffi::OsString::from_vec(b"/w\xff".to_vec())),
        };
        let sources = [source("a"), source("b")];
        assert_eq!(from_bytes(&to_bytes(&sources)), sources);
        assert_eq!(from_bytes(b""), []);
    }
}
