//! `haft store`, as people type it.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List the files in the store.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft store list\n  haft store list --json"
    )]
    List {
        /// Only what is below this folder
        #[arg(value_name = "FOLDER")]
        folder: Option<String>,
        #[command(flatten)]
        part: Part,
        /// Print a line of JSON for each file
        #[arg(long)]
        json: bool,
    },
    /// Print a file of the store, byte for byte.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft store get /notes.md\n  \
        haft store get /notes.md > copy.md"
    )]
    Get {
        /// Path in the store
        path: String,
        #[command(flatten)]
        part: Part,
    },
    /// Write a file into the store; what is there is replaced.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft store put /notes.md notes.md\n  \
        date | haft store put /today.txt"
    )]
    Put {
        /// Path in the store
        path: String,
        /// File with the content; stdin if not given
        file: Option<PathBuf>,
        #[command(flatten)]
        part: Part,
    },
    /// Delete files from the store.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft store delete /notes.md\n  \
        haft store delete /a.md /b.md --namespace notes"
    )]
    Delete {
        /// Paths in the store
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<String>,
        #[command(flatten)]
        part: Part,
    },
}

/// Which part of the store is meant.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// Namespace; the one that haft.yaml names if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}
