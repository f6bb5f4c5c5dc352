//! `list`: lists the entries of one directory.

use super::{MAX_BYTES, reply};
use crate::prelude::*;
use haft_ops::backend::{Entry, Kind, Stat, Through};
use haft_ops::list::{self, Hidden, Listed};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// List the entries of a directory, sorted by name, hidden ones included.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Directory to list, absolute or relative to the workspace.
    pub(super) path: String,
}

pub(super) struct List;

impl Tool for List {
    const NAME: &'static str = "list";
    const EFFECT: Effect = Effect::Read;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Path(args.path.clone(), Access::Read)]
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let request = list::List {
            path: cx.resolve(&args.path, Access::Read).await?,
            hidden: Hidden::Show,
        };
        let Listed { entries, left_out } = list::directory(cx.backend(), &request).await?;
        let count = entries.len();
        // In this order; notes about truncation come last.
        let mut answer = json!({ "success": true, "path": args.path, "files": [], "count": count });
        let described = entries.iter().map(|entry| described(&args.path, entry));
        let is_cut = reply::add_entries(&mut answer, "files", described, MAX_BYTES, cx);
        reply::add_left_out(&mut answer, left_out);
        Ok(Reply::json(answer)
            .detail("entries", count)
            .detail("truncated", is_cut))
    }
}

fn described(folder: &str, entry: &Entry) -> Value {
    let name = entry.name.to_string_lossy();
    let directory = match &entry.target {
        None => entry.stat.kind == Kind::Directory,
        Some(target) => target.through == Through::To(Kind::Directory),
    };
    let mut described = json!({
        "name": name,
        "path": below(folder, &name),
        "type": if directory { "directory" } else { "file" },
        "size": entry.stat.size,
        "mode": mode(&entry.stat),
    });
    if let Some(target) = &entry.target {
        reply::add(&mut described, "target", target.path.to_string_lossy());
    }
    described
}

/// Returns an entry as a path that can be used again, without the `.` of the work folder.
fn below(folder: &str, name: &str) -> String {
    let folder = Path::new(folder).components();
    let folder: PathBuf = folder.filter(|part| *part != Component::CurDir).collect();
    folder.join(name).to_string_lossy().into_owned()
}

/// Formats the mode as `ls -l` does: `-rw-r--r--`.
fn mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        Kind::File => '-',
        Kind::Directory => 'd',
        Kind::Link => 'l',
        Kind::Other("FIFO") => 'p',
        Kind::Other("socket") => 's',
        Kind::Other("character device") => 'c',
        Kind::Other(_) => 'b',
    };
    let bits = stat.mode.unwrap_or_default();
    let rights = (0..9).rev().zip("rwxrwxrwx".chars());
    std::iter::once(kind)
        .chain(rights.map(|(bit, letter)| if bits >> bit & 1 == 1 { letter } else { '-' }))
        .collect()
}
