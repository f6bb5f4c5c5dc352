//! `write`: creates or replaces a whole file.

use crate::prelude::*;
use crate::toolsets::advice::{broken_links, numbered, sentence};
use haft_ops::text::diff::unified;
use haft_ops::write::{self, OnExisting};
use haft_ops::{FilePath, read};

/// Create a file or completely overwrite an existing one. Parent directories
/// are created automatically.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// File to write.
    path: String,
    /// Full file contents.
    content: String,
}

pub(super) struct Write;

/// Larger files are replaced without a diff, in bytes.
const MAX_COMPARED: u64 = 256 << 10;

/// Unchanged lines around each change.
const DIFF_CONTEXT: usize = 3;

/// Returns what replacing a text file changes, for the user to see what is lost.
async fn replaced(cx: &Context, path: &FilePath, new: &str, named: &str) -> Option<String> {
    let old = read::whole(cx.backend(), path, MAX_COMPARED).await.ok()?;
    let old = String::from_utf8(old).ok()?;
    let diff = unified(&old, new, named, DIFF_CONTEXT);
    (!diff.is_empty()).then_some(diff)
}

impl Tool for Write {
    const NAME: &'static str = "write";
    const EFFECT: Effect = Effect::Write;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Write)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let bytes = args.content.len();
        let numbered = numbered(&args.content);
        // Before writing, because afterwards a file `@name` might exist.
        let named = cx.named(&args.path);
        let path = cx.resolve(&args.path, Access::Write).await?;
        let diff = replaced(cx, &path, &args.content, &named).await;
        let request = write::Write {
            path,
            content: args.content.into_bytes(),
            on_existing: OnExisting::Replace,
        };
        let written = write::file(cx.backend(), request).await?;
        let mut text = format!("Successfully wrote {bytes} bytes to {named}");
        if let Some(note) = numbered {
            text.push('\n');
            text.push_str(&sentence(note));
        }
        if written.links_broken > 0 {
            text.push('\n');
            text.push_str(&broken_links(written.links_broken));
        }
        let reply = Reply::from(text)
            .detail("path", named)
            .detail("bytes", bytes)
            .detail("created", written.created);
        Ok(match diff.filter(|_| !written.created) {
            Some(diff) => reply.detail("diff", diff),
            None => reply,
        })
    }
}
