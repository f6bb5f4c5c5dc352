//! `write`: creates or replaces a whole file.

use super::reply;
use crate::prelude::*;
use crate::toolsets::advice::numbered;
use haft_ops::write::{self, OnExisting};

/// Create a file or completely overwrite an existing one. Parent directories are
/// created automatically. Prefer `edit` for small changes.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to write, absolute or relative to the workspace.
    pub(super) path: String,
    /// Full file contents.
    pub(super) content: String,
}

pub(super) struct Write;

impl Tool for Write {
    const NAME: &'static str = "write";
    const EFFECT: Effect = Effect::Write;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: " Prefer `edit` for small changes.",
        tools: &["edit"],
        otherwise: "",
    }];
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Write)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let size = args.content.len();
        let numbered = numbered(&args.content);
        let named = cx.named(&args.path);
        let request = write::Write {
            path: cx.resolve(&args.path, Access::Write).await?,
            content: args.content.into_bytes(),
            on_existing: OnExisting::Replace,
        };
        let written = write::file(cx.backend(), request).await?;
        let mut answer = json!({ "success": true, "path": named, "size": size });
        if let Some(note) = numbered {
            reply::add_hint(&mut answer, note);
        }
        reply::broken_links(&mut answer, written.links_broken);
        Ok(Reply::json(answer).detail("created", written.created))
    }
}
