//! `write_file`: creates a new file and never replaces an existing one.

use super::reply;
use crate::prelude::*;
use crate::toolsets::advice::numbered;
use haft_ops::write::{self, OnExisting};

/// Create a new file with the given content. Parent directories are created. An
/// existing file is not overwritten: use edit_file to modify it.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Absolute path for the new file.
    file_path: String,
    /// Content to write to the file.
    content: String,
}

pub(super) struct WriteFile;

impl Tool for WriteFile {
    const NAME: &'static str = "write_file";
    const EFFECT: Effect = Effect::Write;
    const MENTIONS: &'static [Mention] = &[Mention {
        text: ": use edit_file to modify it",
        tools: &["edit_file"],
        otherwise: "",
    }];
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.file_path.clone(), Access::Write)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let numbered = numbered(&args.content);
        let request = write::Write {
            path: cx.resolve(&args.file_path, Access::Write).await?,
            content: args.content.into_bytes(),
            on_existing: OnExisting::Refuse,
        };
        match write::file(cx.backend(), request).await {
            Ok(_) => {}
            // A folder exists at the path.
            Err(haft_ops::Error::IsDirectory { path }) => {
                return Err(Error::Failed {
                    text: reply::already_exists(&path, &cx.offered()),
                    hint: Some("it is a directory".to_owned()),
                });
            }
            Err(error) => return Err(error.into()),
        }
        let mut answer = reply::success(json!({ "path": cx.named(&args.file_path) }));
        if let Some(note) = numbered {
            reply::add(&mut answer, "hint", note);
        }
        Ok(Reply::json(answer).detail("created", true))
    }
}
