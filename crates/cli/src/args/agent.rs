//! What the commands that ask a model take.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What to do; what stdin holds is added to it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Print one event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with the newest session of this folder
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) goes_on: bool,
    /// Go on with this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) resume: Option<String>,
    /// Start with the files of DIR, where the session keeps files
    #[arg(long, value_name = "DIR", conflicts_with_all = ["goes_on", "resume"])]
    pub(crate) files: Option<PathBuf>,
    /// JSON Schema that the final answer must satisfy
    #[arg(long, value_name = "FILE")]
    pub(crate) response_format: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Resume {
    /// Which; the newest of this folder if there is none
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// What to do next
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// About a call: approve, reject, reject:REASON, or changed arguments as JSON
    #[arg(long, value_name = "ID=WORD")]
    pub(crate) answer: Vec<String>,
    /// Print one event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// JSON Schema that the final answer must satisfy
    #[arg(long, value_name = "FILE")]
    pub(crate) response_format: Option<PathBuf>,
}

/// What `haft` alone takes.
#[derive(Debug, Default, Args)]
pub(crate) struct Chat {
    /// Go on with this session, or with the newest of this folder
    #[arg(long, value_name = "SESSION", num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,
    /// Go on with the newest session of this folder
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) goes_on: bool,
}
