//! A model at work by the built command: what it prints, what it leaves, and what no
//! provider, no kill and no full disk can do to it.
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
mod projects;
mod providers;
mod replayed;
mod runs;
mod secrets;
mod settings;
mod together;
mod trouble;
mod within;
