//! Batches, which only 2025-03-26 has: several messages in an array, answered by one array.

use std::collections::HashMap;

/// Maximum number of messages in a batch.
pub(crate) const MAX_MESSAGES: usize = 1000;

/// Identifies an open batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BatchId(u64);

/// Batches that still wait for answers.
#[derive(Default)]
pub(crate) struct Batches {
    open: HashMap<BatchId, Batch>,
    count: u64,
}

struct Batch {
    missing: usize,
    answers: Vec<u8>,
}

impl Batches {
    /// Opens a batch of this many messages. Each must be settled once.
    pub(crate) fn open(&mut self, messages: usize) -> BatchId {
        self.count += 1;
        let id = BatchId(self.count);
        let batch = Batch {
            missing: messages,
            answers: Vec::new(),
        };
        self.open.insert(id, batch);
        id
    }

    /// Settles one message of a batch, with its answer if it has one. Settling the last
    /// message returns all answers as an array, or `None` if there are none.
    pub(crate) fn settle(&mut self, id: BatchId, answer: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let batch = self.open.get_mut(&id)?;
        if let Some(answer) = answer {
            batch
                .answers
                .push(if batch.answers.is_empty() { b'[' } else { b',' });
            batch.answers.extend_from_slice(&answer);
        }
        batch.missing = batch.missing.saturating_sub(1);
        if batch.missing > 0 {
            return None;
        }
        let mut answers = self.open.remove(&id)?.answers;
        if answers.is_empty() {
            return None;
        }
        answers.push(b']');
        Some(answers)
    }
}
