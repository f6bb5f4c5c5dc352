//! `haft` alone: what to do next.

use crate::exit::Exit;
use crate::output;

/// Prints the next steps. Nothing was done, so it is no success.
pub(crate) fn run() -> Exit {
    output::note(
        "Tools for language-model agents. What to do next:\n\n  \
         haft demo                   take a short tour, with real tool calls\n  \
         haft call read path=FILE    run one tool here\n  \
         haft mcp                    serve the tools to an MCP client\n\n\
         `haft --help` lists everything.",
    );
    Exit::Usage
}
