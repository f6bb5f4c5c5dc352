//! `file`: the four file tools under one name, for who learned it so.

use super::{delete, list, read, reply, write};
use crate::prelude::*;
use haft_ops::backend::Kind;

/// Read, write or delete a file or list a directory, by `operation`. Kept for
/// compatibility: prefer `read`, `write`, `list` and `delete`. Without `operation`,
/// `content` means write_file, a directory list_dir, and anything else read_file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do. Deleting has to be said.
    operation: Option<Operation>,
    /// File or directory, absolute or relative to the workspace.
    path: String,
    /// Full file contents, for write_file.
    content: Option<String>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Operation {
    ReadFile,
    WriteFile,
    ListDir,
    DeleteFile,
}

impl Args {
    /// What was asked for, as far as it can be told without looking at the disk:
    /// whether it reads or lists depends on what is there.
    fn operation(&self) -> Option<Operation> {
        let written = || self.content.as_ref().map(|_| Operation::WriteFile);
        self.operation.or_else(written)
    }
}

pub(super) struct File;

impl Tool for File {
    const NAME: &'static str = "file";
    const EFFECT: Effect = Effect::Write;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: " Kept for compatibility: prefer `read`, `write`, `list` and `delete`.",
        tools: &["read", "write", "list", "delete"],
        otherwise: "",
    }];
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        let access = match args.operation() {
            Some(Operation::WriteFile) => Access::Write,
            Some(Operation::DeleteFile) => Access::Unlink,
            Some(Operation::ReadFile | Operation::ListDir) | None => Access::Read,
        };
        vec![Resource::Path(args.path.clone(), access)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let operation = match args.operation() {
            Some(operation) => operation,
            None => found(&args.path, cx).await?,
        };
        let path = args.path;
        match operation {
            Operation::ReadFile => {
                let args = read::Args {
                    path,
                    offset: None,
                    limit: None,
                };
                read::Read.call(args, cx).await
            }
            Operation::WriteFile => {
                let content = args.content.ok_or_else(|| reply::missing("content"))?;
                write::Write.call(write::Args { path, content }, cx).await
            }
            Operation::ListDir => list::List.call(list::Args { path }, cx).await,
            Operation::DeleteFile => delete::Delete.call(delete::Args { path }, cx).await,
        }
    }
}

/// What the path calls for.
async fn found(path: &str, cx: &Context) -> Result<Operation, Error> {
    let path = cx.resolve(path, Access::Read)?;
    Ok(match cx.backend().stat(&path).await {
        Ok(stat) if stat.kind == Kind::Directory => Operation::ListDir,
        // What is not there is for `read` to say.
        _ => Operation::ReadFile,
    })
}
