//! Arguments of the commands that run an agent.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Task for the agent; text on stdin is appended
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Continue the latest session in this folder
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continue_latest: bool,
    /// Continue this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) resume: Option<String>,
    /// Copy the files in DIR into the session's own file store
    #[arg(long, value_name = "DIR", conflicts_with_all = ["continue_latest", "resume"])]
    pub(crate) files: Option<PathBuf>,
    /// JSON Schema for the final answer
    #[arg(long, value_name = "FILE", visible_alias = "output-schema")]
    pub(crate) response_format: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Resume {
    /// Session to resume [default: the latest in this folder]
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Next task for the agent
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Answer to a pending call: approve, reject, reject:REASON or new
    /// arguments as JSON; for its changes keep or revert; can be repeated
    #[arg(long, value_name = "ID=WORD")]
    pub(crate) answer: Vec<String>,
    /// Print one JSON event per line
    #[arg(long)]
    pub(crate) json: bool,
    /// JSON Schema for the final answer
    #[arg(long, value_name = "FILE", visible_alias = "output-schema")]
    pub(crate) response_format: Option<PathBuf>,
}

/// Arguments of `haft` without a command.
#[derive(Debug, Default, Args)]
pub(crate) struct Chat {
    /// Resume this session, or the latest in this folder
    #[arg(long, value_name = "SESSION", num_args = 0..=1)]
    pub(crate) resume: Option<Option<String>>,
    /// Continue the latest session in this folder
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continue_latest: bool,
}
