//! The command line as people type it. A doc comment here is the help text.

pub(crate) mod agent;
pub(crate) mod effects;
pub(crate) mod mcp;
pub(crate) mod mcp_servers;
pub(crate) mod plugin;
pub(crate) mod sessions;
pub(crate) mod store;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Help of `haft` alone.
const TOP: &str = "\
{about}

{usage-heading} {usage}

{subcommands}{after-help}";

/// Commands that the help of `haft` names without describing them.
const MINOR: [&str; 8] = [
    "why",
    "redo",
    "clean",
    "init",
    "config",
    "plugin",
    "store",
    "completions",
];

/// Help of `haft help flags`.
const FLAGS: &str = "\
{about}

{options}{after-help}";

/// An agent for the current folder, and the tools it works with.
#[derive(Debug, Parser)]
#[command(
    name = "haft",
    // Otherwise clap prints argv[0], which the caller chooses.
    bin_name = "haft",
    version,
    verbatim_doc_comment,
    disable_help_subcommand = true,
    term_width = 80,
    help_template = TOP,
    override_usage = "haft [--resume [SESSION] | --continue]    chat in this folder\n       \
        haft COMMAND [OPTIONS]",
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
    /// Toolset: standard, workspace, deepagents or ah
    #[arg(long, global = true, value_name = "NAME", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft::toolsets::NAMES))]
    pub(crate) toolset: Option<String>,
    /// Preset of the toolset: which tools the model gets
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) preset: Option<String>,
    /// Confine commands: workspace, strict, read-only or off
    #[arg(long, global = true, value_name = "MODE", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft_config::MODES))]
    pub(crate) sandbox: Option<String>,
    /// Network for commands: on, off, or hosts such as docs.rs,@python
    #[arg(long, global = true, value_name = "HOSTS")]
    pub(crate) network: Option<String>,
    /// How to handle calls that need approval: ask, auto or never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft_config::APPROVE))]
    pub(crate) approve: Option<String>,
    /// Model to use
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Thinking effort: minimal, low, medium, high or max
    #[arg(long, global = true, value_name = "LEVEL", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft_config::EFFORTS))]
    pub(crate) effort: Option<String>,
    /// Also load the tools of this program; can be repeated
    #[arg(long, global = true, value_name = "CMD ARGS")]
    pub(crate) plugin: Vec<String>,
    /// Trust the current folder for this run
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Print only results and errors
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Log to stderr: off, error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(haft_config::LEVELS))]
    pub(crate) log: Option<String>,
}

/// Returns the command line as completions know it, with every flag listed.
pub(crate) fn command() -> clap::Command {
    fn without_help_flag(command: clap::Command) -> clap::Command {
        let command = command.disable_help_flag(true);
        command.mut_subcommands(without_help_flag)
    }
    let help = clap::Arg::new("help")
        .long("help")
        .short('h')
        .global(true)
        .hide(true)
        .action(clap::ArgAction::Help);
    without_help_flag(Cli::command()).arg(help)
}

/// Returns the command line for parsing. Its help leaves out the shared flags and refers to
/// `haft help flags` instead, so that it fits a terminal of 24 lines.
fn command_with_short_help() -> clap::Command {
    fn refer_to_flags(command: clap::Command) -> clap::Command {
        let examples = command.get_after_help().cloned().unwrap_or_default();
        let flags = "Flags of every command: haft help flags";
        let command = command.after_help(format!("{flags}\n\n{examples}"));
        command.mut_subcommands(refer_to_flags)
    }
    let shared: Vec<_> = shared_flags()
        .get_arguments()
        .map(|flag| flag.get_id().clone())
        .collect();
    let mut command = refer_to_flags(command());
    let more = format!("More commands: {}", MINOR.join(", "));
    let rest = command.get_after_help().cloned().unwrap_or_default();
    command = command.after_help(format!("{more}\n{rest}"));
    for minor in MINOR {
        command = command.mut_subcommand(minor, |command| command.hide(true));
    }
    for flag in shared {
        command = command.mut_arg(flag, |flag| flag.hide(true));
    }
    command
}

/// Returns a command that has the shared flags and nothing else.
fn shared_flags() -> clap::Command {
    let command = clap::Command::new("haft").disable_help_flag(true);
    Shared::augment_args(command)
}

/// Returns the text of `haft help flags`.
pub(crate) fn flags_help() -> String {
    let command = shared_flags()
        .about("Flags that every command takes, before or after its name.")
        .after_help(
            "Also --help for every command, and --version for haft itself.\n\n\
             Examples:\n  haft --dir /tmp tools\n  haft call --sandbox read-only ls path=.",
        )
        .term_width(80)
        .help_template(FLAGS);
    command.clone().render_help().to_string()
}

/// Adds where the shared flags are listed, for a user who looks for them as a command.
fn with_tip(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let unknown = error.get(ContextKind::InvalidSubcommand);
    if unknown.is_some_and(|name| matches!(name, ContextValue::String(name) if name == "flags")) {
        let tip = "`haft help flags` lists the flags of every command";
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Parses a command line.
pub(crate) fn parse<I, T>(words: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<std::ffi::OsString> + Clone,
{
    let mut command = command_with_short_help();
    let matches = command.try_get_matches_from_mut(words);
    let matches = matches.map_err(with_tip)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

impl Shared {
    /// Returns the flags as the configuration takes them.
    pub(crate) fn flags(&self) -> haft_config::Flags {
        let Self {
            dir,
            config,
            toolset,
            preset,
            sandbox,
            network,
            approve,
            model,
            effort,
            plugin,
            trust,
            quiet,
            log,
        } = self.clone();
        haft_config::Flags {
            dir,
            config,
            toolset,
            preset,
            sandbox,
            network,
            approve,
            model,
            effort,
            plugin,
            trust,
            quiet,
            log,
            ignore_project: false,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task non-interactively.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft run \"Fix the failing test\"\n  \
        git diff | haft run --json \"Review this\""
    )]
    Run(agent::Run),
    /// Resume a session, or answer its pending approvals.
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
    /// Show what calls changed, deletions first.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft changes\n  haft changes call-7 src --stat"
    )]
    Changes(effects::Changes),
    /// Take back what a call changed, or several.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft undo\n  haft undo call-7 notes.txt --dry-run"
    )]
    Undo(effects::Undo),
    /// Take back the last undo.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft redo\n  haft redo --dry-run"
    )]
    Redo(effects::Redo),
    /// Remove what is kept for `haft undo`, or with --caches the caches of commands.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft clean --yes\n  haft clean --caches"
    )]
    Clean(effects::Clean),
    /// List the tools the model gets, or show one of them.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft tools\n  haft tools read --json"
    )]
    Tools(Tools),
    /// Explain whether a call would be allowed, and by which rule.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft why ls path=.\n  \
        haft why write '{\"path\": \"notes.txt\", \"content\": \"hello\"}'"
    )]
    Why(Why),
    /// Be the agent in an editor (Agent Client Protocol).
    ///
    /// The editor starts it and speaks JSON on stdin and stdout. Sessions, rules,
    /// sandbox and recorded changes are those of the terminal. docs/editors.md has
    /// the settings for Zed, the JetBrains IDEs, Neovim and Emacs.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft acp\n  haft acp --sandbox strict"
    )]
    Acp,
    /// Serve the tools over MCP; list and test other MCP servers.
    #[command(
        verbatim_doc_comment,
        args_conflicts_with_subcommands = true,
        disable_help_subcommand = true,
        after_help = "Examples:\n  haft mcp --preset readonly\n  haft mcp list"
    )]
    Mcp(mcp::Mcp),
    /// Test a plugin, create one, or read plugin logs.
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
    /// List, read, write and delete files in the store.
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
    /// Create a haft.yaml, or convert another agent's settings.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft init\n  haft init --force --from .mcp.json"
    )]
    Init(Init),
    /// Show the effective configuration or its schema.
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
    /// Check the sandbox, models and tools on this machine.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft doctor\n  haft doctor --json"
    )]
    Doctor(Doctor),
    /// Review what this folder wants to run, and trust it.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft trust\n  haft trust --revoke"
    )]
    Trust(TrustArgs),
    /// Print a shell completion script.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft completions bash\n  haft completions zsh > _haft"
    )]
    Completions {
        /// Shell: bash, zsh, fish, elvish or powershell
        #[arg(value_name = "SHELL", hide_possible_values = true)]
        shell: Shell,
    },
    /// Watch a recorded agent use real tools; no key needed.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft demo\n  NO_COLOR=1 haft demo"
    )]
    Demo,
    /// Show help for a command, or for the flags of every command.
    // clap's own has no examples. Hidden because every command takes --help.
    #[command(
        verbatim_doc_comment,
        hide = true,
        after_help = "Examples:\n  haft help flags\n  haft help config show"
    )]
    Help {
        /// Command, or `flags`; without one, haft itself
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Call {
    /// Any tool of the toolset, even if the preset leaves it out
    pub(crate) tool: String,
    /// Arguments: a JSON object, - for JSON on stdin, or pairs
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Print content, is_error and details as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with the exit code of the command that the tool ran
    #[arg(long)]
    pub(crate) exit_code: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Any tool of the toolset, even if the preset leaves it out, or `network`
    pub(crate) tool: String,
    /// Arguments, as for `haft call`
    #[arg(value_name = "JSON|-|KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
    /// Print the decision and its reasons as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print the findings as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Tool to show, with its description and parameters
    pub(crate) name: Option<String>,
    /// Print the definitions as a JSON array
    #[arg(long, group = "as")]
    pub(crate) json: bool,
    /// Print the tools section of the agent's prompt
    #[arg(long, group = "as")]
    pub(crate) prompt: bool,
    /// Estimate the tokens of each definition
    #[arg(long, group = "as")]
    pub(crate) cost: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Settings file of another agent, or a .mcp.json
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Overwrite an existing haft.yaml
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show each value and where it comes from.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft config show\n  haft config show --json"
    )]
    Show {
        /// Print one JSON object with `value` and `from` per key
        #[arg(long)]
        json: bool,
    },
    /// List the groups of hosts that `network` can name, such as @rust.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft config hosts\n  haft config hosts --json"
    )]
    Hosts {
        /// Print one JSON object with the hosts of each group
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of haft.yaml for editors.
    #[command(
        verbatim_doc_comment,
        after_help = "Examples:\n  haft config schema\n  \
        haft config schema > haft.schema.json"
    )]
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Stop trusting this folder
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Trust without asking
    #[arg(long)]
    pub(crate) yes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words that name a command and all commands below it.
    fn names(command: &clap::Command, above: &[String]) -> Vec<Vec<String>> {
        let name = [above, &[command.get_name().to_owned()]].concat();
        let below = command.get_subcommands();
        let below: Vec<_> = below.flat_map(|below| names(below, &name)).collect();
        [vec![name], below].concat()
    }

    #[test]
    fn the_help_of_every_command_fits_a_terminal() {
        let check = |help: &str| {
            assert!(help.lines().count() <= 24, "{help}");
            let mut lines = help.lines();
            assert!(lines.all(|line| line.chars().count() <= 80), "{help}");
        };
        let names = names(&command(), &[]);
        assert!(names.len() > 30, "{names:?}");
        for name in &names {
            for flag in ["--help", "-h"] {
                let words = name.iter().map(String::as_str).chain([flag]);
                let help = parse(words).unwrap_err();
                assert_eq!(help.kind(), clap::error::ErrorKind::DisplayHelp, "{help}");
                check(&help.to_string());
            }
        }
        check(&flags_help());
    }
}
