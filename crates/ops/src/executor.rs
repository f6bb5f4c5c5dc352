//! Running commands: where they run, and what they may reach.

pub mod sandbox;
