//! `delete`: deletes one file or link, never a directory.

use crate::prelude::*;
use haft_ops::remove;

/// Delete a single file, or a symbolic link itself. Directories are never deleted.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to delete, absolute or relative to the workspace.
    pub(super) path: String,
}

pub(super) struct Delete;

impl Tool for Delete {
    const NAME: &'static str = "delete";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Unlink)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx.resolve(&args.path, Access::Unlink).await?;
        remove::file(cx.backend(), &path).await?;
        Ok(Reply::json(json!({ "success": true, "path": args.path })))
    }
}
