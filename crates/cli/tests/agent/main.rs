//! Agent runs with the built command: output, records, and robustness against providers,
//! kills and full disks.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests make trouble themselves, and fail by panicking"
)]

mod approvals;
mod background;
mod bed;
mod calls;
mod disk;
mod events;
mod format;
mod held;
mod interrupts;
mod kills;
mod limits;
mod memory;
mod network;
mod projects;
mod providers;
mod replayed;
mod runs;
mod secrets;
mod settings;
mod together;
mod trouble;
mod within;
