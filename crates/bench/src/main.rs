//! Replays the edit calls that models get wrong against any MCP server, and classifies
//! what happens: applied exactly, refused with help, refused without, or wrong.
#![expect(clippy::print_stdout, reason = "the tables are printed")]
#![expect(
    clippy::disallowed_methods,
    reason = "a program for measurements reads files and starts servers itself"
)]

mod case;
mod classify;
mod mapping;
mod mistakes;
mod report;
mod run;
mod server;
mod tasks;
mod texts;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Replays edit calls that models get wrong against any MCP server.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand)]
enum Commands {
    /// Run the corpus against servers and print a table.
    Run {
        /// Mapping files, one for each server.
        #[arg(required = true)]
        mappings: Vec<PathBuf>,
        /// Folder with a corpus; the built-in one without it.
        #[arg(long)]
        corpus: Option<PathBuf>,
        /// Also write an HTML page.
        #[arg(long)]
        html: Option<PathBuf>,
        /// Also write every call and its outcome, one JSON object a line.
        #[arg(long)]
        log: Option<PathBuf>,
        /// Also print a table by kind of mistake.
        #[arg(long)]
        by_mistake: bool,
        /// Run only mistakes whose name contains this text.
        #[arg(long)]
        only: Option<String>,
        /// Run only every Nth case.
        #[arg(long, default_value_t = 1)]
        every: usize,
    },
    /// Write the built-in corpus to a folder.
    Corpus {
        /// Folder to create.
        folder: PathBuf,
    },
}

fn main() -> Result<()> {
    let Arguments { command } = Arguments::parse();
    match command {
        Commands::Corpus { folder } => {
            let cases = built_in();
            case::save(&cases, &folder)?;
            println!("{} cases in {}", cases.len(), folder.display());
        }
        Commands::Run {
            mappings,
            corpus,
            html,
            log,
            by_mistake,
            only,
            every,
        } => {
            let mut cases = match corpus {
                Some(folder) => case::load(&folder)?,
                None => built_in(),
            };
            if let Some(only) = only {
                cases.retain(|case| case.mistake.contains(&only));
            }
            let cases: Vec<_> = cases.into_iter().step_by(every.max(1)).collect();
            let mut results = Vec::new();
            for path in mappings {
                results.push(run::run(&mapping::Mapping::load(&path)?, &cases)?);
            }
            println!("{}", report::table(&results));
            if by_mistake {
                println!("{}", report::by_mistake(&results));
            }
            if let Some(path) = html {
                std::fs::write(path, report::html(&results))?;
            }
            if let Some(path) = log {
                std::fs::write(path, report::log(&results)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the corpus that comes with the program.
fn built_in() -> Vec<case::Case> {
    tasks::all().iter().flat_map(mistakes::all).collect()
}
