//! What only a front end knows about the person's folders.

use std::path::PathBuf;

/// Folders of the person, which only a front end can know.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// Their home, where the secret places are.
    pub home: Option<PathBuf>,
    /// Configurations of git that the environment names, beside the usual ones in
    /// their home.
    pub git_configs: Vec<PathBuf>,
    /// haft's configuration.
    pub config: Option<PathBuf>,
    /// haft's state: outputs, and notes of temporary files.
    pub state: Option<PathBuf>,
    /// More folders that are haft's own, closed to tools as the others are.
    pub own: Vec<PathBuf>,
    /// How the person may call the work folder besides: absolute paths that lead to it
    /// through links. Those that lead elsewhere are ignored.
    pub called: Vec<PathBuf>,
}
