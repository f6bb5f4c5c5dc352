//! The command line as people type it. A doc comment here is the help text.

pub(crate) mod agent;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod plugin;
pub(crate) mod sessions;
pub(crate) mod store;

use crate::{config, log};
use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Lists the shared flags in two lines: the help of every command explains them.
const TOP: &str = "\
{about}

{usage-heading} {usage}

{subcommands}

Flags, before or after the command (explained by `haft call --help`):
  --dir DIR  --config FILE  --toolset NAME  --preset NAME  --sandbox MODE
  --network on|off  --approve WHEN  --model NAME  --plugin CMD  --trust
  --log LEVEL  --quiet  --help  --version{after-help}";

/// An agent for this folder, and its tools: use them, look at them, serve them.
#[derive(Debug, Parser)]
#[command(
    name = "haft",
    // Else the name that it was started by, which is anybody's.
    bin_name = "haft",
    version,
    verbatim_doc_comment,
    disable_help_subcommand = true,
    term_width = 80,
    help_template = TOP,
    override_usage = "haft [--resume [SESSION] | --continue]    chat in this folder\n       \
        haft [FLAGS] COMMAND",
    after_help = "Examples:\n  haft demo\n  haft call ls path=."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(flatten)]
    pub(crate) chat: agent::Chat,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_display_order = 100)]
pub(crate) struct Shared {
    /// Work in this folder instead of the current one
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Read this file instead of the folder's haft.yaml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which tools there are
    #[arg(long, global = true, value_name = "NAME", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft::toolsets::NAMES))]
    pub(crate) toolset: Option<String>,
    /// Which of them a model sees
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// workspace, strict, read-only or off
    #[arg(long, global = true, value_name = "MODE", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(config::MODES))]
    pub(crate) sandbox: Option<String>,
    /// on or off: the network, for commands
    #[arg(long, global = true, value_name = "on|off", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["on", "off"]))]
    pub(crate) network: Option<String>,
    /// What a rule asks about: ask, auto or never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(config::APPROVE))]
    pub(crate) approve: Option<String>,
    /// The model that answers
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// With the tools of this program too; may be repeated
    #[arg(long, global = true, value_name = "CMD ARGS")]
    pub(crate) plugin: Vec<String>,
    /// Run what this folder brings, this once
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Results and errors only
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Log to stderr: off, error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(log::LEVELS))]
    pub(crate) log: Option<String>,
}

/// The command line, with `--help` unlisted: who reads a help knows it, and the
/// line is wanted for flags, as a help fits a terminal of 24 lines.
pub(crate) fn command() -> clap::Command {
    fn unlisted(command: clap::Command) -> clap::Command {
        command.disable_help_flag(true).mut_subcommands(unlisted)
    }
    let help = clap::Arg::new("help")
        .long("help")
        .short('h')
        .global(true)
        .hide(true)
        .action(clap::ArgAction::Help);
    unlisted(Cli::command()).arg(help)
}

/// Understands a command line.
pub(crate) fn parse<I, T>(words: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    let mut command = command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

impl Shared {
    /// What a flag says, if it was given.
    pub(crate) fn text(&self, flag: &str) -> Option<String> {
        match flag {
            "--toolset" => self.toolset.clone(),
            "--preset" => self.preset.clone(),
            "--sandbox" => self.sandbox.clone(),
            "--network" => self.network.clone(),
            "--approve" => self.approve.clone(),
            "--log" => self.log.clone(),
            "--model" => self.model.clone(),
            "--quiet" => self.quiet.then(|| "true".to_owned()),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work on one task to its end, with nobody there.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft run \"Fix the failing test\"\n  \
        git diff | haft run --json \"Review this\""
    )]
    Run(agent::Run),
    /// Go on with a session, or answer what waits in it.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft resume \"Now the tests\"\n  haft resume k3f9 \"Go on\""
    )]
    Resume(agent::Resume),
    /// Run one tool and print its reply.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft call ls path=.\n  \
        haft call write '{\"path\": \"notes.txt\", \"content\": \"hello\"}'"
    )]
    Call(Call),
    /// Show the tools as a model would see them, or the page of one.
    #[command(
        verbatim_doc_comment,
        override_usage = "haft tools [OPTIONS] [NAME]",
        after_help = "Examples:\n  haft tools\n  haft tools read --json"
    )]
    Tools(Tools),
    /// Say what would be decided about a call, and by which rule.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft why ls path=.\n  \
        haft why write '{\"path\": \"notes.txt\", \"content\": \"hello\"}'"
    )]
    Why(Why),
    /// Serve the tools to MCP clients; list and test the servers haft uses.
    #[command(
        verbatim_doc_comment,
        args_conflicts_with_subcommands = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft mcp --preset readonly\n  haft mcp list"
    )]
    Mcp(mcp::Mcp),
    /// Test a plugin, begin one, or read what plugins logged.
    #[command(
        verbatim_doc_comment,
        subcommand_required = true,
        arg_required_else_help = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft plugin new python hello\n  \
        haft plugin test python3 ./hello/tool.py"
    )]
    Plugin {
        #[command(subcommand)]
        command: plugin::Plugin,
    },
    /// List, show, fork, export and delete sessions.
    #[command(
        verbatim_doc_comment,
        subcommand_required = true,
        arg_required_else_help = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft sessions list\n  haft sessions show k3f9"
    )]
    Sessions {
        #[command(subcommand)]
        command: sessions::Sessions,
    },
    /// List, read, write and delete files of the store.
    #[command(
        verbatim_doc_comment,
        subcommand_required = true,
        arg_required_else_help = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft store list\n  haft store get /notes.md"
    )]
    Store {
        #[command(subcommand)]
        command: store::Store,
    },
    /// Write a haft.yaml: commented, or from another program's settings.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft init\n  haft init --force --from .mcp.json"
    )]
    Init(Init),
    /// Show the configuration in force, or the schema of haft.yaml.
    #[command(
        verbatim_doc_comment,
        subcommand_required = true,
        arg_required_else_help = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft config show\n  haft config schema"
    )]
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Say what is enforced here, which models there are, and what would help.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft doctor\n  haft doctor --json"
    )]
    Doctor(Doctor),
    /// Show what this folder would run, and trust exactly that.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft trust\n  haft trust --revoke"
    )]
    Trust(TrustArgs),
    /// Print a completion script for a shell.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft completions bash\n  haft completions zsh > _haft"
    )]
    Completions {
        /// bash, zsh, fish, elvish or powershell
        #[arg(value_name = "SHELL", hide_possible_values = true)]
        shell: Shell,
    },
    /// Watch a recorded agent with real tools: no key, no network.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft demo\n  NO_COLOR=1 haft demo"
    )]
    Demo,
    /// Show the help of a command.
    // Our own: the one of the parser has no examples. Not listed, as every
    // command takes --help.
    #[command(
        verbatim_doc_comment,
        hide = true,
        after_help = "Examples:\n  haft help\n  haft help config show"
    )]
    Help {
        /// The command; haft itself if there is none
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// Any tool of the toolset, whatever the preset
    pub(crate) tool: String,
    /// Arguments: a JSON object, - for JSON on stdin, or pairs
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Print content, is_error and details as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Any tool of the toolset, whatever the preset
    pub(crate) tool: String,
    /// Arguments, as for call
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Print the decision and its reasons as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print what was found as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Show this tool's page: description and parameters
    // Said by the usage and the line above it: the flags need the room.
    #[arg(hide = true)]
    pub(crate) name: Option<String>,
    /// Print the definitions as a JSON array
    #[arg(long, group = "as")]
    pub(crate) json: bool,
    /// Print the section for a model's prompt
    #[arg(long, group = "as")]
    pub(crate) prompt: bool,
    /// Estimate how many tokens each definition takes
    #[arg(long, group = "as")]
    pub(crate) cost: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Settings of agent, Claude Code, Codex, Gemini CLI or opencode
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show the values in force and where each comes from.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft config show\n  haft config show --json"
    )]
    Show {
        /// Print an object with value and from for each key
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of haft.yaml, for editors.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft config schema\n  \
        haft config schema > haft.schema.json"
    )]
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Trust nothing of this folder any more
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}
