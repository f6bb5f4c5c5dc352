//! `workspace`: read, write, edit, list, delete, file, exec, process and message, as chat
//! assistants with a workspace know them. Every reply is one JSON document; file tools
//! never leave the work folder and its roots.

mod command;
mod delete;
mod edit;
mod exec;
mod file;
mod list;
mod log;
mod message;
mod process;
mod read;
mod reply;
mod status;
mod until;
mod write;

use crate::erase;
use crate::toolset::{Guidance, Paths, Preset, Reach, ReplyForm, StatusField, Toolset};
use crate::truncate::{Keep, Limit};

/// Maximum size of a file or folder listing in a reply, and of the text of other tools, in
/// bytes.
const MAX_BYTES: usize = 100_000;

/// Returns the toolset. A new tool is a file in this folder and a line here.
#[must_use]
pub fn toolset() -> Toolset {
    Toolset {
        name: "workspace",
        tools: vec![
            erase(read::Read),
            erase(write::Write),
            erase(edit::Edit),
            erase(list::List),
            erase(delete::Delete),
            erase(file::File),
            erase(exec::Exec),
            erase(process::Process),
            erase(message::Message),
        ],
        presets: &[
            Preset {
                name: "all",
                tools: &[
                    "read", "write", "edit", "list", "delete", "file", "exec", "process", "message",
                ],
            },
            Preset {
                name: "readonly",
                tools: &["read", "list"],
            },
            Preset {
                name: "none",
                tools: &[],
            },
        ],
        paths: Paths::Expanding,
        reach: Reach::Roots,
        limit: Limit {
            bytes: MAX_BYTES,
            lines: usize::MAX,
            keep: Keep::Head,
        },
        guidance: &[
            Guidance {
                tools: &["list", "read"],
                text: "- Use list before read to find the right path. Paths are relative to the workspace or absolute; outside it they fail with `path not allowed`.",
            },
            Guidance {
                tools: &[],
                text: "- Use the exact names of parameters.",
            },
            Guidance {
                tools: &["edit", "write"],
                text: "- Prefer edit for small changes; use write to replace a whole file.",
            },
            Guidance {
                tools: &["exec", "process"],
                text: "- Use exec for short commands, process for long-running programs.",
            },
            Guidance {
                tools: &["list", "read", "edit", "write", "exec"],
                text: "- To change code: list to find the files, read them, edit (or write), then exec the tests or the build.",
            },
            Guidance {
                tools: &["process"],
                text: "- For a long job: process start, then process wait until it is ready or has ended (or status and log to look), and process kill to end it.",
            },
            Guidance {
                tools: &["message"],
                text: "- Use message to send a summary when a user is waiting for it.",
            },
        ],
        layout: |_| Vec::new(),
        replies: ReplyForm::Object {
            status: StatusField::Flag("success"),
            reason: "error",
        },
        failure: reply::failure,
        cut_note: reply::cut_note,
    }
}
