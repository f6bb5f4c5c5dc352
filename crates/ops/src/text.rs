//! Pure functions on text: counting, cutting, decoding, comparing.
//!
//! What belongs here takes text or bytes and returns facts or text. Nothing
//! here opens a file, knows a toolset's wording or waits for anything, so that
//! every tool counts, cuts and names sizes alike.
//!
//! One rule holds throughout: a line ends at `\n`, and a final newline makes no
//! extra line.

pub mod brace;
pub mod brief;
pub mod decode;
pub mod diff;
pub mod duration;
pub mod front;
pub mod limit;
pub mod lines;
pub mod moment;
pub mod nearest;
pub mod secrets;
pub mod size;
pub mod sniff;
pub mod spelling;

pub use brief::{brief, few};
pub use duration::{seconds, short};
pub use limit::{
    Cut, Hit, Keep, Limit, MAX_BYTES, MAX_LINES, middle, middle_of, truncate_head, truncate_tail,
};
pub use size::size;
