//! The network that the commands of a session share.
//!
//! It is a network namespace with nothing but a loopback interface, in a user namespace of its
//! own. No process keeps it alive: haft holds the two descriptors and passes them to the
//! supervisor of each command, which joins the namespaces before it creates its own. A server
//! that one command starts is thus reachable from the next command, but neither from the
//! machine nor from another session. haft also holds sockets that listen inside this network.
//! It accepts connections on them although haft itself is outside; that is how named hosts
//! are reached.

use super::probe::Helper;
use super::{Error, Level, Result, busy, enter, syscalls};
use crate::executor::handle;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Word that makes the helper create a network.
pub(super) const WORD: &str = "network";

/// Maximum time to create a network, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Namespaces of a session's network.
#[derive(Debug)]
pub struct SessionNetwork {
    user: OwnedFd,
    network: OwnedFd,
}

impl SessionNetwork {
    /// Creates a network and sockets that listen in it: one on 127.0.0.1 for the port 0, and
    /// one on each loopback address for every other port. Blocks for a few milliseconds.
    ///
    /// # Errors
    /// The machine has no namespaces, or is out of resources.
    pub fn open(helper: &Helper, ports: &[u16]) -> Result<(Self, Vec<TcpListener>)> {
        if helper.ceiling != Some(Level::Full) {
            return Err(lacks("switched off for a test".to_owned()));
        }
        busy::again(|| open_once(helper, ports), Error::is_passing)
    }

    /// Returns the descriptors in the order in which a supervisor receives them.
    pub(in crate::executor) fn handles(&self) -> [&OwnedFd; 2] {
        [&self.user, &self.network]
    }

    /// Receives the descriptors in a supervisor.
    pub(in crate::executor) fn receive(socket: impl AsFd) -> std::io::Result<Self> {
        Ok(Self {
            user: handle::receive(&socket)?,
            network: handle::receive(&socket)?,
        })
    }

    /// Moves the calling process, which must have one thread, into the network.
    pub(super) fn join(&self) -> Result<()> {
        for (namespace, kind) in [
            (&self.user, LinkNameSpaceType::User),
            (&self.network, LinkNameSpaceType::Network),
        ] {
            move_into_link_name_space(namespace.as_fd(), Some(kind))
                .map_err(enter::step("join the session's network"))?;
        }
        Ok(())
    }
}

fn open_once(helper: &Helper, ports: &[u16]) -> Result<(SessionNetwork, Vec<TcpListener>)> {
    let failed = |source| Error::Step {
        step: "create the session's network",
        path: None,
        source,
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "our own binary, which creates the network in a process of its own"
    )]
    let mut child = Command::new(&helper.program)
        .args(&helper.args)
        .arg(WORD)
        .args(ports.iter().map(u16::to_string))
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut received = Vec::new();
    while let Ok(next) = handle::receive(&ours) {
        received.push(next);
    }
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        let _ = output.take(4096).read_to_string(&mut said);
    }
    let _ = child.wait();
    match said.trim_end().split_once(' ') {
        Some(("yes", _)) => {}
        Some(("no", reason)) => return Err(lacks(reason.to_owned())),
        Some(("busy", reason)) => {
            let reason = reason.to_owned();
            return Err(Error::Busy { reason });
        }
        // It was killed.
        _ => return Err(failed(rustix::io::Errno::AGAIN.into())),
    }
    let mut received = received.into_iter();
    let (Some(user), Some(network)) = (received.next(), received.next()) else {
        return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
    };
    let network = SessionNetwork { user, network };
    Ok((network, received.map(TcpListener::from).collect()))
}

fn lacks(reason: String) -> Error {
    Error::NotEnforced {
        mechanism: "network of the session",
        reason,
    }
}

/// Creates the network in the throwaway process that [`SessionNetwork::open`] started, and
/// sends it to haft through the socket on standard input.
pub(super) fn create(ports: impl Iterator<Item = u16>) -> Result<()> {
    enter::new_user_namespace(UnshareFlags::NEWNET)?;
    raise_loopback()?;
    let failed = |step| {
        move |source| Error::Step {
            step,
            path: None,
            source,
        }
    };
    let socket = rustix::stdio::stdin();
    for kind in ["user", "net"] {
        let namespace = syscalls::namespace(kind).map_err(failed("open the network"))?;
        handle::send(socket, &namespace).map_err(failed("send the network"))?;
    }
    for port in ports {
        let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let six = (port != 0).then(|| SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
        for address in std::iter::once(four).chain(six) {
            match TcpListener::bind(address) {
                Ok(listener) => {
                    handle::send(socket, &listener).map_err(failed("send a listener"))?;
                }
                // The kernel may have no IPv6.
                Err(_) if address.is_ipv6() => {}
                Err(error) => return Err(failed("listen in the network")(error)),
            }
        }
    }
    Ok(())
}

/// Switches on the loopback interface of a network that was just created.
pub(super) fn raise_loopback() -> Result<()> {
    syscalls::raise_loopback().map_err(enter::step("loopback interface"))
}
