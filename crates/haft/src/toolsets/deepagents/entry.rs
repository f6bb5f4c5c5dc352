//! Entries in the replies of `ls` and `glob`.

use crate::Context;
use haft_ops::FilePath;
use haft_ops::backend::{Kind, Stat, Target, Through};
use serde_json::{Value, json};
use std::path::Path;
use std::time::SystemTime;

/// Describes an entry.
pub(super) fn described(path: &Path, stat: &Stat) -> Value {
    let is_dir = stat.kind == Kind::Directory;
    json!({
        "path": path.to_string_lossy(),
        "is_dir": is_dir,
        "size": if is_dir { 0 } else { stat.size },
        "modified_at": stat.modified.map(time),
    })
}

/// Follows a link, if its target may be read. For a folder that only exists through its
/// files, finds the time of the last change.
pub(super) async fn followed(
    path: &Path,
    stat: Stat,
    target: Option<&Target>,
    cx: &Context,
) -> Stat {
    let leads = target.is_none_or(|target| matches!(target.through, Through::To(_)));
    let is_told = match stat.kind {
        Kind::Link => !leads,
        Kind::Directory => stat.modified.is_some(),
        Kind::File | Kind::Other(_) => true,
    };
    if is_told {
        return stat;
    }
    let there: Option<FilePath> = cx.resolve_found(&path.to_string_lossy()).ok();
    match there {
        Some(there) => cx.backend().stat(&there).await.unwrap_or(stat),
        None => stat,
    }
}

/// Formats a time as `2025-01-15T10:30:00+00:00`.
fn time(time: SystemTime) -> String {
    let zulu = haft_ops::text::moment::to_seconds(time);
    zulu.replace('Z', "+00:00")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_before_1970_and_in_the_far_future_can_be_formatted() {
        let epoch = SystemTime::UNIX_EPOCH;
        let day = Duration::from_secs(86_400);
        assert_eq!(time(epoch - day), "1969-12-31T00:00:00+00:00");
        assert_eq!(time(epoch + day * 4_000_000), "9999-12-31T23:59:59+00:00");
    }
}
