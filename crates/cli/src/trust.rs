//! What a project may run: exactly what the person has seen and said yes to. Each
//! thing is pinned by what it is; one that changed is another thing.

use crate::exit::Failure;
use haft::ops::beneath::{self, State};
use haft::ops::private;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How large all files together may be that belong to something that would run.
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

/// What a thing was when it was looked at.
#[derive(Debug)]
pub(crate) struct Looked {
    hash: String,
    /// Its files, in the state they were in.
    files: Vec<(PathBuf, State)>,
}

impl Pin {
    /// The hash of all of it; why not, when a file cannot be read.
    pub(crate) fn hash(&self) -> Result<String, String> {
        self.look(&[]).map(|looked| looked.hash)
    }

    /// Looks at all of it. Files that were read already are taken as they were read:
    /// what will be used is what is hashed.
    fn look(&self, read: &[(&Path, &[u8])]) -> Result<Looked, String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(self.written.as_bytes());
        let mut left = LARGEST;
        let mut files = Vec::new();
        for file in &self.files {
            let fail = |error| format!("{} cannot be read: {error}", file.display());
            let mut opened = beneath::open(file).map_err(fail)?;
            let state = opened.state().map_err(fail)?;
            // By where it really is: a folder may be come to by more than one way.
            part(opened.real.as_os_str().as_bytes());
            match read.iter().find(|(path, _)| path == file) {
                Some((_, bytes)) => part(bytes),
                None => {
                    let bytes = opened.read(left).map_err(fail)?;
                    left -= bytes.len() as u64;
                    part(&bytes);
                }
            }
            if opened.state().map_err(fail)? != state {
                return Err(format!("{} is being changed", file.display()));
            }
            files.push((file.clone(), state));
        }
        let hash = hash.finalize();
        Ok(Looked {
            hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            files,
        })
    }
}

impl Looked {
    /// Whether nothing was touched since. A file that was swapped and put back has been
    /// touched as well.
    pub(crate) fn is_untouched(&self, pin: &Pin) -> Result<(), String> {
        let now = pin.look(&[])?;
        let pairs = self.files.iter().zip(&now.files);
        if let Some(((file, _), _)) = pairs.into_iter().find(|(was, now)| was != now) {
            return Err(format!("{} changed while it was started", file.display()));
        }
        if self.hash == now.hash && self.files.len() == now.files.len() {
            return Ok(());
        }
        Err("it changed while it was started".to_owned())
    }
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

    /// Whether anything of this folder was trusted before.
    pub(crate) fn has_trusted(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// Whether it may run.
    pub(crate) fn allows(&self, item: &Item) -> bool {
        self.allows_with(item, &[])
    }

    /// Whether it may run with this content of some of its files.
    pub(crate) fn allows_with(&self, item: &Item, read: &[(&Path, &[u8])]) -> bool {
        self.everything || self.looked(item, read).is_some()
    }

    /// Whether it may run, and how to find out later that it was not touched since.
    pub(crate) fn check(&self, item: &Item) -> Option<haft::Recheck> {
        if self.everything {
            return Some(Box::new(|| Ok(())));
        }
        let looked = self.looked(item, &[])?;
        let pin = item.pin.clone();
        Some(Box::new(move || looked.is_untouched(&pin)))
    }

    fn looked(&self, item: &Item, read: &[(&Path, &[u8])]) -> Option<Looked> {
        // A folder of which nothing is trusted could hold haft up with large files.
        self.hashes(item).next()?;
        let looked = item.pin.look(read).ok()?;
        let is_known = self.hashes(item).any(|known| known == looked.hash);
        is_known.then_some(looked)
    }

    /// Whether an earlier state of it was trusted, which is none of the others that are
    /// there now.
    pub(crate) fn knew(&self, item: &Item, all: &[Item]) -> bool {
        let mut known: Vec<&str> = self.hashes(item).collect();
        for other in all {
            if !known.is_empty() && key(other) == key(item) {
                let hash = other.pin.hash().unwrap_or_default();
                known.retain(|known| *known != hash);
            }
        }
        !known.is_empty()
    }

    /// The states of it that were trusted: what it is called and what is in it, and never
    /// where it stands in a list.
    fn hashes(&self, item: &Item) -> impl Iterator<Item = &str> {
        let key = key(item);
        self.trusted.iter().filter_map(move |(name, value)| {
            // Until version 1 there was one of each name, with its hash.
            if *name == key {
                return value.as_str();
            }
            let hash = name.strip_prefix(&key)?.strip_prefix(' ')?;
            (hash.len() == 64 && value.is_object()).then_some(hash)
        })
    }

    /// Trusts exactly these as they were seen, by their hashes, and nothing else of
    /// the project.
    pub(crate) fn set(&self, seen: &[(Item, String)]) -> Result<(), Failure> {
        let entry = |(item, hash): &(Item, String)| {
            let name = format!("{} {hash}", key(item));
            (name, json!({ "command": item.shown }))
        };
        self.store(seen.iter().map(entry).collect())
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
        assert!(!load().allows(&one) && !load().knew(&one, &[]));
        let seen = (one.clone(), one.pin.hash().unwrap());
        load().set(&[seen]).unwrap();
        assert!(load().allows(&one));
        std::fs::write(&script, "print(2)").unwrap();
        assert!(!load().allows(&one) && load().knew(&one, &[]));
        assert!(Trust::load(Some(folder.path()), folder.path(), true).allows(&one));
        let other = Trust::load(Some(folder.path()), Path::new("/"), false);
        assert!(!other.knew(&one, &[]));
        load().set(&[]).unwrap();
        assert!(!load().knew(&one, &[]));
    }

    #[test]
    fn a_file_that_is_gone_is_not_what_it_was() {
        let gone = item(vec!["/nowhere/at/all".into()]);
        assert!(gone.pin.hash().is_err());
        assert!(!Trust::load(None, Path::new("/"), false).allows(&gone));
    }

    #[test]
    fn what_is_trusted_does_not_depend_on_what_else_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let named = |name: &str, content: &str| {
            let script = folder.path().join(name);
            std::fs::write(&script, content).unwrap();
            item(vec![script])
        };
        let (one, two) = (named("one.py", "1"), named("two.py", "2"));
        let load = || Trust::load(Some(folder.path()), folder.path(), false);
        let seen = |item: &Item| (item.clone(), item.pin.hash().unwrap());
        load().set(&[seen(&one)]).unwrap();
        // One of the same name beside it is new, not changed.
        let both = [two.clone(), one.clone()];
        assert!(load().allows(&one));
        assert!(!load().allows(&two) && !load().knew(&two, &both));
        load().set(&[seen(&two), seen(&one), seen(&one)]).unwrap();
        assert!(load().allows(&one) && load().allows(&two));
        std::fs::write(folder.path().join("two.py"), "3").unwrap();
        assert!(load().allows(&one));
        assert!(!load().allows(&two) && load().knew(&two, &both));
    }

    #[test]
    fn what_an_earlier_version_wrote_down_is_still_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool.py");
        std::fs::write(&script, "print(1)").unwrap();
        let one = item(vec![script.clone()]);
        let real = haft::ops::scope::real(folder.path()).unwrap();
        let stored = json!({ "projects": { real.to_str().unwrap(): {
            "plugin a": one.pin.hash().unwrap(),
        } } });
        std::fs::write(folder.path().join("trust.json"), stored.to_string()).unwrap();
        let load = || Trust::load(Some(folder.path()), folder.path(), false);
        assert!(load().allows(&one));
        std::fs::write(&script, "print(2)").unwrap();
        assert!(!load().allows(&one) && load().knew(&one, &[]));
    }

    #[test]
    fn a_file_that_was_swapped_and_put_back_was_touched() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool.py");
        std::fs::write(&script, "print(1)").unwrap();
        let one = item(vec![script.clone()]);
        let load = || Trust::load(Some(folder.path()), folder.path(), false);
        load()
            .set(&[(one.clone(), one.pin.hash().unwrap())])
            .unwrap();
        let recheck = load().check(&one).unwrap();
        assert_eq!(recheck(), Ok(()));
        let (other, kept) = (folder.path().join("other"), folder.path().join("kept"));
        std::fs::write(&other, "evil()").unwrap();
        std::fs::rename(&script, &kept).unwrap();
        std::fs::rename(&other, &script).unwrap();
        assert!(recheck().is_err());
        std::fs::rename(&script, &other).unwrap();
        std::fs::copy(&kept, &script).unwrap();
        assert!(load().allows(&one));
        assert!(recheck().is_err());
        assert!(load().check(&one).is_some_and(|recheck| recheck().is_ok()));
    }
}
