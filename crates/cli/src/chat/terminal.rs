//! The terminal itself: its modes, its keys, and giving it back as it was, however the
//! chat ends.

use crossterm::event::{self, Event};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// A paste comes as one piece.
const ENTER: &str = "\x1b[?2004h";
/// Whatever was begun ends: a frame, a style, a hidden cursor.
const LEAVE: &str = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m";

/// How long the thread that reads keys may take to notice that it should not.
const NOTICE: Duration = Duration::from_millis(100);

/// How long a key that was typed is waited for: it is there.
const BURST: Duration = Duration::from_millis(1);

/// The terminal, made ready for a screen of ours; given back when dropped.
pub(crate) struct Terminal {
    out: File,
    /// What panicked meanwhile, to be said when there is a place for it.
    panics: Arc<Mutex<Vec<String>>>,
    is_ready: bool,
}

impl Terminal {
    pub(crate) fn enter() -> io::Result<Self> {
        let mut terminal = Self {
            out: screen()?,
            panics: Arc::default(),
            is_ready: false,
        };
        // A message in the middle of a frame helps nobody; a tool may panic without
        // harm, and its call says so.
        let panics = Arc::clone(&terminal.panics);
        std::panic::set_hook(Box::new(move |panic| {
            let mut panics = panics.lock().unwrap_or_else(PoisonError::into_inner);
            panics.push(panic.to_string());
        }));
        terminal.ready()?;
        Ok(terminal)
    }

    /// Makes it ready, at first and after somebody else has used it.
    pub(crate) fn ready(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_ready = true;
        self.out.write_all(ENTER.as_bytes())
    }

    /// Gives it to somebody else.
    pub(crate) fn lend(&mut self) -> io::Result<()> {
        self.is_ready = false;
        let left = self.out.write_all(LEAVE.as_bytes());
        disable_raw_mode()?;
        left
    }
}

/// Stops haft as a shell's job. Other threads may hear of it a little later: whoever
/// calls waits for the signal that lets it go on.
pub(crate) fn suspend() -> io::Result<()> {
    let signal = rustix::process::Signal::TSTP;
    Ok(rustix::process::kill_current_process_group(signal)?)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_ready {
            // Nobody is left to tell if the terminal is gone.
            let _ = self.lend();
        }
        // Not while it unwinds: to change it then would be a second panic.
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        for panic in panics.iter() {
            let shown = haft::ops::text::decode::visible(panic);
            let _ = writeln!(self.out, "{shown}");
        }
    }
}

/// The screen, written to at once: a frame is not to be seen in parts.
pub(crate) fn screen() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(io::stdout())?))
}

/// Its size in columns and rows.
pub(crate) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    // A terminal that was never told its size says 0.
    let or = |given: Option<u16>, usual: usize| match given.map(usize::from) {
        None | Some(0) => usual,
        Some(given) => given,
    };
    let columns = or(size.map(|size| size.ws_col), 80);
    (columns, or(size.map(|size| size.ws_row), 24))
}

enum Typed {
    Nothing,
    Something,
    /// There is no terminal any more.
    Gone,
}

/// Waits a moment for a key.
fn typed() -> Typed {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let moment = NOTICE.try_into().ok();
    match rustix::event::poll(&mut keys, moment.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Typed::Nothing,
        Ok(_) => {}
        Err(_) => return Typed::Gone,
    }
    let is_gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    match keys.first() {
        Some(key) if key.revents().intersects(is_gone) => Typed::Gone,
        _ => Typed::Something,
    }
}

/// What is typed, read by a thread of its own.
pub(crate) struct Input {
    events: mpsc::UnboundedReceiver<(Instant, Event)>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Held while the thread reads.
    reading: Mutex<()>,
    closed: AtomicBool,
    over: AtomicBool,
}

impl Input {
    pub(crate) fn listen() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let gate = Arc::new(Gate::default());
        let theirs = Arc::clone(&gate);
        std::thread::spawn(move || {
            while !theirs.over.load(Ordering::SeqCst) {
                let reading = theirs.reading.lock();
                if theirs.closed.load(Ordering::SeqCst) {
                    drop(reading);
                    std::thread::sleep(NOTICE / 10);
                    continue;
                }
                // Without a terminal crossterm would look for keys again and again.
                match typed() {
                    Typed::Nothing => continue,
                    Typed::Gone => break,
                    Typed::Something => {}
                }
                while let Ok(true) = event::poll(BURST) {
                    let Ok(event) = event::read() else { return };
                    if sender.send((Instant::now(), event)).is_err() {
                        return;
                    }
                }
            }
        });
        Self { events, gate }
    }

    /// The next; none when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<(Instant, Event)> {
        self.events.recv().await
    }

    /// Forgets what was typed and not yet looked at.
    pub(crate) fn forget(&mut self) {
        while self.events.try_recv().is_ok() {}
    }

    /// Reads nothing until [`Self::resume`]: another program has the terminal.
    pub(crate) fn pause(&self) {
        self.gate.closed.store(true, Ordering::SeqCst);
        drop(self.gate.reading.lock());
    }

    /// Reads again, and forgets what was typed until now.
    pub(crate) fn resume(&mut self) {
        self.forget();
        self.gate.closed.store(false, Ordering::SeqCst);
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.gate.over.store(true, Ordering::SeqCst);
    }
}
