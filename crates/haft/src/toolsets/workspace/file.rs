//! `file`: the four file tools under one name, for models that learned it that way.

use super::{delete, list, read, reply, write};
use crate::prelude::*;
use haft_ops::backend::Kind;

/// Read, write or delete a file or list a directory, by `operation`. Kept for
/// compatibility: prefer `read`, `write`, `list` and `delete`. Without `operation`,
/// `content` means write_file, a directory list_dir, and anything else read_file.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// What to do. To delete, it must be given.
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
    /// Returns the requested operation, as far as it is known without looking at the disk:
    /// reading or listing depends on what the path is.
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

/// Returns the operation that fits the path.
async fn found(path: &str, cx: &Context) -> Result<Operation, Error> {
    let path = cx.resolve(path, Access::Read).await?;
    Ok(match cx.backend().stat(&path).await {
        Ok(stat) if stat.kind == Kind::Directory => Operation::ListDir,
        // A missing path is reported by `read`.
        _ => Operation::ReadFile,
    })
}
