//! Detecting whether a process tree is idle, from two samples.

use super::tree;

/// A sample of the tree below a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    processes: usize,
    ticks: u64,
    busy: bool,
    reads_from_person: bool,
}

pub(super) fn look(supervisor: u32) -> Sample {
    let nodes = tree::descendants(supervisor);
    Sample {
        processes: nodes.len(),
        ticks: nodes.iter().map(|node| node.ticks).sum(),
        busy: nodes.iter().any(|node| matches!(node.state, b'R' | b'D')),
        reads_from_person: nodes.iter().any(|node| tree::reads_from_person(node.pid)),
    }
}

impl Sample {
    /// Whether a tree that seems to have asked a question waits for the answer, given an
    /// earlier sample `before`. The text alone proves nothing: the answer may have come
    /// through a pipe, and the work since then may be silent. So a process must be reading
    /// from where a user types.
    pub(super) fn waits(self, before: Self) -> bool {
        let still = !self.busy && self.processes > 0;
        let same = self.ticks == before.ticks && self.processes == before.processes;
        still && same && self.reads_from_person
    }
}
