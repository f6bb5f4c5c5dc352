//! `ah`: four tools for a model that does the rest with bash. Replies are text, failures
//! start with `error: `, and the middle of long texts is left out.

mod bash;
mod edit;
mod read;
mod reply;
mod write;

use crate::erase;
use crate::toolset::{Guidance, Paths, Preset, Reach, ReplyForm, Toolset};
use crate::truncate::{Keep, Limit};

/// The part of a command's output that the model gets.
const OUTPUT: Limit = Limit {
    bytes: 30_000,
    lines: 256,
    keep: Keep::Middle,
};

/// The part of a file that the model gets.
const FILE: Limit = Limit {
    bytes: 50_000,
    lines: usize::MAX,
    keep: Keep::Middle,
};

/// The part of the report about a change that the model gets.
const CHANGE: Limit = Limit {
    bytes: 10_000,
    lines: usize::MAX,
    keep: Keep::Middle,
};

/// Returns the toolset.
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
        // For tools that are added to it, which have no limit of their own.
        limit: Limit {
            lines: usize::MAX,
            ..OUTPUT
        },
        // The tools have their own guidance; this is about two of them.
        guidance: &[Guidance {
            tools: &["write", "edit"],
            text: "- Change part of a file with edit rather than write.",
        }],
        layout: |_| Vec::new(),
        replies: ReplyForm::Text {
            failure_prefix: "error: ",
        },
        failure: reply::failure,
        cut_note: reply::cut_note,
    }
}
