//! `deepagents`: ls, read_file, write_file, edit_file, delete_file, glob, grep, todos and
//! execute over a tree of absolute paths that may be on disk, in memory, in a store or in
//! all of them. Every reply is one JSON object.

mod delete_file;
mod edit_file;
mod entry;
mod execute;
mod found;
mod glob;
mod grep;
mod layout;
mod ls;
mod read_file;
mod read_todos;
mod reply;
mod todo;
mod write_file;
mod write_todos;

use crate::erase;
use crate::toolset::{Guidance, Paths, Preset, Reach, ReplyForm, StatusField, Toolset};
use crate::truncate::{Keep, Limit};

/// Maximum size of a file, a command's output or a list in a reply, in bytes.
const MAX_BYTES: usize = 100_000;

/// Maximum size of the results of `grep`, in characters.
const FOUND: usize = 80_000;

/// Returns the toolset. A new tool is a file in this folder and a line here.
#[must_use]
pub fn toolset() -> Toolset {
    Toolset {
        name: "deepagents",
        tools: vec![
            erase(ls::Ls),
            erase(read_file::ReadFile),
            erase(write_file::WriteFile),
            erase(edit_file::EditFile),
            erase(delete_file::DeleteFile),
            erase(glob::Glob),
            erase(grep::Grep),
            erase(write_todos::WriteTodos),
            erase(read_todos::ReadTodos),
            erase(execute::Execute),
        ],
        presets: &[
            Preset {
                name: "all",
                tools: &[
                    "ls",
                    "read_file",
                    "write_file",
                    "edit_file",
                    "delete_file",
                    "glob",
                    "grep",
                    "write_todos",
                    "read_todos",
                    "execute",
                ],
            },
            Preset {
                name: "readonly",
                tools: &["ls", "read_file", "glob", "grep", "read_todos"],
            },
            Preset {
                name: "none",
                tools: &[],
            },
        ],
        paths: Paths::Virtual,
        reach: Reach::Roots,
        limit: Limit {
            bytes: MAX_BYTES,
            lines: usize::MAX,
            keep: Keep::Head,
        },
        guidance: &[
            Guidance {
                tools: &["ls", "glob", "grep", "read_file"],
                text: "- Find a file with ls, glob or grep, and read it with read_file before you change it.",
            },
            Guidance {
                tools: &["write_file", "edit_file"],
                text: "- write_file only creates new files. Change existing ones with edit_file; give it enough lines around the place for old_string to be unique, or set replace_all.",
            },
            Guidance {
                tools: &["write_todos", "read_todos"],
                text: "- For work of several steps, keep a list with write_todos: it replaces the whole list. Have one entry in_progress, and mark it completed when it is done.",
            },
            Guidance {
                tools: &["execute"],
                text: "- execute runs to the end of the command, within 120 seconds or its `timeout`, without input. Start longer ones in the background with their output in a file.",
            },
        ],
        layout: layout::lines,
        replies: ReplyForm::Object {
            status: StatusField::Word("status"),
            reason: "message",
        },
        failure: reply::failure,
        cut_note: reply::cut_note,
    }
}
