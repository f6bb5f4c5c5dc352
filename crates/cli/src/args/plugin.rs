//! `haft plugin`, as people type it.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use std::ffi::OsString;

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Speak the plugin protocol to a program, show each line, and judge it.
    #[command(
        verbatim_doc_comment,
        override_usage = "haft plugin test [OPTIONS] CMD [ARGS]...",
        after_help = "Examples:\n  haft plugin new bash hello\n  \
        haft plugin test bash ./hello/tool.sh"
    )]
    Test(Test),
    /// Make a folder with a plugin that works, to begin from.
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
    /// The program and its arguments; it is really run
    #[arg(
        value_name = "CMD",
        required = true,
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,
    /// How to ask for its tools: auto, describe or init
    #[arg(long, value_name = "PROTOCOL", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["auto", "describe", "init"]))]
    pub(crate) protocol: Option<String>,
    /// describe or calls: that part alone
    #[arg(long, value_name = "PART", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["describe", "calls"]))]
    pub(crate) only: Option<String>,
    /// Call this tool with these arguments (repeatable)
    #[arg(long, num_args = 2, value_names = ["TOOL", "JSON"])]
    pub(crate) call: Vec<String>,
    /// How long a call may take, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", default_value_t = 30, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
    /// Let it see this variable too (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// Print the report as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// python, typescript, go, rust, bash, ruby or lua
    // Checked by the command, which knows what was probably meant.
    #[arg(value_name = "LANG")]
    pub(crate) language: String,
    /// What the tool and its folder are called
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    /// Whose log; without a name, which logs there are
    pub(crate) name: Option<String>,
    /// How many lines of its end [default: 100]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        hide_default_value = true
    )]
    pub(crate) lines: usize,
}
