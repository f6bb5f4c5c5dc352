//! Runs the transcripts in a page of documentation, with the built command.
//!
//! A page is Markdown. Every `## ` heading starts an empty work folder with a home
//! of its own beside it; below the heading
//!
//! - a block `file NAME` puts a file into the folder (`file NAME escaped`: `\r`,
//!   `\n`, `\t`, `\\` and `\xHH` are read as in Rust, and line breaks are not
//!   added),
//! - a block `config` is the configuration file of the calls that follow, up to the
//!   next `## `; it is outside the folder, and ends the session before it,
//! - a block `page PATH` (or `page PATH STATUS`) puts a page on a server of the section's
//!   own, whose address is `$SITE` in calls, configurations and replies,
//! - a block `call TOOL` calls a tool with the JSON inside,
//! - the block `reply` (or `reply error`) after it is what must come back, and
//! - a block `after NAME` (or `after NAME escaped`) is what the file must hold.
//!
//! In a reply, `[..]` stands for any text on its line, `[...]` alone on a line for
//! any lines, `$DIR` for the folder and `$OUTPUTS` for the one of kept outputs;
//! `$DIR` is understood in calls and configurations too. Blocks of a known language
//! (`sh`, `text`, …) are for readers only; any other word is a mistake.
//!
//! Between `<!-- parameters TOOL -->` and `<!-- end -->` stands the table that
//! is made from the tool's schema.
//!
//! # Routes
//!
//! A page is run by a [`Route`]: [`Mcp`] has one server for a section,
//! [`CommandLine`] one process for each call. What a tool remembers in its session
//! (processes, lists, files in memory) is gone with the process, so calls that need
//! what an earlier one left there stand below a line `<!-- one session -->`. It holds
//! up to the next heading of any level. There, a route without a lasting session
//! makes no calls and checks no files; it counts the calls that it left out.

mod command_line;
mod matching;
mod mcp;
mod page;
mod place;
mod route;
mod section;
mod site;
mod tables;
#[cfg(test)]
mod tests;

pub use command_line::CommandLine;
pub use mcp::Mcp;
pub use place::Place;
pub use route::{Answer, Haft, Route, Session};
pub use tables::with_tables;

use std::path::Path;

/// What a run of a page came to.
#[derive(Debug, Default)]
pub struct Report {
    /// How many calls were made.
    pub calls: usize,
    /// How many were not, because they need the session of an earlier one.
    pub skipped: usize,
    /// The tools that have a call that succeeds.
    pub succeeded: Vec<String>,
    /// The tools that have a call that fails.
    pub failed: Vec<String>,
    /// What was not as the page says.
    pub problems: Vec<String>,
}

/// Runs every transcript of `page`. Each section has new folders below `below`.
pub async fn run(page: &str, below: &Path, route: &dyn Route) -> Report {
    let page = page::parse(page);
    let mut report = Report {
        problems: page.problems,
        ..Report::default()
    };
    for section in &page.sections {
        section::run(section, below, route, &mut report).await;
    }
    report
}
