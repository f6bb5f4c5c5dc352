//! What a project may run: exactly what the person has seen and said yes to. Each
//! thing is pinned by what it is; one that changed is another thing.

use crate::exit::Failure;
use haft::ops::private;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The largest file that is looked at as part of something that would run.
const LARGEST: u64 = 256 << 20;

/// Something of a project that would run.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// `plugin`, `program` or `lua`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// What would be run, as the person sees it.
    pub(crate) shown: String,
    /// What it is.
    pub(crate) pin: Pin,
    /// What else somebody should know who says yes: what it would replace, and get.
    pub(crate) remarks: Vec<String>,
}

/// What a thing is: how it is written down, and the files that belong to it.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    pub(crate) written: String,
    pub(crate) files: Vec<PathBuf>,
}

impl Pin {
    /// The hash of all of it; why not, when a file cannot be read.
    pub(crate) fn hash(&self) -> Result<String, String> {
        self.hash_with(None)
    }

    /// The same with a file that was read already: what will be used is what is hashed.
    fn hash_with(&self, read: Option<(&Path, &[u8])>) -> Result<String, String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(self.written.as_bytes());
        for file in &self.files {
            // By where it really is: a folder may be come to by more than one way.
            let real = haft::ops::scope::real(file).unwrap_or_else(|| file.clone());
            part(real.as_os_str().as_bytes());
            match read {
                Some((path, bytes)) if path == file => part(bytes),
                _ => part(&content(file)?),
            }
        }
        Ok(hash
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
fn content(file: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{} cannot be read: {error}", file.display());
    let length = std::fs::metadata(file).map_err(fail)?;
    if !length.is_file() || length.len() > LARGEST {
        return Err(format!("{} is no file, or too large", file.display()));
    }
    std::fs::read(file).map_err(fail)
}

/// What the person has said yes to.
#[derive(Debug, Clone)]
pub(crate) struct Trust {
    file: Option<PathBuf>,
    /// The project, by where it really is.
    project: String,
    trusted: Map<String, Value>,
    /// For this run, everything.
    everything: bool,
}

impl Trust {
    /// Reads it. What cannot be read is no trust.
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own file, outside every scope"
    )]
    pub(crate) fn load(state: Option<&Path>, project: &Path, everything: bool) -> Self {
        let file = state.map(|state| state.join("trust.json"));
        let real = haft::ops::scope::real(project).unwrap_or_else(|| project.to_owned());
        // A path is bytes: two that look alike must not be one.
        let project: String = real.as_os_str().as_bytes().escape_ascii().to_string();
        let stored: Value = file
            .as_ref()
            .and_then(|file| std::fs::read(file).ok())
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let trusted = stored["projects"][&project].as_object().cloned();
        Self {
            file,
            project,
            trusted: trusted.unwrap_or_default(),
            everything,
        }
    }

    /// Whether it may run.
    pub(crate) fn allows(&self, item: &Item) -> bool {
        self.allows_with(item, None)
    }

    /// Whether it may run with this content of one of its files.
    pub(crate) fn allows_with(&self, item: &Item, read: Option<(&Path, &[u8])>) -> bool {
        if self.everything {
            return true;
        }
        let known = self.trusted.get(&key(item)).and_then(Value::as_str);
        known.is_some_and(|known| item.pin.hash_with(read).as_deref() == Ok(known))
    }

    /// Whether an earlier state of it was trusted.
    pub(crate) fn knew(&self, item: &Item) -> bool {
        self.trusted.contains_key(&key(item))
    }

    /// Trusts exactly these as they were seen, by their hashes, and nothing else of
    /// the project.
    pub(crate) fn set(&self, seen: &[(Item, String)]) -> Result<(), Failure> {
        let seen = seen.iter();
        self.store(
            seen.map(|(item, hash)| (key(item), hash.as_str().into()))
                .collect(),
        )
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own file, outside every scope"
    )]
    fn store(&self, trusted: Map<String, Value>) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return Err(Failure::usage(
                "trust is kept in the state folder: set HOME",
            ));
        };
        let fail = |error: std::io::Error| {
            Failure::failed(format!("{} cannot be written: {error}", file.display()))
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        private::folder(folder).map_err(fail)?;
        // Two at once must not undo each other.
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = private::file(&options, &file.with_extension("lock")).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let damaged = |why: &str| {
            Failure::failed(format!(
                "{} is damaged ({why}): move it away",
                file.display()
            ))
        };
        let mut stored: Value = match std::fs::read(file) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| damaged(&error.to_string()))?
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
            Err(error) => return Err(damaged(&error.to_string())),
        };
        match stored.get("projects") {
            Some(Value::Object(_)) => {}
            None if stored.is_object() => stored["projects"] = json!({}),
            _ => return Err(damaged("it has no projects")),
        }
        if trusted.is_empty() {
            if let Some(projects) = stored["projects"].as_object_mut() {
                projects.remove(&self.project);
            }
        } else {
            stored["projects"][&self.project] = trusted.into();
        }
        let new = file.with_extension(format!("new-{}", std::process::id()));
        let mut out = private::file(options.truncate(true), &new).map_err(fail)?;
        out.write_all(format!("{stored:#}\n").as_bytes())
            .and_then(|()| out.sync_all())
            .and_then(|()| std::fs::rename(&new, file))
            .map_err(fail)
    }
}

fn key(item: &Item) -> String {
    format!("{} {}", item.kind, item.name)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;

    fn item(files: Vec<PathBuf>) -> Item {
        Item {
            kind: "plugin",
            name: "a".into(),
            shown: String::new(),
            pin: Pin {
                written: "python3 tool.py".into(),
                files,
            },
            remarks: Vec::new(),
        }
    }

    #[test]
    fn what_was_trusted_is_trusted_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool.py");
        std::fs::write(&script, "print(1)").unwrap();
        let one = item(vec![script.clone()]);
        let load = || Trust::load(Some(folder.path()), folder.path(), false);
        assert!(!load().allows(&one) && !load().knew(&one));
        let seen = (one.clone(), one.pin.hash().unwrap());
        load().set(&[seen]).unwrap();
        assert!(load().allows(&one));
        std::fs::write(&script, "print(2)").unwrap();
        assert!(!load().allows(&one) && load().knew(&one));
        assert!(Trust::load(Some(folder.path()), folder.path(), true).allows(&one));
        let other = Trust::load(Some(folder.path()), Path::new("/"), false);
        assert!(!other.knew(&one));
        load().set(&[]).unwrap();
        assert!(!load().knew(&one));
    }

    #[test]
    fn a_file_that_is_gone_is_not_what_it_was() {
        let gone = item(vec!["/nowhere/at/all".into()]);
        assert!(gone.pin.hash().is_err());
        assert!(!Trust::load(None, Path::new("/"), false).allows(&gone));
    }
}
