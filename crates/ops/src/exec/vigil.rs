//! What those that still run could touch: what commands left behind, and programs that
//! are spoken to. It is looked at again and again until the session is over, and if haft
//! is killed the next session looks.

use super::open::{self, Abandoned, Kept, Mark};
use super::sandboxed::Sandbox;
use super::state::{State, state};
use super::touched::{Before, Touched};
use crate::blocking::{self, Weight};
use crate::executor::orphans_ended;
use crate::executor::sandbox::Confinement;
use crate::git::Register;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long the end of what a killed haft had started is waited for.
const ORPHANS: Duration = Duration::from_secs(2);

/// How long it may take until a command that was ended has been looked at, and how often
/// that is asked.
const SETTLES: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// What is watched in a session. One for everything that runs in it.
#[derive(Debug, Default)]
pub struct Vigil {
    /// Where it is written down.
    folder: Option<PathBuf>,
    /// What is watched beyond the end of commands.
    before: Mutex<Option<Before>>,
    book: Mutex<Book>,
    /// Paths protected from commands while something runs that could change where links
    /// lead.
    protected: Mutex<BTreeSet<PathBuf>>,
    /// Whether what killed sessions left was looked at.
    is_recalled: OnceCell<()>,
}

#[derive(Debug, Default)]
struct Book {
    next: u64,
    /// What is watched for each command that runs, as it is written down.
    running: Vec<(u64, Vec<u8>)>,
    /// The same for what stays.
    staying: Vec<u8>,
    /// Protected places where something is that could not be moved out of the way, and how
    /// each of them was before.
    stuck: Vec<(PathBuf, State)>,
    /// Whether something will be wrong after the session.
    has_rest: bool,
    /// What nobody was told yet.
    untold: Vec<Touched>,
    registers: Vec<Arc<Register>>,
    mark: Option<Mark>,
    /// What is written down.
    written: Vec<u8>,
}

impl Vigil {
    /// One that writes down in this folder what is watched, for whoever comes when haft
    /// was killed.
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self {
            folder,
            ..Self::default()
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }

    /// Watches beyond the end of a command.
    fn stay(&self, before: Before) {
        let mut kept = lock(&self.before);
        let joined = match &mut *kept {
            Some(known) => {
                known.join(before);
                known
            }
            none => none.insert(before),
        };
        let staying = Kept::of(joined).to_bytes();
        let mut book = self.book();
        book.staying = staying;
        self.write(&mut book);
    }

    /// What was touched since somebody last looked, by what commands left running.
    pub(super) fn since_last(&self, out: Option<&Path>) -> Vec<Touched> {
        let mut touched = std::mem::take(&mut self.book().untold);
        let mut before = lock(&self.before);
        if let Some(before) = before.as_mut() {
            let seen = before.compare(out);
            if !seen.is_empty() {
                self.note(&seen);
                let staying = Kept::of(before).to_bytes();
                let mut book = self.book();
                book.staying = staying;
                self.write(&mut book);
            }
            touched.extend(seen);
        }
        touched
    }

    /// Tells this to whoever asks next.
    pub(super) fn tell(&self, touched: Vec<Touched>) {
        self.book().untold.extend(touched);
    }

    fn note(&self, touched: &[Touched]) {
        let mut book = self.book();
        for one in touched {
            match one {
                Touched::Stayed { path, target, .. } => {
                    book.has_rest = true;
                    if !book.stuck.iter().any(|(known, _)| known == path) {
                        let link = |target: &PathBuf| {
                            State::Link(target.as_os_str().as_bytes().to_owned())
                        };
                        let before = target.as_ref().map_or(State::Nothing, link);
                        book.stuck.push((path.clone(), before));
                    }
                }
                Touched::Dismantled { .. } => book.has_rest = true,
                _ => {}
            }
        }
    }

    /// Returns the states of paths from before the processes that still run were started, in
    /// this session and in others with the same work folder.
    fn earlier(&self) -> HashMap<PathBuf, State> {
        let mut kept: Vec<Kept> = match &self.folder {
            Some(folder) => open::written(folder),
            None => Vec::new(),
        };
        let book = self.book();
        kept.extend(book.running.iter().map(|(_, bytes)| Kept::parse(bytes)));
        kept.push(Kept::parse(&book.staying));
        let all = kept.into_iter().flat_map(|kept| kept.watched);
        all.map(|(watched, state)| (watched.path, state)).collect()
    }

    /// Something at a protected place that could not be moved out of the way, and is
    /// still there.
    pub(super) fn stuck(&self) -> Option<PathBuf> {
        let mut book = self.book();
        book.stuck.retain(is_stuck);
        book.stuck.first().map(|(path, _)| path.clone())
    }

    /// Whether something may still run that could touch what is watched.
    pub(super) fn is_needed(&self) -> bool {
        let is_watched = lock(&self.before).is_some();
        is_watched || !self.book().running.is_empty()
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

    /// Remembers what is protected from the next command.
    pub(super) fn protects(&self, paths: &[PathBuf]) {
        lock(&self.protected).extend(paths.iter().cloned());
    }

    /// Waits until somebody has looked at what each command did, or has left it to us.
    pub(super) async fn settled(&self) {
        let deadline = tokio::time::Instant::now() + SETTLES;
        while !self.book().running.is_empty() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Looks for the last time: nothing runs any more.
    pub(super) fn end(&self, out: Option<&Path>) -> Vec<Touched> {
        let touched = self.since_last(out);
        *lock(&self.before) = None;
        let mut book = self.book();
        book.running.clear();
        book.staying.clear();
        book.stuck.retain(is_stuck);
        if book.mark.is_some() || book.has_rest {
            self.write(&mut book);
        }
        if let Some(mark) = book.mark.take() {
            book.written.clear();
            mark.end();
        }
        touched
    }

    /// Writes down what is watched now, if that is something else than before.
    fn write(&self, book: &mut Book) {
        let Some(folder) = &self.folder else {
            return;
        };
        let mut bytes: Vec<u8> = Vec::new();
        for (_, running) in &book.running {
            bytes.extend(running);
        }
        bytes.extend(&book.staying);
        if book.has_rest {
            let registers = book.registers.iter().map(|one| &**one);
            let rest = Kept::of_rest(&book.stuck, registers);
            if !rest.is_empty() {
                bytes.extend(rest.to_bytes());
            }
        }
        if bytes == book.written {
            return;
        }
        if book.mark.is_none() {
            book.mark = Mark::new(folder);
        }
        if let Some(mark) = &mut book.mark {
            mark.write(&bytes);
        }
        book.written = bytes;
    }

    /// Looks at what sessions left that were killed in this work folder, once.
    pub(super) async fn recall(&self, out: Option<&Path>) {
        let recall = || async {
            let folder = self.folder.as_deref();
            let found = folder.map(open::abandoned).unwrap_or_default();
            if found.is_empty() {
                return;
            }
            orphans_ended(ORPHANS).await;
            let out = out.map(Path::to_owned);
            let look = move || Ok(recalled(found, out.as_deref()));
            let looked = blocking::run(Weight::Heavy, look).await;
            let (touched, registers) = looked.unwrap_or_default();
            self.note(&touched);
            let mut book = self.book();
            book.untold.extend(touched);
            book.registers.extend(registers);
            self.write(&mut book);
        };
        self.is_recalled.get_or_init(recall).await;
    }
}

/// What happened since killed sessions last looked.
fn recalled(found: Vec<Abandoned>, out: Option<&Path>) -> (Vec<Touched>, Vec<Arc<Register>>) {
    let mut all: Vec<Touched> = Vec::new();
    let mut registers: Vec<Arc<Register>> = Vec::new();
    for mut one in found {
        let roots = one.kept.roots.iter();
        let known: Vec<Arc<Register>> = roots.map(|root| Register::of(root)).collect();
        let (mut new, mut lost) = (Vec::new(), Vec::new());
        for register in &known {
            let recalled = register.recall(&one.kept.repositories);
            new.extend(recalled.0);
            lost.extend(recalled.1);
        }
        let watched = std::mem::take(&mut one.kept.watched);
        let mut touched = Before::of_another(watched, known.clone()).compare(out);
        touched.extend(new.into_iter().map(|path| Touched::Repository { path }));
        touched.extend(lost.into_iter().map(|path| Touched::Dismantled { path }));
        for one in touched {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        registers.extend(known);
        one.done();
    }
    (all, registers)
}

/// What is watched while a command runs. Dropped before somebody has said that nothing of
/// it runs any more, it is watched until the session is over.
#[derive(Debug)]
pub(super) struct Watching {
    sandbox: Arc<Sandbox>,
    before: Option<Before>,
    number: u64,
}

impl Watching {
    pub(super) fn new(sandbox: &Arc<Sandbox>, confinement: &Confinement) -> Self {
        let mut before = sandbox.look(confinement);
        let vigil = sandbox.vigil();
        before.inherit(&vigil.earlier());
        let bytes = Kept::of(&before).to_bytes();
        let mut book = vigil.book();
        book.next += 1;
        let number = book.next;
        book.running.push((number, bytes));
        for register in &before.repositories {
            let is_known = |known: &Arc<Register>| Arc::ptr_eq(known, register);
            if !book.registers.iter().any(is_known) {
                book.registers.push(Arc::clone(register));
            }
        }
        vigil.write(&mut book);
        drop(book);
        Self {
            sandbox: Arc::clone(sandbox),
            before: Some(before),
            number,
        }
    }

    /// What is otherwise now.
    pub(super) fn compare(&mut self) -> Vec<Touched> {
        let out = self.sandbox.moved_out();
        let before = self.before.as_mut();
        let touched = before.map_or_else(Vec::new, |before| before.compare(out));
        self.sandbox.vigil().note(&touched);
        touched
    }

    /// Nothing of the command runs any more.
    pub(super) fn done(mut self) {
        self.before = None;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let vigil = self.sandbox.vigil();
        if let Some(before) = self.before.take() {
            vigil.stay(before);
        }
        let mut book = vigil.book();
        book.running.retain(|(number, _)| *number != self.number);
        vigil.write(&mut book);
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
