//! `delete_file`: deletes one file or link, never a directory.

use super::reply;
use crate::prelude::*;
use haft_ops::remove;

/// Delete a single file, or a symbolic link itself. Directories are never deleted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Absolute path to the file.
    file_path: String,
}

pub(super) struct DeleteFile;

impl Tool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.file_path.clone(), Access::Unlink)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx.resolve(&args.file_path, Access::Unlink).await?;
        remove::file(cx.backend(), &path).await?;
        let answer = reply::success(json!({ "path": cx.named(&args.file_path) }));
        Ok(Reply::json(answer).detail("deleted", true))
    }
}
