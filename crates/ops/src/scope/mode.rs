//! The sandbox modes, and what each says about files.

/// How far a session is locked in, as the person says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Reads anywhere but secret places, writes only in the work folder.
    Workspace,
    /// Also reads only there and in system folders.
    Strict,
    /// Reads like `Workspace`, writes nothing but the private temp folder.
    ReadOnly,
    /// As the operating system allows.
    Off,
}

impl Mode {
    /// What the mode says about files.
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

/// What may be read and what may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRules {
    /// What may be read.
    pub reading: Reading,
    /// What may be written.
    pub writing: Writing,
}

impl FileRules {
    /// The stricter of the two, each way.
    #[must_use]
    pub fn tightened(self, other: Self) -> Self {
        Self {
            reading: self.reading.max(other.reading),
            writing: self.writing.max(other.writing),
        }
    }
}

/// What may be read, from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reading {
    /// Whatever the operating system allows.
    Anywhere,
    /// Everything but secret places.
    NotSecret,
    /// The roots and the system's folders.
    RootsAndSystem,
    /// The roots alone.
    Roots,
}

/// What may be written, from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writing {
    /// Whatever the operating system allows, but for protected places.
    Anywhere,
    /// The roots.
    Roots,
    /// Nothing.
    Nothing,
}
