//! Trust: a project may run only what the user has reviewed and accepted. Each item is
//! identified by a hash of its command and files, so a changed item must be accepted
//! again.

use crate::failure::Failure;
use haft::ops::beneath::{self, State};
use haft::ops::private;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum total size in bytes of the files of one item.
const LARGEST: u64 = 256 << 20;

/// Something that a project wants to run.
#[derive(Debug, Clone)]
pub struct Item {
    /// `plugin`, `program` or `lua`.
    pub kind: &'static str,
    /// Name in the configuration, or path of the file.
    pub name: String,
    /// The command line, as shown to the user.
    pub shown: String,
    /// Content that must not change.
    pub pin: Pin,
    /// Further facts for the user's decision: what the item would replace, and which
    /// permissions it would get.
    pub remarks: Vec<String>,
}

/// Content that is hashed to recognise an item: its configuration text and its files.
#[derive(Debug, Clone)]
pub struct Pin {
    pub(crate) written: String,
    /// Files whose content counts.
    pub files: Vec<PathBuf>,
}

/// State of an item at the time it was hashed.
#[derive(Debug)]
pub(crate) struct Snapshot {
    hash: String,
    /// The item's files and their metadata.
    files: Vec<(PathBuf, State)>,
}

impl Pin {
    /// Returns the hash, or why a file cannot be read.
    pub fn hash(&self) -> Result<String, String> {
        self.snapshot(&[]).map(|snapshot| snapshot.hash)
    }

    /// Hashes the configuration text and all files. For files in `read`, the given bytes
    /// are hashed instead, because they are what will be used.
    fn snapshot(&self, read: &[(&Path, &[u8])]) -> Result<Snapshot, String> {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(self.written.as_bytes());
        let mut left = LARGEST;
        let mut files = Vec::new();
        for file in &self.files {
            let fail = |error| format!("cannot read {}: {error}", file.display());
            let mut opened = beneath::open(file).map_err(fail)?;
            let state = opened.state().map_err(fail)?;
            // The real path, because several paths may lead to one folder.
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
                return Err(format!("{} is changing while it is read", file.display()));
            }
            files.push((file.clone(), state));
        }
        let hash = hash.finalize();
        Ok(Snapshot {
            hash: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            files,
        })
    }
}

impl Snapshot {
    /// Checks that nothing was touched since. A file that was swapped and restored counts
    /// as touched.
    pub(crate) fn check_untouched(&self, pin: &Pin) -> Result<(), String> {
        let now = pin.snapshot(&[])?;
        let pairs = self.files.iter().zip(&now.files);
        if let Some(((file, _), _)) = pairs.into_iter().find(|(was, now)| was != now) {
            return Err(format!("{} changed while it was started", file.display()));
        }
        if self.hash == now.hash && self.files.len() == now.files.len() {
            return Ok(());
        }
        Err("the program changed while it was started".to_owned())
    }
}

/// The items of a project that the user trusts.
#[derive(Debug, Clone)]
pub struct Trust {
    file: Option<PathBuf>,
    /// The project's real path, escaped.
    project: String,
    trusted: Map<String, Value>,
    /// `--trust`: everything is trusted for this run.
    everything: bool,
}

impl Trust {
    /// Reads the trust file. One that cannot be read grants no trust.
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own file, outside every scope"
    )]
    pub fn load(state: Option<&Path>, project: &Path, everything: bool) -> Self {
        let file = state.map(|state| state.join("trust.json"));
        let real = haft::ops::scope::real(project).unwrap_or_else(|| project.to_owned());
        // Escaped instead of lossily decoded: different paths must not become the same
        // key.
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

    /// Whether anything in this folder was trusted before.
    pub fn has_trusted(&self) -> bool {
        !self.trusted.is_empty()
    }

    /// Whether an item may run.
    pub fn allows(&self, item: &Item) -> bool {
        self.allows_with(item, &[])
    }

    /// Whether an item may run, given the content of files that were read already.
    pub(crate) fn allows_with(&self, item: &Item, read: &[(&Path, &[u8])]) -> bool {
        self.everything || self.trusted_snapshot(item, read).is_some()
    }

    /// If an item may run, returns a check that fails once its files were touched.
    pub(crate) fn check(&self, item: &Item) -> Option<haft::Recheck> {
        if self.everything {
            return Some(Box::new(|| Ok(())));
        }
        let snapshot = self.trusted_snapshot(item, &[])?;
        let pin = item.pin.clone();
        Some(Box::new(move || snapshot.check_untouched(&pin)))
    }

    fn trusted_snapshot(&self, item: &Item, read: &[(&Path, &[u8])]) -> Option<Snapshot> {
        // Without a trusted hash do not read the files: an untrusted folder could slow
        // haft down with large ones.
        self.hashes(item).next()?;
        let snapshot = item.pin.snapshot(read).ok()?;
        let is_known = self.hashes(item).any(|known| known == snapshot.hash);
        is_known.then_some(snapshot)
    }

    /// Whether an earlier version of this item was trusted: a trusted hash under the same
    /// name that no other current item has.
    pub fn trusted_before(&self, item: &Item, all: &[Item]) -> bool {
        let mut known: Vec<&str> = self.hashes(item).collect();
        for other in all {
            if !known.is_empty() && key(other) == key(item) {
                let hash = other.pin.hash().unwrap_or_default();
                known.retain(|known| *known != hash);
            }
        }
        !known.is_empty()
    }

    /// Returns the trusted hashes of an item. They are found by kind and name, so the
    /// order of a list does not matter.
    fn hashes(&self, item: &Item) -> impl Iterator<Item = &str> {
        let key = key(item);
        self.trusted.iter().filter_map(move |(name, value)| {
            // Before version 1 the file held one hash per name.
            if *name == key {
                return value.as_str();
            }
            let hash = name.strip_prefix(&key)?.strip_prefix(' ')?;
            (hash.len() == 64 && value.is_object()).then_some(hash)
        })
    }

    /// Trusts exactly these items with the hashes the user saw, and nothing else in the
    /// project.
    pub fn set(&self, seen: &[(Item, String)]) -> Result<(), Failure> {
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
                "trust is stored in the state folder: set HOME",
            ));
        };
        let fail = |error: std::io::Error| {
            Failure::failed(format!("cannot write {}: {error}", file.display()))
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        private::folder(folder).map_err(fail)?;
        // Locked, so that two processes cannot overwrite each other's changes.
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let lock = private::file(&options, &file.with_extension("lock")).map_err(fail)?;
        lock.lock().map_err(fail)?;
        let damaged = |why: &str| {
            Failure::failed(format!(
                "{} is damaged: {why}; move it away",
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
            _ => return Err(damaged("`projects` is not an object")),
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
    fn an_item_is_trusted_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool.py");
        std::fs::write(&script, "print(1)").unwrap();
        let one = item(vec![script.clone()]);
        let load = || Trust::load(Some(folder.path()), folder.path(), false);
        assert!(!load().allows(&one) && !load().trusted_before(&one, &[]));
        let seen = (one.clone(), one.pin.hash().unwrap());
        load().set(&[seen]).unwrap();
        assert!(load().allows(&one));
        std::fs::write(&script, "print(2)").unwrap();
        assert!(!load().allows(&one) && load().trusted_before(&one, &[]));
        assert!(Trust::load(Some(folder.path()), folder.path(), true).allows(&one));
        let other = Trust::load(Some(folder.path()), Path::new("/"), false);
        assert!(!other.trusted_before(&one, &[]));
        load().set(&[]).unwrap();
        assert!(!load().trusted_before(&one, &[]));
    }

    #[test]
    fn an_item_with_a_missing_file_is_not_trusted() {
        let gone = item(vec!["/nowhere/at/all".into()]);
        assert!(gone.pin.hash().is_err());
        assert!(!Trust::load(None, Path::new("/"), false).allows(&gone));
    }

    #[test]
    fn trust_does_not_depend_on_other_items() {
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
        // An untrusted item of the same name is new, not changed.
        let both = [two.clone(), one.clone()];
        assert!(load().allows(&one));
        assert!(!load().allows(&two) && !load().trusted_before(&two, &both));
        load().set(&[seen(&two), seen(&one), seen(&one)]).unwrap();
        assert!(load().allows(&one) && load().allows(&two));
        std::fs::write(folder.path().join("two.py"), "3").unwrap();
        assert!(load().allows(&one));
        assert!(!load().allows(&two) && load().trusted_before(&two, &both));
    }

    #[test]
    fn entries_of_an_earlier_version_are_still_trusted() {
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
        assert!(!load().allows(&one) && load().trusted_before(&one, &[]));
    }

    #[test]
    fn a_file_that_was_swapped_and_restored_counts_as_touched() {
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
        let (other, saved) = (folder.path().join("other"), folder.path().join("saved"));
        std::fs::write(&other, "evil()").unwrap();
        std::fs::rename(&script, &saved).unwrap();
        std::fs::rename(&other, &script).unwrap();
        assert!(recheck().is_err());
        std::fs::rename(&script, &other).unwrap();
        std::fs::copy(&saved, &script).unwrap();
        assert!(load().allows(&one));
        assert!(recheck().is_err());
        assert!(load().check(&one).is_some_and(|recheck| recheck().is_ok()));
    }
}
