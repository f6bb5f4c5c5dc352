//! Files that a session starts with: `haft run --files DIR`.

#![expect(
    clippy::disallowed_methods,
    reason = "the user names this folder on the command line"
)]

use crate::exit::Failure;
use crate::output;
use haft::Runtime;
use haft::ops::text::decode::visible;
use std::path::Path;

/// Maximum total size in bytes of the files in a session.
const MAX_BYTES: u64 = 256 << 20;

/// Reads all regular files below a folder. `DIR/a/b` becomes `/a/b`.
pub(crate) fn read(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut found = Vec::new();
    let mut size = 0;
    gather(folder, "", &mut found, &mut size)?;
    found.sort();
    Ok(found)
}

fn gather(
    folder: &Path,
    prefix: &str,
    found: &mut Vec<(String, Vec<u8>)>,
    size: &mut u64,
) -> Result<(), Failure> {
    let shown = |path: &Path| visible(&path.to_string_lossy());
    let failed = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("--files: cannot read {}: {error}", shown(path)))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotADirectory => {
            failed(folder, error).hint("--files expects a folder; put the file into one")
        }
        _ => failed(folder, error),
    })?;
    for entry in entries {
        let entry = entry.map_err(|error| failed(folder, error))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| failed(&path, error))?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(Failure::usage(format!(
                "--files: the name of {} is not valid UTF-8",
                shown(&path)
            ))
            .hint("rename it, or leave it out of the folder"));
        };
        let place = format!("{prefix}/{name}");
        if kind.is_dir() {
            gather(&path, &place, found, size)?;
        } else if kind.is_file() {
            let length = entry.metadata().map_err(|error| failed(&path, error))?;
            *size = size.saturating_add(length.len());
            if *size > MAX_BYTES {
                return Err(Failure::usage(
                    "--files: the folder has more than 256 MB, the most that a session can store",
                )
                .hint("remove files that are not needed, or use `backend: filesystem`"));
            }
            let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
            found.push((place, bytes));
        } else {
            output::note(&format!(
                "warning: --files: skipped {}: not a regular file",
                shown(&path)
            ));
        }
    }
    Ok(())
}

/// Stores the files in the session.
pub(super) async fn seed(runtime: &Runtime, files: Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let hint = "set `backend: state` and `tools: { toolset: deepagents }` in haft.yaml, or add a route: `backend: { routes: { /notes: state } }`";
    if runtime.memory_files().is_empty() {
        return Err(Failure::usage("--files: this session does not store files").hint(hint));
    }
    let seeded = runtime.seed_files(files).await;
    let hint =
        "the folder becomes /: files for a route such as /notes belong in its subfolder notes";
    seeded.map_err(|error| Failure::usage(format!("--files: {error}")).hint(hint))
}
