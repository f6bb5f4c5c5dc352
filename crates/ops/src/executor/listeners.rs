//! Finds the listener of a TCP port: the command's own tree, or something else.

use super::tree;
use std::collections::HashSet;
use std::path::PathBuf;

/// The owner of the sockets that listen on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// The command, or a process that it started.
    Own,
    /// Only processes that the command did not start.
    Other,
    /// No socket listens on it.
    None,
}

/// `TCP_LISTEN`, as `/proc/net/tcp` writes it.
const LISTEN: &str = "0A";

/// Finds the listener of `port` in the network that the tree below `supervisor` uses.
pub(super) fn listener(supervisor: u32, port: u16) -> Listener {
    let mut networks: Vec<(Option<PathBuf>, HashSet<u64>)> = Vec::new();
    for node in tree::descendants(supervisor) {
        let network = tree::link(node.pid, "ns/net");
        let known = networks.iter().position(|(known, _)| *known == network);
        let at = known.unwrap_or_else(|| {
            networks.push((network, listening(node.pid, port)));
            networks.len() - 1
        });
        let Some((_, sockets)) = networks.get(at) else {
            continue;
        };
        if !sockets.is_empty() && tree::sockets(node.pid).any(|inode| sockets.contains(&inode)) {
            return Listener::Own;
        }
    }
    if networks.is_empty() {
        // It has ended. Whatever listens now is not its own.
        networks.push((None, listening(std::process::id(), port)));
    }
    if networks.iter().any(|(_, sockets)| !sockets.is_empty()) {
        Listener::Other
    } else {
        Listener::None
    }
}

/// The inodes of the sockets that listen on `port` in the network of a process.
fn listening(pid: u32, port: u16) -> HashSet<u64> {
    let tables = ["tcp", "tcp6"].map(|table| tree::network_table(pid, table));
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.filter_map(|line| inode(line, port)).collect()
}

/// The inode of a row that is a socket listening on `port`.
fn inode(row: &str, port: u16) -> Option<u64> {
    let mut fields = row.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let (_, number) = local.rsplit_once(':')?;
    let is_listening = state == LISTEN && u16::from_str_radix(number, 16).ok()? == port;
    is_listening.then(|| fields.nth(5)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let listens = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 47110 1 0000000000000000 100 0 0 10 0";
        let connected = "   1: 0100007F:1F90 0100007F:D2A4 01 00000000:00000000 00:00000000 00000000  1000        0 47111 1 0000000000000000 20 4 30 10 -1";
        let six = "   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 815 1 0000000000000000 100 0 0 10 0";
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(inode(listens, 8080), Some(47110));
        assert_eq!(inode(six, 8080), Some(815));
        assert_eq!(inode(listens, 80), None);
        assert_eq!(inode(connected, 8080), None);
        assert_eq!(inode(header, 8080), None);
    }
}
