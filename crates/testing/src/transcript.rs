//! Runs the transcripts in a documentation page with the built command.
//!
//! A page is Markdown. Every `## ` heading starts with an empty working folder and a home folder
//! beside it. Below the heading:
//!
//! - A block `file NAME` puts a file into the folder. With `file NAME escaped`, `\r`, `\n`, `\t`,
//!   `\\` and `\xHH` are read as in Rust, and no line breaks are added.
//! - A block `config` is the configuration file for the following calls, up to the next `## `. It
//!   is outside the folder and ends the current session.
//! - A block `page PATH` (or `page PATH STATUS`) puts a page on the section's own web server.
//!   `$SITE` is its address in calls, configurations and replies.
//! - A block `call TOOL` calls a tool with the JSON inside.
//! - The block `reply` (or `reply error`) after it is the expected reply.
//! - A block `after NAME` (or `after NAME escaped`) is the expected content of a file.
//!
//! In a reply, `[..]` matches any text on a line, and `[...]` alone on a line matches any lines.
//! `$DIR` stands for the folder and `$OUTPUTS` for the folder of saved outputs. `$DIR` also works
//! in calls and configurations. Blocks of a known language (`sh`, `text`, …) are only for
//! readers; any other word is an error.
//!
//! The table between `<!-- parameters TOOL -->` and `<!-- end -->` is generated from the tool's
//! schema.
//!
//! # Routes
//!
//! A page is run through a [`Route`]: [`Mcp`] starts one server per section, [`CommandLine`] one
//! process per call. The state of a session (processes, lists, files in memory) ends with the
//! process, so calls that depend on it follow a line `<!-- one session -->`, which applies up to
//! the next heading of any level. There, a route without a lasting session makes no calls and
//! checks no files; it counts the calls it skipped.

mod command_line;
mod folders;
mod matching;
mod mcp;
mod page;
mod route;
mod section;
mod site;
mod tables;
#[cfg(test)]
mod tests;

pub use command_line::CommandLine;
pub use folders::SectionFolders;
pub use mcp::Mcp;
pub use route::{Haft, Route, Session, ToolReply};
pub use tables::with_tables;

use std::path::Path;

/// Result of running a page.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of calls that were made.
    pub calls: usize,
    /// Number of calls that were skipped because they need the session of an earlier call.
    pub skipped: usize,
    /// Tools with a call that succeeds.
    pub succeeded: Vec<String>,
    /// Tools with a call that fails.
    pub failed: Vec<String>,
    /// Differences between the page and the actual results.
    pub problems: Vec<String>,
}

/// Runs every transcript of `page`. Each section gets new folders inside `below`.
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
