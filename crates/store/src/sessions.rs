//! Sessions: what was said and done, in an order that no end of a process disturbs.
//!
//! Everything that must be true together goes into one [`Batch`], which is one
//! transaction. A batch that was acknowledged is on the disk.

mod batch;

pub use batch::{Approval, Batch, Call, Decision, NewMessage, Outcome};
