//! Monitors changes by processes that outlive a call: those that commands left behind, and
//! programs that the session talks to. It checks repeatedly until the session ends; if haft
//! is killed, the next session checks.

use super::findings::{Baseline, Finding};
use super::sandbox::{Confined, Sandbox};
use super::state::{State, state};
use super::watch_file::{self, Abandoned, WatchFile, WatchList};
use crate::blocking::{self, Weight};
use crate::executor::orphans_ended;
use crate::git::Registry;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// Maximum wait for the processes of a killed haft to end.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum wait until the changes of an ended command were checked, and the polling
/// interval.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Monitors changes to watched paths, for everything that runs in a session.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Folder of the watch file.
    folder: Option<PathBuf>,
    /// States of paths that are still watched after their command has ended.
    before: Mutex<Option<Baseline>>,
    records: Mutex<Records>,
    /// Paths protected from commands while something runs that could change where links
    /// lead.
    protected: Mutex<BTreeSet<PathBuf>>,
    /// Set once the changes of killed sessions were checked.
    is_recalled: OnceCell<()>,
}

#[derive(Debug, Default)]
struct Records {
    next: u64,
    /// Encoded watch list of each running command.
    running: Vec<(u64, Vec<u8>)>,
    /// Encoded watch list of processes that outlived their command.
    staying: Vec<u8>,
    /// Protected paths with something that could not be moved away, and the state of each
    /// before.
    stuck: Vec<(PathBuf, State)>,
    /// Whether something will still need watching after the session.
    has_remaining: bool,
    /// Findings that were not reported yet.
    unreported: Vec<Finding>,
    registries: Vec<Arc<Registry>>,
    watch_file: Option<WatchFile>,
    /// Content of the watch file.
    written: Vec<u8>,
}

impl Monitor {
    /// Creates a monitor that keeps its watch file in this folder, in case haft is killed.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        lock(&self.records)
    }

    /// Keeps watching after a command has ended.
    fn keep_watching(&self, before: Baseline) {
        let mut current = lock(&self.before);
        let joined = match &mut *current {
            Some(known) => {
                known.join(before);
                known
            }
            none => none.insert(before),
        };
        let staying = WatchList::of(joined).to_bytes();
        let mut records = self.records();
        records.staying = staying;
        self.write(&mut records);
    }

    /// Returns the changes since the last check, by processes that commands left running.
    pub(super) fn since_last(&self, out: Option<&Path>) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut self.records().unreported);
        let mut before = lock(&self.before);
        if let Some(before) = before.as_mut() {
            let seen = before.compare(out);
            if !seen.is_empty() {
                self.note(&seen);
                let staying = WatchList::of(before).to_bytes();
                let mut records = self.records();
                records.staying = staying;
                self.write(&mut records);
            }
            findings.extend(seen);
        }
        findings
    }

    /// Saves findings for the next report.
    pub(super) fn save(&self, findings: Vec<Finding>) {
        self.records().unreported.extend(findings);
    }

    fn note(&self, findings: &[Finding]) {
        let mut records = self.records();
        for one in findings {
            match one {
                Finding::NotMoved { path, target, .. } => {
                    records.has_remaining = true;
                    if !records.stuck.iter().any(|(known, _)| known == path) {
                        let link = |target: &PathBuf| {
                            State::Link(target.as_os_str().as_bytes().to_owned())
                        };
                        let before = target.as_ref().map_or(State::Nothing, link);
                        records.stuck.push((path.clone(), before));
                    }
                }
                Finding::Dismantled { .. } => records.has_remaining = true,
                _ => {}
            }
        }
    }

    /// Returns the states of paths from before the processes that still run were started, in
    /// this session and in others with the same work folder.
    fn earlier(&self) -> HashMap<PathBuf, State> {
        let mut list: Vec<WatchList> = match &self.folder {
            Some(folder) => watch_file::written(folder),
            None => Vec::new(),
        };
        let records = self.records();
        list.extend(
            records
                .running
                .iter()
                .map(|(_, bytes)| WatchList::parse(bytes)),
        );
        list.push(WatchList::parse(&records.staying));
        let all = list.into_iter().flat_map(|list| list.watched);
        all.map(|(watched, state)| (watched.path, state)).collect()
    }

    /// Returns a protected path that still holds something that could not be moved away.
    pub(super) fn stuck(&self) -> Option<PathBuf> {
        let mut records = self.records();
        records.stuck.retain(is_stuck);
        records.stuck.first().map(|(path, _)| path.clone())
    }

    /// Whether processes that could change watched paths may still run.
    pub(super) fn is_needed(&self) -> bool {
        let is_watched = lock(&self.before).is_some();
        is_watched || !self.records().running.is_empty()
    }

    /// Returns the paths that were protected from earlier commands. A new search may miss
    /// some, if a process that still runs changed a link on the way.
    pub(super) fn protected(&self) -> Vec<PathBuf> {
        let mut protected = lock(&self.protected);
        if !self.is_needed() {
            protected.clear();
        }
        protected.iter().cloned().collect()
    }

    /// Remembers the paths that are protected from the next command.
    pub(super) fn remember_protected(&self, paths: &[PathBuf]) {
        lock(&self.protected).extend(paths.iter().cloned());
    }

    /// Waits until the changes of each command were checked or left to this monitor.
    pub(super) async fn settled(&self) {
        let deadline = tokio::time::Instant::now() + SETTLE_TIMEOUT;
        while !self.records().running.is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Makes the final check, after everything has ended.
    pub(super) fn end(&self, out: Option<&Path>) -> Vec<Finding> {
        let findings = self.since_last(out);
        *lock(&self.before) = None;
        let mut records = self.records();
        records.running.clear();
        records.staying.clear();
        records.stuck.retain(is_stuck);
        if records.watch_file.is_some() || records.has_remaining {
            self.write(&mut records);
        }
        if let Some(watch_file) = records.watch_file.take() {
            records.written.clear();
            watch_file.end();
        }
        findings
    }

    /// Updates the watch file if the list has changed.
    fn write(&self, records: &mut Records) {
        let Some(folder) = &self.folder else {
            return;
        };
        let mut bytes: Vec<u8> = Vec::new();
        for (_, running) in &records.running {
            bytes.extend(running);
        }
        bytes.extend(&records.staying);
        if records.has_remaining {
            let registries = records.registries.iter().map(|one| &**one);
            let rest = WatchList::of_remaining(&records.stuck, registries);
            if !rest.is_empty() {
                bytes.extend(rest.to_bytes());
            }
        }
        if bytes == records.written {
            return;
        }
        if records.watch_file.is_none() {
            records.watch_file = WatchFile::new(folder);
        }
        if let Some(watch_file) = &mut records.watch_file {
            watch_file.write(&bytes);
        }
        records.written = bytes;
    }

    /// Checks, once, the changes made by sessions that were killed in this work folder.
    pub(super) async fn recall(&self, out: Option<&Path>) {
        let recall = || async {
            let folder = self.folder.as_deref();
            let found = folder.map(watch_file::abandoned).unwrap_or_default();
            if found.is_empty() {
                return;
            }
            orphans_ended(ORPHAN_TIMEOUT).await;
            let out = out.map(Path::to_owned);
            let look = move || Ok(changes_of(found, out.as_deref()));
            let looked = blocking::run(Weight::Heavy, look).await;
            let (findings, registries) = looked.unwrap_or_default();
            self.note(&findings);
            let mut records = self.records();
            records.unreported.extend(findings);
            add_registries(&mut records.registries, &registries);
            self.write(&mut records);
        };
        self.is_recalled.get_or_init(recall).await;
    }
}

/// Adds registries that are not in the list yet. Without that, the watch file would grow with
/// every session that takes it over.
fn add_registries(all: &mut Vec<Arc<Registry>>, more: &[Arc<Registry>]) {
    for registry in more {
        if !all.iter().any(|known| Arc::ptr_eq(known, registry)) {
            all.push(Arc::clone(registry));
        }
    }
}

/// Returns the changes since the last checks of killed sessions.
fn changes_of(found: Vec<Abandoned>, out: Option<&Path>) -> (Vec<Finding>, Vec<Arc<Registry>>) {
    let mut all: Vec<Finding> = Vec::new();
    let mut registries: Vec<Arc<Registry>> = Vec::new();
    for mut one in found {
        let roots = one.list.roots.iter();
        let known: Vec<Arc<Registry>> = roots.map(|root| Registry::of(root)).collect();
        let (mut new, mut lost) = (Vec::new(), Vec::new());
        for registry in &known {
            let changes_of = registry.recall(&one.list.repositories);
            new.extend(changes_of.0);
            lost.extend(changes_of.1);
        }
        let watched = std::mem::take(&mut one.list.watched);
        let mut findings = Baseline::of_another(watched, known.clone()).compare(out);
        findings.extend(new.into_iter().map(|path| Finding::Repository { path }));
        findings.extend(lost.into_iter().map(|path| Finding::Dismantled { path }));
        for one in findings {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        add_registries(&mut registries, &known);
        one.done();
    }
    (all, registries)
}

/// Watches paths while a command runs. If dropped without [`done`](Self::done), the
/// session's monitor keeps watching.
#[derive(Debug)]
pub(super) struct CommandMonitor {
    sandbox: Arc<Sandbox>,
    before: Option<Baseline>,
    number: u64,
}

impl CommandMonitor {
    pub(super) fn new(sandbox: &Arc<Sandbox>, confined: &Confined) -> Self {
        let mut before = sandbox.baseline(confined);
        let monitor = sandbox.monitor();
        before.inherit(&monitor.earlier());
        let bytes = WatchList::of(&before).to_bytes();
        let mut records = monitor.records();
        records.next += 1;
        let number = records.next;
        records.running.push((number, bytes));
        add_registries(&mut records.registries, &before.repositories);
        monitor.write(&mut records);
        drop(records);
        Self {
            sandbox: Arc::clone(sandbox),
            before: Some(before),
            number,
        }
    }

    /// Returns what has changed.
    pub(super) fn compare(&mut self) -> Vec<Finding> {
        let out = self.sandbox.moved_out();
        let before = self.before.as_mut();
        let findings = before.map_or_else(Vec::new, |before| before.compare(out));
        self.sandbox.monitor().note(&findings);
        findings
    }

    /// Stops watching, because no process of the command runs any more.
    pub(super) fn done(mut self) {
        self.before = None;
    }
}

impl Drop for CommandMonitor {
    fn drop(&mut self) {
        let monitor = self.sandbox.monitor();
        if let Some(before) = self.before.take() {
            monitor.keep_watching(before);
        }
        let mut records = monitor.records();
        records.running.retain(|(number, _)| *number != self.number);
        monitor.write(&mut records);
    }
}

/// Whether something is still at a protected path that was not there before.
fn is_stuck((path, before): &(PathBuf, State)) -> bool {
    let now = state(path);
    now != State::Nothing && now != *before
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
