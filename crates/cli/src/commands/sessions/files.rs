//! Files stored in a session, with `backend: state`.

use super::failure;
use crate::exit::Failure;
use crate::{output, text};
use haft::ops::text::decode::visible;
use haft::truncate::format_size;
use haft_store::sessions::{SessionFile, Sessions};
use serde_json::json;
use std::path::Path;

/// Lists the files, or prints one.
pub(super) fn show(
    sessions: &Sessions,
    session: &str,
    path: Option<&str>,
    as_json: bool,
) -> Result<(), Failure> {
    let mut files = sessions.files(session).map_err(failure)?;
    files.retain(|file| file.bytes.is_some());
    files.sort_by(|one, other| one.path.cmp(&other.path));
    if let Some(path) = path {
        return print(&files, session, path);
    }
    if files.is_empty() && !as_json {
        let parent = sessions.load(session).map_err(failure)?.info.parent;
        output::note(&match parent {
            Some((parent, _)) => {
                format!("no files: files of a sub-agent are stored in session {parent}")
            }
            None => "no files: sessions store files only with `backend: state`".to_owned(),
        });
        return Ok(());
    }
    let mut rows = Vec::new();
    for file in &files {
        let size = file.bytes.as_ref().map_or(0, |bytes| bytes.len());
        let modified = super::transcript::moment(file.modified);
        if as_json {
            output::json(
                &json!({ "path": shown_path(file), "bytes": size, "modified": modified }),
            )?;
        } else {
            rows.push(vec![
                format_size(size as u64),
                modified,
                visible(&shown_path(file)).replace('\n', "\\n"),
            ]);
        }
    }
    match as_json {
        true => Ok(()),
        false => output::text(&text::table(&rows, None)),
    }
}

/// Returns the path as the session's tools see it.
fn shown_path(file: &SessionFile) -> String {
    format!("/{}", file.path.to_string_lossy())
}

fn print(files: &[SessionFile], session: &str, path: &str) -> Result<(), Failure> {
    let wanted = Path::new(path.trim_start_matches('/'));
    let file = files.iter().find(|file| file.path == wanted);
    let bytes = file.and_then(|file| file.bytes.clone()).ok_or_else(|| {
        Failure::failed(format!("session {session} has no file {path}"))
            .hint(format!("`haft sessions files {session}` lists its files"))
    })?;
    output::bytes(&*bytes)
}
