//! Arguments of the commands about what calls changed.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Session or call; then files and folders to show
    #[arg(value_name = "SESSION|CALL|PATH")]
    pub(crate) what: Vec<String>,
    /// Print one line per file instead of a diff
    #[arg(long, group = "as")]
    pub(crate) stat: bool,
    /// Print one line of JSON per call
    #[arg(long, group = "as")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Calls to undo; then files and folders, if not all
    #[arg(value_name = "CALL|PATH")]
    pub(crate) what: Vec<String>,
    /// Undo all calls of the last turn
    #[arg(long, conflicts_with = "session")]
    pub(crate) turn: bool,
    /// Undo a whole session [default: the newest one]
    #[arg(long, value_name = "SESSION", num_args = 0..=1)]
    pub(crate) session: Option<Option<String>>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Move files that changed since aside, and restore
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Redo {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Move files that changed since aside
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Remove without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Remove only the caches that commands filled
    #[arg(long)]
    pub(crate) caches: bool,
}
