//! Operations on files and commands: the engine under haft's toolsets.

pub mod text;
