//! The terminal: its modes and keys, and restoring it however the chat ends.

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

/// Bracketed paste.
const ENTER: &str = "\x1b[?2004h";
/// Ends a frame, a style, bracketed paste and a hidden cursor.
const LEAVE: &str = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m";

/// Maximum time until the thread that reads keys notices that it must pause.
const NOTICE: Duration = Duration::from_millis(100);

/// Wait for a key that is known to be available.
const BURST: Duration = Duration::from_millis(1);

/// The terminal in raw mode; restored when dropped.
pub(crate) struct Terminal {
    out: File,
    /// Panic messages, printed after the terminal is restored.
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
        // A message in the middle of a frame would garble the screen. A tool may panic
        // without harm, and the reply of its call says so.
        let panics = Arc::clone(&terminal.panics);
        std::panic::set_hook(Box::new(move |panic| {
            let mut panics = panics.lock().unwrap_or_else(PoisonError::into_inner);
            panics.push(panic.to_string());
        }));
        terminal.ready()?;
        Ok(terminal)
    }

    /// Enters raw mode, at the start and after another program has used the terminal.
    pub(crate) fn ready(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_ready = true;
        self.out.write_all(ENTER.as_bytes())
    }

    /// Restores the terminal for another program.
    pub(crate) fn lend(&mut self) -> io::Result<()> {
        self.is_ready = false;
        let left = self.out.write_all(LEAVE.as_bytes());
        disable_raw_mode()?;
        left
    }
}

/// Stops haft as a job of the shell. The signal may reach other threads a little later, so
/// the caller waits for SIGCONT.
pub(crate) fn suspend() -> io::Result<()> {
    let signal = rustix::process::Signal::TSTP;
    Ok(rustix::process::kill_current_process_group(signal)?)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_ready {
            // An error cannot be reported if the terminal is gone.
            let _ = self.lend();
        }
        // Not while unwinding: changing the hook then panics again.
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

/// Stdout without a buffer: a frame must not be shown in parts.
pub(crate) fn screen() -> io::Result<File> {
    Ok(File::from(rustix::io::dup(io::stdout())?))
}

/// Size of the terminal in columns and rows.
pub(crate) fn size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    // A terminal without a known size reports 0.
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
    /// The terminal is closed.
    Gone,
}

/// Waits for a key, up to `NOTICE`.
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

/// Terminal input, read by a separate thread.
pub(crate) struct Input {
    events: mpsc::UnboundedReceiver<(Instant, Event)>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Locked while the thread reads.
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
                // Without a terminal crossterm would poll in a busy loop.
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

    /// Returns the next event, or `None` when the terminal is closed.
    pub(crate) async fn next(&mut self) -> Option<(Instant, Event)> {
        self.events.recv().await
    }

    /// Drops input that was not handled yet.
    pub(crate) fn forget(&mut self) {
        while self.events.try_recv().is_ok() {}
    }

    /// Stops reading until [`Self::resume`]: another program uses the terminal.
    pub(crate) fn pause(&self) {
        self.gate.closed.store(true, Ordering::SeqCst);
        drop(self.gate.reading.lock());
    }

    /// Continues reading, and drops input from the meantime.
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
