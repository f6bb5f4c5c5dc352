//! `write`: creates or replaces a whole file.

use crate::prelude::*;
use crate::toolsets::advice::{broken_links, numbered, sentence};
use haft_ops::text::lines;
use haft_ops::write::{self, OnExisting};

/// Create or overwrite a file with the given content. Parent directories are
/// created as needed. The reply is the number of lines.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File path.
    path: String,
    /// File content.
    content: String,
}

pub(super) struct Write;

impl Tool for Write {
    const NAME: &'static str = "write";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Write)]
    }

    fn guidance(&self) -> Option<&str> {
        Some("For new files and for whole rewrites.")
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let (bytes, count) = (args.content.len(), lines::count(&args.content));
        let numbered = numbered(&args.content);
        // Before writing, because afterwards a file `@name` might exist.
        let named = cx.named(&args.path);
        let request = write::Write {
            path: cx.resolve(&args.path, Access::Write).await?,
            content: args.content.into_bytes(),
            on_existing: OnExisting::Replace,
        };
        let written = write::file(cx.backend(), request).await?;
        let mut text = format!("{count} lines");
        if let Some(note) = numbered {
            text.push('\n');
            text.push_str(&sentence(note));
        }
        if written.links_broken > 0 {
            text.push('\n');
            text.push_str(&broken_links(written.links_broken));
        }
        Ok(Reply::from(text)
            .limited(super::CHANGE)
            .detail("path", named)
            .detail("bytes", bytes)
            .detail("lines", count)
            .detail("created", written.created))
    }
}
