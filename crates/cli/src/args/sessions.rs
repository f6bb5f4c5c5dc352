//! Arguments of `haft sessions`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List the sessions in this folder, latest first.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions list\n  haft sessions list --all --json"
    )]
    List(List),
    /// Show a session's messages and calls.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions show k3f9\n  haft sessions show k3f9 | head -50"
    )]
    Show {
        /// Session id, or the start of it
        session: String,
    },
    /// Resume a session (same as `haft resume`).
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions resume \"Now the tests\"\n  \
        haft sessions resume k3f9 \"Go on\""
    )]
    Resume(super::agent::Resume),
    /// Copy a session up to some point, to continue from there.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions fork k3f9\n  \
        haft sessions fork k3f9 --at 16777217"
    )]
    Fork {
        /// Session id, or the start of it
        session: String,
        /// Last message or call to copy [default: the last one]
        #[arg(long, value_name = "MESSAGE|CALL")]
        at: Option<String>,
        /// Also copy the work folder as it was then
        #[arg(long, value_name = "DIR")]
        files: Option<std::path::PathBuf>,
    },
    /// Print a session as JSON lines, Markdown or HTML.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions export k3f9 > session.jsonl\n  \
        haft sessions export k3f9 --format html > session.html"
    )]
    Export {
        /// Session id, or the start of it
        session: String,
        /// Format: jsonl, md or html [default: jsonl]
        #[arg(long, value_name = "FORMAT", default_value = "jsonl",
            hide_default_value = true, hide_possible_values = true,
            value_parser = PossibleValuesParser::new(["jsonl", "md", "html"]))]
        format: String,
    },
    /// Print the full output of a call.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions output call-1\n  \
        haft sessions output call-1 --session k3f9"
    )]
    Output {
        /// Id of the call
        #[arg(value_name = "CALL_ID")]
        call: String,
        /// Session of the call, if several have one with this id
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// List the files stored in a session, or print one.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions files k3f9\n  \
        haft sessions files k3f9 --json"
    )]
    Files {
        /// Session id, or the start of it
        session: String,
        /// File to print
        #[arg(value_name = "PATH")]
        path: Option<String>,
        /// Print one line of JSON per file
        #[arg(long, conflicts_with = "path")]
        json: bool,
    },
    /// Show a session's todo list.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions todos k3f9\n  \
        haft sessions todos k3f9 --json"
    )]
    Todos {
        /// Session id, or the start of it
        session: String,
        /// Print one line of JSON per todo
        #[arg(long)]
        json: bool,
    },
    /// Delete sessions, including outputs and sub-agents.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions delete k3f9 --yes\n  \
        haft sessions delete 7q2m 9xk4 --yes"
    )]
    Delete {
        /// Session ids, or the start of them
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
        /// Delete without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Include every folder, and single calls
    #[arg(long)]
    pub(crate) all: bool,
    /// Include calls made by `haft call` and `haft mcp`
    #[arg(long)]
    pub(crate) calls: bool,
    /// Print one line of JSON per session
    #[arg(long)]
    pub(crate) json: bool,
}
