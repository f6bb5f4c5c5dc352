//! Folders that only the front end knows.

use std::path::PathBuf;

/// The user's folders, which only a front end can know.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// Home folder; it contains the secret paths.
    pub home: Option<PathBuf>,
    /// Git configuration files that the environment names, in addition to those in the home
    /// folder.
    pub git_configs: Vec<PathBuf>,
    /// Folder of haft's configuration.
    pub config: Option<PathBuf>,
    /// Folder of haft's state: saved outputs and records of temporary files.
    pub state: Option<PathBuf>,
    /// Further folders that belong to haft and are closed to tools.
    pub own: Vec<PathBuf>,
    /// Other absolute paths of the work folder, through links. Paths that lead elsewhere
    /// are ignored.
    pub called: Vec<PathBuf>,
}
