//! Arguments of `haft plugin`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Check that a program speaks the plugin protocol correctly.
    #[command(
        verbatim_doc_comment,
        override_usage = "haft plugin test [OPTIONS] CMD [ARGS]...",
        after_help = "Examples:\n  haft plugin new bash hello\n  \
        haft plugin test bash ./hello/tool.sh"
    )]
    Test(Test),
    /// Create a folder with a working plugin to start from.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft plugin new python weather\n  \
        haft plugin new bash disk_usage"
    )]
    New(New),
    /// Show what plugins wrote to stderr.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft plugin log\n  haft plugin log weather --lines 20"
    )]
    Log(Log),
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Program to run, with its arguments
    #[arg(
        value_name = "CMD",
        required = true,
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
    /// Handshake to use: auto, describe or init
    #[arg(long, value_name = "PROTOCOL", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["auto", "describe", "init"]))]
    pub(crate) protocol: Option<String>,
    /// Run only one part of the test: describe or calls
    #[arg(long, value_name = "PART", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["describe", "calls"]))]
    pub(crate) only: Option<String>,
    /// Call this tool with these arguments; can be repeated
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    pub(crate) call: Vec<String>,
    /// Seconds a call may take [default: 30]
    #[arg(long, value_name = "SECONDS", default_value_t = 30, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Pass this environment variable on; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Language: python, typescript, go, rust, bash, ruby or lua
    // Checked by the command, which can suggest the closest name.
    #[arg(value_name = "LANG")]
    pub(crate) language: String,
    /// Name of the tool and of its folder
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Plugin whose log to show; without a name, list the logs
    pub(crate) name: Option<String>,
    /// Number of lines to show from the end [default: 100]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        hide_default_value = true
    )]
    pub(crate) lines: usize,
}
