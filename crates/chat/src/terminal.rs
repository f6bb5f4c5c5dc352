//! The terminal: its modes and keys, and restoring it however the chat ends.

pub(crate) mod background;

use crossterm::event::{self, Event};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const BRACKETED_PASTE_ON: &str = "\x1b[?2004h";
/// Ends a frame, a style, bracketed paste and a hidden cursor.
const RESET_SEQUENCE: &str = "\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m";

/// Maximum time until the thread that reads keys notices that it must pause.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Wait for a key that is known to be available.
const KEY_WAIT: Duration = Duration::from_millis(1);

/// The terminal in raw mode; restored when dropped.
pub(crate) struct Terminal {
    out: File,
    /// Panic messages, printed after the terminal is restored.
    panics: Arc<Mutex<Vec<String>>>,
    is_raw: bool,
}

impl Terminal {
    pub(crate) fn enter() -> io::Result<Self> {
        let mut terminal = Self {
            out: unbuffered_stdout()?,
            panics: Arc::default(),
            is_raw: false,
        };
        // A message in the middle of a frame would garble the screen. A tool may panic
        // without harm, and the reply of its call says so.
        let panics = Arc::clone(&terminal.panics);
        std::panic::set_hook(Box::new(move |panic| {
            let mut panics = panics.lock().unwrap_or_else(PoisonError::into_inner);
            panics.push(panic.to_string());
        }));
        terminal.enter_raw_mode()?;
        Ok(terminal)
    }

    /// Enters raw mode, at the start and after another program has used the terminal.
    pub(crate) fn enter_raw_mode(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_raw = true;
        self.out.write_all(BRACKETED_PASTE_ON.as_bytes())
    }

    /// Restores the terminal for another program.
    pub(crate) fn restore(&mut self) -> io::Result<()> {
        self.is_raw = false;
        let left = self.out.write_all(RESET_SEQUENCE.as_bytes());
        disable_raw_mode()?;
        left
    }
}

/// Time for the terminal's answer. Most need a millisecond; the first frame waits for it.
const ANSWER_WAIT: Duration = Duration::from_millis(30);

/// Asks for the colour of the background, and for the kind of the terminal: every terminal
/// answers that, so it ends the wait.
const BACKGROUND_QUERY: &str = "\x1b]11;?\x1b\\\x1b[c";

/// Asks the terminal, which must be in raw mode, whether its background is light. Also
/// returns what was typed meanwhile.
pub(crate) fn ask_background() -> (Option<bool>, String) {
    let mut answer: Vec<u8> = Vec::new();
    let asked = unbuffered_stdout().and_then(|mut out| out.write_all(BACKGROUND_QUERY.as_bytes()));
    let until = Instant::now() + ANSWER_WAIT;
    while asked.is_ok() && !background::is_complete(&answer) {
        let left = until.saturating_duration_since(Instant::now());
        let stdin = io::stdin();
        let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
        let ready = rustix::event::poll(&mut keys, left.try_into().ok().as_ref());
        if left.is_zero() || !matches!(ready, Ok(1..)) {
            break;
        }
        let mut some = [0; 1024];
        match rustix::io::read(&stdin, &mut some) {
            Ok(count @ 1..) => answer.extend(some.iter().take(count)),
            _ => break,
        }
    }
    background::parse(&answer)
}

/// Stops haft as a job of the shell. The signal may reach other threads a little later, so
/// the caller waits for SIGCONT.
pub(crate) fn suspend() -> io::Result<()> {
    let signal = rustix::process::Signal::TSTP;
    Ok(rustix::process::kill_current_process_group(signal)?)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.is_raw {
            // An error cannot be reported if the terminal is gone.
            let _ = self.restore();
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
pub(crate) fn unbuffered_stdout() -> io::Result<File> {
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

enum StdinState {
    Idle,
    Ready,
    /// The terminal is closed.
    Closed,
}

/// Waits for a key or a wake-up, up to `POLL_INTERVAL`.
fn poll_stdin(wake: &OwnedFd) -> StdinState {
    let stdin = io::stdin();
    let mut files = [
        PollFd::new(&stdin, PollFlags::IN),
        PollFd::new(wake, PollFlags::IN),
    ];
    let moment = POLL_INTERVAL.try_into().ok();
    match rustix::event::poll(&mut files, moment.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return StdinState::Idle,
        Ok(_) => {}
        Err(_) => return StdinState::Closed,
    }
    let is_gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    match files.first().map(PollFd::revents) {
        Some(key) if key.intersects(is_gone) => StdinState::Closed,
        Some(key) if key.intersects(PollFlags::IN) => StdinState::Ready,
        _ => StdinState::Idle,
    }
}

/// Input that the last chat had read but not handled when it ended. The next one, in another
/// session, begins with it.
static UNHANDLED: Mutex<Vec<(Instant, Event)>> = Mutex::new(Vec::new());

/// Terminal input, read by a separate thread.
pub(crate) struct InputReader {
    events: mpsc::UnboundedReceiver<(Instant, Event)>,
    gate: Arc<Gate>,
    thread: Option<JoinHandle<()>>,
}

struct Gate {
    /// Locked while the thread reads.
    reading: Mutex<()>,
    is_paused: AtomicBool,
    is_over: AtomicBool,
    /// Ends the wait for a key.
    wake: OwnedFd,
}

impl Gate {
    fn new() -> io::Result<Self> {
        Ok(Self {
            reading: Mutex::default(),
            is_paused: AtomicBool::default(),
            is_over: AtomicBool::default(),
            wake: rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    fn wake_up(&self) {
        // It cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

fn read_input(gate: &Gate, sender: &mpsc::UnboundedSender<(Instant, Event)>) {
    while !gate.is_over.load(Ordering::SeqCst) {
        let reading = gate.reading.lock();
        if gate.is_paused.load(Ordering::SeqCst) {
            drop(reading);
            std::thread::sleep(POLL_INTERVAL / 10);
            continue;
        }
        // Without a terminal crossterm would poll in a busy loop.
        match poll_stdin(&gate.wake) {
            StdinState::Idle => continue,
            StdinState::Closed => break,
            StdinState::Ready => {}
        }
        while let Ok(true) = event::poll(KEY_WAIT) {
            let Ok(event) = event::read() else { return };
            if sender.send((Instant::now(), event)).is_err() {
                return;
            }
        }
    }
}

impl InputReader {
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let gate = Arc::new(Gate::new()?);
        let mut unhandled = UNHANDLED.lock().unwrap_or_else(PoisonError::into_inner);
        for event in unhandled.drain(..) {
            let _ = sender.send(event);
        }
        let shared = Arc::clone(&gate);
        let thread = std::thread::spawn(move || read_input(&shared, &sender));
        Ok(Self {
            events,
            gate,
            thread: Some(thread),
        })
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
        self.gate.is_paused.store(true, Ordering::SeqCst);
        drop(self.gate.reading.lock());
    }

    /// Continues reading, and drops input from the meantime.
    pub(crate) fn resume(&mut self) {
        self.forget();
        self.gate.is_paused.store(false, Ordering::SeqCst);
    }
}

impl Drop for InputReader {
    /// Ends the thread, which would take keys from the next reader.
    fn drop(&mut self) {
        self.gate.is_over.store(true, Ordering::SeqCst);
        self.gate.wake_up();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let mut unhandled = UNHANDLED.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(event) = self.events.try_recv() {
            unhandled.push(event);
        }
    }
}
