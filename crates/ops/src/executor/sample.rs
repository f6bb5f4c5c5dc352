//! Whether a tree does anything at all, from two looks at it.

use super::tree;

/// One look at the tree below a supervisor.
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
    /// Whether a tree that seems to have asked something waits for the answer, when
    /// it looked like `before` a while ago. Words alone prove nothing: the answer
    /// may have come through a pipe, and what goes on since then may be silent. So
    /// somebody must read from where people type.
    pub(super) fn waits(self, before: Self) -> bool {
        let still = !self.busy && self.processes > 0;
        let same = self.ticks == before.ticks && self.processes == before.processes;
        still && same && self.reads_from_person
    }
}
