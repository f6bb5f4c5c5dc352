//! `workspace`: read, write, edit, list, delete, file, exec and process, as chat
//! assistants with a workspace of their own know them. Every reply is one JSON
//! document; file tools never leave the work folder and its roots.

mod command;
mod delete;
mod edit;
mod exec;
mod file;
mod list;
mod process;
mod read;
mod reply;
mod status;
mod until;
mod write;

use crate::erase;
use crate::toolset::{Paths, Preset, Reach, Toolset};
use crate::truncate::{Keep, Limit};

/// The most that `read` and `list` give of a file or a folder, and the most of a
/// text that another tool of the session answers.
const MOST: usize = 100_000;

/// The toolset. A new tool is a file in this folder and a line here.
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
        ],
        presets: &[
            Preset {
                name: "all",
                tools: &[
                    "read", "write", "edit", "list", "delete", "file", "exec", "process",
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
        paths: Paths::Plain,
        reach: Reach::Roots,
        limit: Limit {
            bytes: MOST,
            lines: usize::MAX,
            keep: Keep::Head,
        },
        guidance: &[],
        failure: reply::failure,
        cut_note: reply::cut_note,
    }
}
