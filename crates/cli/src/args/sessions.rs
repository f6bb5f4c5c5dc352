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
    /// Go on with a session; the same as `haft resume`.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions resume \"Now the tests\"\n  \
        haft sessions resume k3f9 \"Go on\""
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
    /// List the files that a session keeps, or print one of them.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions files k3f9\n  \
        haft sessions files k3f9 --json"
    )]
    Files {
        /// The session, or the beginning of its id
        session: String,
        /// Print this file, byte for byte
        #[arg(value_name = "PATH")]
        path: Option<String>,
        /// Print a line of JSON for each file
        #[arg(long, conflicts_with = "path")]
        json: bool,
    },
    /// Show the todo list of a session.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft sessions todos k3f9\n  \
        haft sessions todos k3f9 --json"
    )]
    Todos {
        /// The session, or the beginning of its id
        session: String,
        /// Print a line of JSON for each entry
        #[arg(long)]
        json: bool,
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
