//! The network that the commands of a session share.
//!
//! It is a network namespace with nothing but a loopback interface, in a user namespace of its
//! own. No process keeps it alive: haft holds the two descriptors and passes them to the
//! supervisor of each command, which joins the namespaces before it creates its own. A server
//! that one command starts is thus reachable from the next command, but neither from the
//! machine nor from another session. haft also holds sockets that listen inside this network.
//! It accepts connections on them although haft itself is outside; that is how named hosts
//! are reached.

use super::maker::{self, Names};
use super::probe::Helper;
use super::{Error, Result, busy, enter, syscalls};
use crate::executor::handle;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

/// Word that makes the helper create a network.
pub(super) const WORD: &str = "network";

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
        maker::is_possible(helper, &NAMES)?;
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

const NAMES: Names = Names {
    mechanism: "network of the session",
    step: "create the session's network",
};

fn open_once(helper: &Helper, ports: &[u16]) -> Result<(SessionNetwork, Vec<TcpListener>)> {
    let ports = ports.iter().map(u16::to_string);
    let words = std::iter::once(WORD.to_owned()).chain(ports);
    let (received, _) = maker::make(helper, words, b"", &NAMES)?;
    let mut received = received.into_iter();
    let (Some(user), Some(network)) = (received.next(), received.next()) else {
        return Err(NAMES.failed(std::io::ErrorKind::UnexpectedEof));
    };
    let network = SessionNetwork { user, network };
    Ok((network, received.map(TcpListener::from).collect()))
}

/// Creates the network in the throwaway process that [`SessionNetwork::open`] started, and
/// sends it to haft through the socket on standard input.
pub(super) fn create(ports: impl Iterator<Item = u16>) -> Result<()> {
    enter::new_user_namespace(UnshareFlags::NEWNET)?;
    raise_loopback()?;
    open_low_ports();
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

/// Lets commands listen on ports below 1024, as root can outside. They are ports of the
/// session alone. Where it does not work, only those ports are missing.
fn open_low_ports() {
    let file = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if let Ok(file) = openat(CWD, file, flags, Mode::empty()) {
        let _ = rustix::io::write(&file, b"0");
    }
}

/// Switches on the loopback interface of a network that was just created.
pub(super) fn raise_loopback() -> Result<()> {
    syscalls::raise_loopback().map_err(enter::step("loopback interface"))
}
