//! Arguments of `haft store`.

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
        /// List only this folder
        #[arg(value_name = "FOLDER")]
        folder: Option<String>,
        #[command(flatten)]
        part: Part,
        /// Print one line of JSON per file
        #[arg(long)]
        json: bool,
    },
    /// Print a file in the store.
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
    /// Write a file to the store, replacing an existing one.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft store put /notes.md notes.md\n  \
        date | haft store put /today.txt"
    )]
    Put {
        /// Path in the store
        path: String,
        /// File to copy [default: stdin]
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

/// Selects a part of the store.
#[derive(Debug, Args)]
pub(crate) struct Part {
    /// Namespace [default: the one in haft.yaml]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
}
