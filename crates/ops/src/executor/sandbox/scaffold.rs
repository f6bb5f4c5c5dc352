//! The places of layers in a plan.

use super::Plan;
use std::path::PathBuf;

/// A folder to which missing folders are added, so that layers can be mounted on them. The
/// folder itself does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scaffold {
    /// The folder as a real path.
    pub folder: PathBuf,
    /// The missing folders, as paths below it.
    pub points: Vec<PathBuf>,
}

impl Plan {
    /// Lets the command write in layers over cache folders. `layers` are real paths in the
    /// order of the session's layers, `readable` files to show in them.
    pub fn add_layers(
        &mut self,
        layers: Vec<PathBuf>,
        scaffolds: Vec<Scaffold>,
        readable: Vec<PathBuf>,
    ) {
        self.layers = layers;
        self.scaffolds = scaffolds;
        self.readable.extend(readable);
    }
}
