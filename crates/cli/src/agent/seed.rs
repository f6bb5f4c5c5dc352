//! Files that a session starts with: `haft run --files DIR`.

#![expect(
    clippy::disallowed_methods,
    reason = "the person names a folder of theirs to be read"
)]

use crate::exit::Failure;
use crate::output;
use haft::Runtime;
use haft::ops::text::decode::visible;
use std::path::Path;

/// The most that all of them together may have: what a session keeps.
const MOST: u64 = 256 << 20;

/// Reads every regular file below a folder, by its path in the tree: `DIR/a/b` is `/a/b`.
pub(crate) fn read(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut found = Vec::new();
    let mut size = 0;
    gather(folder, "", &mut found, &mut size)?;
    found.sort();
    Ok(found)
}

fn gather(
    folder: &Path,
    above: &str,
    found: &mut Vec<(String, Vec<u8>)>,
    size: &mut u64,
) -> Result<(), Failure> {
    let shown = |path: &Path| visible(&path.to_string_lossy());
    let failed = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("--files: cannot read {}: {error}", shown(path)))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotADirectory => {
            failed(folder, error).hint("--files takes a folder; put the file into one")
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
        let place = format!("{above}/{name}");
        if kind.is_dir() {
            gather(&path, &place, found, size)?;
        } else if kind.is_file() {
            let length = entry.metadata().map_err(|error| failed(&path, error))?;
            *size = size.saturating_add(length.len());
            if *size > MOST {
                return Err(Failure::usage(
                    "--files: the folder holds more than 256 MB, the most that a session keeps",
                )
                .hint("leave out what is not needed, or use `backend: filesystem`"));
            }
            let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
            found.push((place, bytes));
        } else {
            output::note(&format!(
                "warning: --files: {} is not a regular file, so it is left out",
                shown(&path)
            ));
        }
    }
    Ok(())
}

/// Gives them to the session.
pub(super) async fn seed(runtime: &Runtime, files: Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let hint = "put `backend: state` and `tools: { toolset: deepagents }` into haft.yaml, or a route: `backend: { routes: { /notes: state } }`";
    if runtime.held_files().is_empty() {
        return Err(Failure::usage("--files: this session keeps no files of its own").hint(hint));
    }
    let seeded = runtime.seed_files(files).await;
    let hint = "the folder stands for /: what is to be below a route such as /notes must be in its folder notes";
    seeded.map_err(|error| Failure::usage(format!("--files: {error}")).hint(hint))
}
