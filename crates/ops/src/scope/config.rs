//! Input for a scope over the disk.

use super::{FileRules, PrivateTemp};
use std::path::PathBuf;

/// The folders of a scope over the disk. There are no defaults: the caller states each
/// choice.
#[derive(Debug, Clone)]
pub struct ScopeConfig {
    /// The folder that relative paths start from. Always in scope.
    pub work_dir: PathBuf,
    /// More folders with the same rights.
    pub roots: Vec<PathBuf>,
    /// Folders that may be read wherever they are, and never written: they hold full
    /// outputs that replies refer to.
    pub readable: Vec<PathBuf>,
    /// The user's home folder, which contains the secret paths.
    pub home: Option<PathBuf>,
    /// Git configuration files that the environment names, in addition to those in `home`.
    pub git_configs: Vec<PathBuf>,
    /// haft's own folders, which can be neither read nor written.
    pub own: Vec<PathBuf>,
    /// Folders and files that are never written. Relative ones start at `work_dir`; empty
    /// ones are ignored.
    pub protect: Vec<PathBuf>,
    /// Replacement for the shared temp folders, always writable. Not used if the rules
    /// allow everything.
    pub temp: Option<PrivateTemp>,
    /// Files that may be read and written.
    pub rules: FileRules,
}
