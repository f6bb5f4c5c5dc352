//! Memory: files that the person or the project names, whose text is part of the prompt,
//! and which the model keeps up to date. They live wherever the files of the session do.

use crate::instructions::{MOST, left_out, section};
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

const ABOUT: &str = "What is worth knowing from earlier sessions, as it was when this one began.";

const UPDATE: &str = "When you learn something that will matter later, such as a preference, a \
decision or a correction, update the file with the file tools in the same turn. Keep it short, \
remove what is no longer true, and never put secrets in it.";

/// Reads the memory of a session. All files together may have 32 KiB; the first ones get
/// their room first.
pub async fn memory(runtime: &Runtime, files: &[MemoryFile]) -> Memory {
    let mut found = Memory::default();
    let mut left = MOST;
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
            // It is a folder, a pipe or no text: nothing that file tools could update.
            None if found.warnings.len() > before => continue,
            None if may_update => parts.push(format!("{shown} holds no text yet.")),
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

/// The file, if it may be put before the model.
fn resolved(runtime: &Runtime, file: &MemoryFile) -> Result<FilePath, String> {
    let path = runtime
        .resolve(&file.path, Access::Read)
        .map_err(|error| error.to_string())?;
    let is_inside = runtime.has_a_tree() || path.real().starts_with(runtime.work_dir());
    if file.by_project && !is_inside {
        return Err(
            "the project's haft.yaml names it, and it is outside the work folder; name it in your own file to use it"
                .to_owned(),
        );
    }
    let path = runtime.for_prompt(path);
    if path.closed().is_some() {
        return Err(
            "a rule keeps it from the model; change the rule in haft.yaml to use it".to_owned(),
        );
    }
    Ok(path)
}
