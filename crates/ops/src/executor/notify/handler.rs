//! Handles the notifications of one command: finds out which files a call is about to
//! change, lets the recorder keep them, and lets the call go on.

use super::calls::{self, Act, Base, Call, Last, Place, Way};
use super::configs::Configs;
use super::raw::{Answer, Listener, Notification};
use super::resolve::{self, Resolver, Slash};
use super::target;
use super::underway::Underway;
use super::waiting::{Next, Waiting, is_passing, next};
use crate::effects::{Incomplete, Opened, Recorder, Recording, Touch};
use crate::git::{ConfigGate, Created, Objection};
use rustix::fs::{CWD, FileType};
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

/// Length of the fixed part of `sockaddr_un`, and of the whole.
const FAMILY_BYTES: usize = 2;
const SOCKET_ADDRESS: usize = 110;

/// Reason after a defect in haft.
const PANICKED: &str = "a call of the command could not be handled";

/// Reason if a folder is moved while other threads may be at work in it.
const MOVED: &str = "a folder was moved while other threads were changing files";

/// Effect of a call on the paths of later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Usual,
    /// Paths lead somewhere else after it.
    MovesFolder,
    /// haft has made it, or has refused it.
    Answered(Answer),
}

/// Handles notifications until the last process of the command has ended. Never returns
/// earlier, because without an answer every call of the command would fail.
pub(super) fn serve(listener: &Listener, recording: &Recording, gate: Option<&ConfigGate>) {
    let mut configs = gate.map(Configs::new);
    let mut resolver = Resolver::new();
    let mut underway = Underway::default();
    let waiting = Waiting::of_this_kernel();
    loop {
        let call = match underway.arrived() {
            Some(call) => call,
            None => match next(listener, waiting) {
                Ok(Next::Call(call)) => call,
                Ok(Next::Again) => continue,
                Ok(Next::End) => return,
                Err(error) => return recording.unrecorded(broken(&error)),
            },
        };
        let handled = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let mut tools = Tools {
                resolver: &mut resolver,
                underway: &mut underway,
                configs: configs.as_mut(),
                listener,
            };
            handle(&mut tools, &call, recording)
        }));
        let moves_folder = matches!(handled, Ok(Ok(Effect::MovesFolder)));
        let answer = match handled {
            Ok(Ok(Effect::Answered(answer))) => answer,
            _ => Answer::Continue,
        };
        match handled {
            Ok(Ok(_)) => {}
            // Its process has ended, so the call is not made.
            Ok(Err(error)) if is_gone(&error) || !listener.is_waiting(call.id) => {}
            Ok(Err(error)) => recording.incomplete(unreadable(&error)),
            Err(_) => {
                recording.incomplete(Incomplete::Other(PANICKED.to_owned()));
                // It may have been left in a state that makes no sense.
                resolver = Resolver::new();
            }
        }
        match listener.answer(call.id, answer) {
            Ok(()) if answer != Answer::Continue => {}
            Ok(()) => {
                underway.begins(call.thread, call.number, call.arguments);
                if moves_folder && !underway.settle(None, listener) {
                    recording.incomplete(Incomplete::Other(MOVED.to_owned()));
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return recording.unrecorded(broken(&error)),
        }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

fn broken(error: &io::Error) -> Incomplete {
    Incomplete::Other(format!("cannot receive the calls of the command: {error}"))
}

fn unreadable(error: &io::Error) -> Incomplete {
    Incomplete::Other(format!("cannot read the arguments of a call: {error}"))
}

/// What handling a call needs.
struct Tools<'a, 'gate> {
    resolver: &'a mut Resolver,
    underway: &'a mut Underway,
    /// Git configurations that may be changed.
    configs: Option<&'a mut Configs<'gate>>,
    listener: &'a Listener,
}

fn handle(
    tools: &mut Tools<'_, '_>,
    notification: &Notification,
    recording: &Recording,
) -> io::Result<Effect> {
    let recorder = recording.current();
    let Some(call) = calls::decode(notification.number, notification.arguments) else {
        return Ok(Effect::Usual);
    };
    if let Some(configs) = &mut tools.configs {
        let recorder = recorder.as_deref();
        let answer =
            configs.handle(tools.resolver, tools.listener, notification, call, recorder)?;
        if let Some(answer) = answer {
            return Ok(Effect::Answered(answer));
        }
    }
    let gate = tools.configs.as_ref().map(|configs| configs.gate());
    if recorder.is_none() && gate.is_none() {
        return Ok(Effect::Usual);
    }
    let mut change = Change {
        resolver: tools.resolver,
        listener: tools.listener,
        thread: notification.thread,
        recorder: recorder.as_deref(),
        gate,
    };
    match call {
        Call::Open { place, flags } => change.open(place, flags, Slash::Root),
        Call::Open2 { place, how } => change.open2(place, how),
        Call::Change { place, last, act } => change.one(place, last, act),
        Call::Rename { from, to, way } => {
            change.rename(from, to, way == Way::Exchange, tools.underway)
        }
        Call::Link { from, last, to } => change.link(from, last, to),
        Call::Bind { address, length } => change.bind(address, length),
    }
}

/// One call that is about to change something.
struct Change<'a> {
    resolver: &'a mut Resolver,
    listener: &'a Listener,
    thread: u32,
    /// Keeps old content, if changes are recorded.
    recorder: Option<&'a Recorder>,
    gate: Option<&'a ConfigGate>,
}

impl Change<'_> {
    fn open(&mut self, place: Place, flags: i32, slash: Slash) -> io::Result<Effect> {
        let has = |wanted: i32| flags & wanted == wanted;
        // Without a name there is nothing to restore; `linkat` gives it one.
        if has(libc::O_PATH) || has(libc::O_TMPFILE) {
            return Ok(Effect::Usual);
        }
        let is_new = has(libc::O_CREAT | libc::O_EXCL);
        let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || has(libc::O_TRUNC);
        // Without looking at what is there: the recorder does.
        let touch = match !writes || is_new {
            true => Touch::Create,
            false => Touch::Content,
        };
        let is_followed = !is_new && !has(libc::O_NOFOLLOW);
        let last = match (is_followed, self.recorder) {
            (true, Some(_)) => Last::Unknown,
            (true, None) => Last::Followed,
            (false, _) => Last::Kept,
        };
        let Some(mut path) = self.find(place, last, slash)? else {
            return Ok(Effect::Usual);
        };
        if last != Last::Unknown {
            self.record(&path, touch);
        } else if let Some(recorder) = self.recorder
            && recorder.before_open(&path, touch) == Opened::Link
        {
            path = match self.find(place, Last::Followed, slash)? {
                Some(path) => path,
                None => return Ok(Effect::Usual),
            };
            recorder.before(&path, touch);
        }
        Ok(
            match has(libc::O_CREAT) && self.closes(&path, Created::Other) {
                true => Effect::Answered(Answer::Denied),
                false => Effect::Usual,
            },
        )
    }

    fn open2(&mut self, place: Place, how: u64) -> io::Result<Effect> {
        let Some(bytes) = target::bytes::<24>(self.thread, how)? else {
            return Ok(Effect::Usual);
        };
        let (flags, rest) = bytes.split_at(8);
        let resolve = rest.split_at(8).1;
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or(0);
        // Flags beyond 32 bits make the call fail.
        let flags = i32::try_from(number(flags)).unwrap_or(0);
        if flags & calls::WRITES == 0 {
            return Ok(Effect::Usual);
        }
        let slash = match number(resolve) & libc::RESOLVE_IN_ROOT {
            0 => Slash::Root,
            _ => Slash::Base,
        };
        self.open(place, flags, slash)
    }

    fn one(&mut self, place: Place, last: Last, act: Act) -> io::Result<Effect> {
        if act == Act::CreateLink {
            resolve::forget_folders();
        }
        let Some(path) = self.find(place, last, Slash::Root)? else {
            return Ok(Effect::Usual);
        };
        let (touch, created) = match act {
            Act::CreateFolder => (Touch::Create, Some(Created::Folder)),
            Act::Create | Act::CreateLink => (Touch::Create, Some(Created::Other)),
            Act::Remove => (Touch::Remove, None),
            Act::Content => (Touch::Content, None),
            Act::Attributes | Act::Mode(_) => (Touch::Attributes, None),
        };
        if created.is_some_and(|created| self.closes(&path, created)) {
            return Ok(Effect::Answered(Answer::Denied));
        }
        self.record(&path, touch);
        Ok(Effect::Usual)
    }

    fn rename(
        &mut self,
        from: Place,
        to: Place,
        exchange: bool,
        underway: &mut Underway,
    ) -> io::Result<Effect> {
        let Some(mut ends) = self.both(from, to)? else {
            return Ok(Effect::Usual);
        };
        let is_closed = self.closes(&ends.1, Created::Other);
        if is_closed || exchange && self.closes(&ends.0, Created::Other) {
            return Ok(Effect::Answered(Answer::Denied));
        }
        let Some(recorder) = self.recorder else {
            return Ok(Effect::Usual);
        };
        let is_covered = recorder.covers(&ends.0) || recorder.covers(&ends.1);
        let moves_folder = exchange || kind(&ends.0) == Some(FileType::Directory);
        if is_covered && moves_folder {
            if !underway.settle(Some(self.thread), self.listener) {
                recorder.incomplete(Incomplete::Other(MOVED.to_owned()));
            }
            // The calls before it may have moved something.
            ends = match self.both(from, to)? {
                Some(ends) => ends,
                None => return Ok(Effect::Usual),
            };
        }
        let (from, to) = ends;
        if exchange {
            resolve::forget_folders_for_good();
        } else if kind(&from).is_none_or(|kind| kind == FileType::Symlink) {
            resolve::forget_folders();
        }
        if is_covered {
            let touch = match exchange {
                true => Touch::Exchange { with: &to },
                false => Touch::Move { to: &to },
            };
            recorder.before(&from, touch);
        }
        Ok(match is_covered && moves_folder {
            true => Effect::MovesFolder,
            false => Effect::Usual,
        })
    }

    /// Finds both ends of a move.
    fn both(&mut self, from: Place, to: Place) -> io::Result<Option<(PathBuf, PathBuf)>> {
        let everything = |_: &Path| true;
        let mut find = |place| {
            self.resolver
                .resolve(self.thread, place, Last::Kept, Slash::Root, &everything)
        };
        Ok(find(from)?.zip(find(to)?))
    }

    fn link(&mut self, from: Place, last: Last, to: Place) -> io::Result<Effect> {
        // The new name may be that of a symbolic link.
        resolve::forget_folders();
        let Some(to) = self.find(to, Last::Kept, Slash::Root)? else {
            return Ok(Effect::Usual);
        };
        if self.closes(&to, Created::Other) {
            return Ok(Effect::Answered(Answer::Denied));
        }
        let everything = |_: &Path| true;
        let from = self
            .resolver
            .resolve(self.thread, from, last, Slash::Root, &everything)?;
        let touch = match &from {
            Some(from) => Touch::Link { from },
            // A file that had no name.
            None => Touch::Create,
        };
        self.record(&to, touch);
        Ok(Effect::Usual)
    }

    /// Creating a UNIX socket creates a file.
    fn bind(&mut self, address: u64, length: u64) -> io::Result<Effect> {
        let Some(recorder) = self.recorder else {
            return Ok(Effect::Usual);
        };
        let length = usize::try_from(length).unwrap_or(0);
        if !(FAMILY_BYTES + 1..=SOCKET_ADDRESS).contains(&length) {
            return Ok(Effect::Usual);
        }
        let mut bytes = [0; SOCKET_ADDRESS];
        let bytes = bytes.get_mut(..length).unwrap_or_default();
        let read = super::raw::read_memory(self.thread, address, bytes)?;
        let Some((family, path)) = bytes.get(..read).and_then(|b| b.split_first_chunk::<2>())
        else {
            return Ok(Effect::Usual);
        };
        let is_unix = i32::from(u16::from_ne_bytes(*family)) == libc::AF_UNIX;
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        // Without a path, the socket has only a name in memory.
        if !is_unix || path.is_empty() {
            return Ok(Effect::Usual);
        }
        let covers = |path: &Path| recorder.covers(path);
        let (last, slash) = (Last::Kept, Slash::Root);
        let found = self
            .resolver
            .follow(self.thread, Base::Cwd, path, last, slash, &covers)?;
        if let Some(path) = found {
            recorder.before(&path, Touch::Create);
        }
        Ok(Effect::Usual)
    }

    fn record(&self, path: &Path, touch: Touch<'_>) {
        if let Some(recorder) = self.recorder {
            recorder.before(path, touch);
        }
    }

    /// Whether nothing may be created at a path, because git would obey it. Notes it for the
    /// reply.
    fn closes(&self, path: &Path, created: Created) -> bool {
        let gate = self.gate.filter(|gate| gate.closes(path, created));
        if let Some(gate) = gate {
            gate.refuse(path, Objection::New);
        }
        gate.is_some()
    }

    fn find(&mut self, place: Place, last: Last, slash: Slash) -> io::Result<Option<PathBuf>> {
        let covers = |path: &Path| {
            self.recorder.is_some_and(|recorder| recorder.covers(path))
                || self
                    .gate
                    .is_some_and(|gate| gate.closes(path, Created::Other))
        };
        self.resolver
            .resolve(self.thread, place, last, slash, &covers)
    }
}

/// Returns the type of a file, without following a link. `None` if it does not exist.
pub(super) fn kind(path: &Path) -> Option<FileType> {
    let found = super::long::stat(CWD, path).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}
