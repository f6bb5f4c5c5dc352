//! `haft sessions`, as people type it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List the sessions of this folder, the newest first.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions list\n  haft sessions list --all --json"
    )]
    List(List),
    /// Show what was said and done in a session.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions show k3f9\n  haft sessions show k3f9 | head -50"
    )]
    Show {
        /// The session, or the beginning of its id
        session: String,
    },
    /// Go on with a session, and answer what waits in it: `haft resume`.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions resume k3f9 \"Now the tests\"\n  \
        haft sessions resume k3f9 --answer call-1=approve"
    )]
    Resume(super::agent::Resume),
    /// Make another session that goes on from somewhere in this one.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions fork k3f9\n  \
        haft sessions fork k3f9 --at 16777217"
    )]
    Fork {
        /// The session, or the beginning of its id
        session: String,
        /// After this message, not after the last one
        #[arg(long, value_name = "MESSAGE")]
        at: Option<i64>,
    },
    /// Print a session as JSON lines, Markdown or HTML.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions export k3f9 > session.jsonl\n  \
        haft sessions export k3f9 --format html > session.html"
    )]
    Export {
        /// The session, or the beginning of its id
        session: String,
        /// jsonl, md or html [default: jsonl]
        #[arg(long, value_name = "FORMAT", default_value = "jsonl",
            hide_default_value = true, hide_possible_values = true,
            value_parser = PossibleValuesParser::new(["jsonl", "md", "html"]))]
        format: String,
    },
    /// Print the whole output of a call.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions output call-1\n  \
        haft sessions output call-1 --session k3f9"
    )]
    Output {
        /// The call
        #[arg(value_name = "CALL_ID")]
        call: String,
        /// Of this session, where several have such a call
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
    },
    /// Delete sessions, with their outputs and their sub-agents'.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions delete k3f9 --yes\n  \
        haft sessions delete 7q2m 9xk4 --yes"
    )]
    Delete {
        /// Sessions, or the beginnings of their ids
        #[arg(required = true, value_name = "SESSION")]
        sessions: Vec<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Those of every folder, and calls too
    #[arg(long)]
    pub(crate) all: bool,
    /// Calls of `haft call` and `haft mcp` too
    #[arg(long)]
    pub(crate) calls: bool,
    /// Print a line of JSON for each
    #[arg(long)]
    pub(crate) json: bool,
}
