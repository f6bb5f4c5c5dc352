//! Memory: files named by the user or the project that are part of the prompt and that the model
//! keeps up to date. They are in the same backend as the other files of the session.

use crate::instructions::{MAX_TOTAL, left_out, section};
use haft::ops::text::decode::visible;
use haft::ops::{Access, FilePath};
use haft::{Effect, Runtime};
use std::path::Path;

/// A file of memory, as `memory:` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// The path, as the toolset writes paths; a relative one starts at the work folder.
    pub path: String,
    /// Whether the project names it. Such a file must lie in the work folder, unless the
    /// toolset has a tree of its own.
    pub by_project: bool,
}

/// The part of the prompt that holds the memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The text; empty without memory.
    pub text: String,
    /// Warnings about files that were left out.
    pub warnings: Vec<String>,
}

const ABOUT: &str = "Notes from earlier sessions, as of the start of this one.";

const UPDATE: &str = "When you learn something that will matter later, such as a preference, a \
decision or a correction, update the file with the file tools in the same turn. Keep it short, \
remove what is no longer true, and never put secrets in it.";

/// Reads the memory of a session. All files together are limited to 32 KiB; if they are longer,
/// the last ones are truncated first.
pub async fn memory(runtime: &Runtime, files: &[MemoryFile]) -> Memory {
    let mut found = Memory::default();
    let mut left = MAX_TOTAL;
    let (mut parts, mut writable) = (Vec::new(), Vec::new());
    let names = runtime.tools().names();
    let can_write = names
        .iter()
        .any(|tool| runtime.effect_of(tool) == Some(Effect::Write));
    for file in files {
        let path = match resolved(runtime, file) {
            Ok(path) => path,
            Err(why) => {
                found.warnings.push(left_out(Path::new(&file.path), &why));
                continue;
            }
        };
        let shown = visible(&file.path).replace('\n', "\\n");
        let may_update = can_write && runtime.resolve(&file.path, Access::Write).is_ok();
        let is_missing = matches!(
            runtime.backend().stat(&path).await,
            Err(haft::ops::Error::NotFound { .. })
        );
        if is_missing {
            if may_update {
                parts.push(format!("{shown} does not exist yet."));
                writable.push(shown);
            }
            continue;
        }
        let before = found.warnings.len();
        let text = section(runtime.backend(), &path, &mut left, &mut found.warnings).await;
        match text {
            Some(text) => parts.push(format!("### {shown}\n\n{text}")),
            // Not a text file, so file tools cannot update it.
            None if found.warnings.len() > before => continue,
            None if may_update => parts.push(format!("{shown} is empty.")),
            None => {}
        }
        if may_update {
            writable.push(shown);
        }
    }
    for warning in &mut found.warnings {
        warning.insert_str(0, "memory: ");
    }
    if parts.is_empty() {
        return found;
    }
    let mut about = ABOUT.to_owned();
    if !writable.is_empty() {
        about = format!("{about} {UPDATE} You may update: {}.", writable.join(", "));
    }
    found.text = format!("## Memory\n\n{about}\n\n{}", parts.join("\n\n"));
    found
}

/// Resolves a memory file, if the model may see it.
fn resolved(runtime: &Runtime, file: &MemoryFile) -> Result<FilePath, String> {
    let path = runtime
        .resolve(&file.path, Access::Read)
        .map_err(|error| error.to_string())?;
    let is_inside = runtime.has_virtual_paths() || path.real().starts_with(runtime.work_dir());
    if file.by_project && !is_inside {
        return Err(
            "it is outside the work folder, and only the project's haft.yaml names it; add it to your own haft.yaml to use it"
                .to_owned(),
        );
    }
    let path = runtime.for_prompt(path);
    if path.exclusion().is_some() {
        return Err(
            "a rule closes it to the model; change the rule in haft.yaml to use it".to_owned(),
        );
    }
    Ok(path)
}
