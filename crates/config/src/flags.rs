//! Settings that apply to one run.

use std::path::PathBuf;

/// Choices of the user on the command line, or of a front end on the user's behalf. They
/// take precedence over variables and files.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// Work in this folder instead of the current one.
    pub dir: Option<PathBuf>,
    /// Read this file instead of the folder's haft.yaml.
    pub config: Option<PathBuf>,
    /// Name of the toolset.
    pub toolset: Option<String>,
    /// Preset of the toolset.
    pub preset: Option<String>,
    /// Name of the sandbox mode.
    pub sandbox: Option<String>,
    /// Network access of commands: `on`, `off`, or hosts with commas between them.
    pub network: Option<String>,
    /// How to handle calls that need approval.
    pub approve: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// How much the model thinks.
    pub effort: Option<String>,
    /// Command lines of additional plugins.
    pub plugin: Vec<String>,
    /// Trust the folder for this run.
    pub trust: bool,
    /// Print only results and errors.
    pub quiet: bool,
    /// Level of the log.
    pub log: Option<String>,
    /// Leave out the folder's haft.yaml, which may be broken.
    pub ignore_project: bool,
}

impl Flags {
    /// Returns the value of a flag, if it was given.
    pub(crate) fn text(&self, flag: &str) -> Option<String> {
        match flag {
            "--toolset" => self.toolset.clone(),
            "--preset" => self.preset.clone(),
            "--sandbox" => self.sandbox.clone(),
            "--network" => self.network.clone(),
            "--approve" => self.approve.clone(),
            "--log" => self.log.clone(),
            "--model" => self.model.clone(),
            "--effort" => self.effort.clone(),
            "--quiet" => self.quiet.then(|| "true".to_owned()),
            _ => None,
        }
    }
}
