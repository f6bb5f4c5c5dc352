//! What a scope is made from.

use super::{FileRules, PrivateTemp};
use std::path::PathBuf;

/// The folders a scope over the disk is made from. There are no defaults: the
/// caller states each choice.
#[derive(Debug, Clone)]
pub struct Places {
    /// The folder that relative paths start from; always in scope.
    pub work_dir: PathBuf,
    /// More folders with the same rights.
    pub roots: Vec<PathBuf>,
    /// Folders that may be read whatever the rules say of the place they lie
    /// in, and never written: outputs that a note named.
    pub readable: Vec<PathBuf>,
    /// The person's home folder, where the secret places are.
    pub home: Option<PathBuf>,
    /// Configurations of git that the environment names, beside the usual ones in
    /// `home`.
    pub git_configs: Vec<PathBuf>,
    /// haft's own folders: neither read nor written.
    pub own: Vec<PathBuf>,
    /// Folders and files that are never written. Relative ones start at
    /// `work_dir`; empty ones protect nothing.
    pub protect: Vec<PathBuf>,
    /// What stands for the shared temp folders and may always be written; not
    /// used where the rules allow everything.
    pub temp: Option<PrivateTemp>,
    /// What may be read and written.
    pub rules: FileRules,
}
