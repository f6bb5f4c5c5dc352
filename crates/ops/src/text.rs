//! Pure functions on text: counting, truncating, decoding, comparing.
//!
//! They take text or bytes and return facts or text. None of them opens a file, knows a
//! toolset's wording or blocks, so every tool counts, truncates and formats sizes in the
//! same way.
//!
//! Throughout, a line ends at `\n`, and a final newline does not start another line.

pub mod brace;
pub mod brief;
pub mod decode;
pub mod diff;
pub mod duration;
pub mod front_matter;
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
