//! `ah`: four tools for a model that does the rest with bash. Replies are text,
//! failures begin with `error: `, and of what is long the middle is left out.

mod bash;
mod edit;
mod read;
mod reply;
mod write;

use crate::erase;
use crate::toolset::{Guidance, Paths, Preset, Reach, Toolset};
use crate::truncate::{Keep, Limit};

/// What a model gets of a command's output.
const OUTPUT: Limit = Limit {
    bytes: 30_000,
    lines: 256,
    keep: Keep::Middle,
};

/// What a model gets of a file.
const FILE: Limit = Limit {
    bytes: 50_000,
    lines: usize::MAX,
    keep: Keep::Middle,
};

/// What a model gets of what is said about a change.
const CHANGE: Limit = Limit {
    bytes: 10_000,
    lines: usize::MAX,
    keep: Keep::Middle,
};

/// The toolset.
#[must_use]
pub fn toolset() -> Toolset {
    Toolset {
        name: "ah",
        tools: vec![
            erase(read::Read),
            erase(write::Write),
            erase(edit::Edit),
            erase(bash::Bash),
        ],
        presets: &[
            Preset {
                name: "all",
                tools: &["read", "write", "edit", "bash"],
            },
            Preset {
                name: "readonly",
                tools: &["read"],
            },
            Preset {
                name: "none",
                tools: &[],
            },
        ],
        paths: Paths::Expanding,
        reach: Reach::Mode,
        // Tools that are added to it have no line in its table.
        limit: Limit {
            lines: usize::MAX,
            ..OUTPUT
        },
        // Each tool has its own; this is about two of them.
        guidance: &[Guidance {
            tools: &["write", "edit"],
            text: "- Change part of a file with edit rather than write.",
        }],
        layout: |_| Vec::new(),
        failure: reply::failure,
        cut_note: reply::cut_note,
    }
}
