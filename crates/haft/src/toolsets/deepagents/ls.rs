//! `ls`: lists the entries of one directory.

use super::entry::{described, followed};
use super::{MAX_BYTES, reply};
use crate::prelude::*;
use haft_ops::backend::Kind;
use haft_ops::list::{self, Hidden};
use haft_ops::scope::filter::LeftOut;

/// List the files and directories at a path, hidden ones included.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Absolute path to list (must start with /).
    path: String,
}

pub(super) struct Ls;

impl Tool for Ls {
    const NAME: &'static str = "ls";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let path = cx.resolve(&args.path, Access::Read).await?;
        let place = path.virtual_path().to_owned();
        let mut entries = Vec::new();
        let mut left_out = LeftOut::default();
        match cx.backend().stat(&path).await {
            Err(haft_ops::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(stat) if stat.kind != Kind::Directory => entries.push((place, stat)),
            Ok(_) => {
                let request = list::List {
                    path,
                    hidden: Hidden::Show,
                };
                let listed = list::directory(cx.backend(), &request).await?;
                left_out = listed.left_out;
                for entry in listed.entries {
                    let path = place.join(&entry.name);
                    let stat = followed(&path, entry.stat, entry.target.as_ref(), cx).await;
                    entries.push((path, stat));
                }
            }
        }
        let count = entries.len();
        let mut answer = reply::success(json!({}));
        let entries = entries.iter().map(|(path, stat)| described(path, stat));
        let is_cut = reply::add_entries(&mut answer, "entries", entries, MAX_BYTES, cx);
        if is_cut {
            reply::add(&mut answer, "total", count);
        }
        reply::add_left_out(&mut answer, left_out);
        Ok(Reply::json(answer)
            .detail("entries", count)
            .detail("truncated", is_cut))
    }
}
