//! The sandbox modes and their file rules.

/// Sandbox mode, as the user selects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Read everything except secret paths; write only in the work folder.
    Workspace,
    /// Like `Workspace`, but read only the work folder and system folders.
    Strict,
    /// Read like `Workspace`; write only the private temp folder.
    ReadOnly,
    /// Whatever the operating system allows.
    Off,
}

impl Mode {
    /// Returns the file rules of the mode.
    #[must_use]
    pub const fn rules(self) -> FileRules {
        match self {
            Self::Workspace => FileRules {
                reading: Reading::NotSecret,
                writing: Writing::Roots,
            },
            Self::Strict => FileRules {
                reading: Reading::RootsAndSystem,
                writing: Writing::Roots,
            },
            Self::ReadOnly => FileRules {
                reading: Reading::NotSecret,
                writing: Writing::Nothing,
            },
            Self::Off => FileRules {
                reading: Reading::Anywhere,
                writing: Writing::Anywhere,
            },
        }
    }
}

/// Rules for reading and writing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRules {
    /// Files that may be read.
    pub reading: Reading,
    /// Files that may be written.
    pub writing: Writing,
}

impl FileRules {
    /// Returns the stricter rule of each kind.
    #[must_use]
    pub fn tightened(self, other: Self) -> Self {
        Self {
            reading: self.reading.max(other.reading),
            writing: self.writing.max(other.writing),
        }
    }
}

/// Files that may be read. Ordered from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// Whatever the operating system allows.
    Anywhere,
    /// Everything except secret paths.
    NotSecret,
    /// The roots and the system's folders.
    RootsAndSystem,
    /// Only the roots.
    Roots,
}

/// Files that may be written. Ordered from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writing {
    /// Whatever the operating system allows, except protected paths.
    Anywhere,
    /// Only the roots.
    Roots,
    /// No file at all.
    Nothing,
}
