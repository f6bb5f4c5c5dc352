//! A user at a terminal: types keys and reads the screen.

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Settings of a chat.
pub(crate) struct Seat {
    root: TempDir,
    script: Value,
    size: (u16, u16),
    environment: Vec<(&'static str, String)>,
    is_piped: bool,
    /// Program and folder of a chat with the real agent.
    real: Option<(PathBuf, PathBuf)>,
}

impl Seat {
    /// A chat with a script: prompts, and tools that need approval.
    pub(crate) fn new(script: Value) -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["work", "state"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self {
            root,
            script,
            size: (24, 80),
            environment: vec![("TERM", "xterm-256color".to_owned())],
            is_piped: false,
            real: None,
        }
    }

    /// The command itself, with the real agent, in this bed.
    pub(crate) fn real(bed: &haft_testing::bed::Bed) -> Self {
        let mut seat = Self::new(Value::Null);
        seat.real = Some((env!("CARGO_BIN_EXE_haft").into(), bed.work("")));
        let ceiling = bed.path("");
        seat.with("HOME", bed.home("").to_str().unwrap())
            .with("GIT_CEILING_DIRECTORIES", ceiling.to_str().unwrap())
    }

    /// Sets the size of the screen.
    pub(crate) fn size(mut self, rows: u16, columns: u16) -> Self {
        self.size = (rows, columns);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// Sends the chat's output to a pipe.
    pub(crate) fn piped(mut self) -> Self {
        self.is_piped = true;
        self
    }

    /// File in the work folder.
    pub(crate) fn file(self, below: &str, content: &str) -> Self {
        let path = self.root.path().join("work").join(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Path in the state folder.
    pub(crate) fn state(&self, below: &str) -> PathBuf {
        self.root.path().join("state").join(below)
    }

    /// Starts the chat.
    pub(crate) fn sit(mut self) -> Seated {
        // A new session with this controlling terminal.
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        match &self.real {
            Some((program, folder)) => {
                command.arg(program).current_dir(folder);
            }
            None => {
                let script = self.root.path().join("script.json");
                self.script["work"] = self.root.path().join("work").to_str().unwrap().into();
                self.script["state"] = self.root.path().join("state").to_str().unwrap().into();
                std::fs::write(&script, self.script.to_string()).unwrap();
                command
                    .arg(std::env::current_exe().unwrap())
                    .args(["--exact", "a_chat_starts_and_ends", "--nocapture"])
                    .env(crate::STAGE, &script);
            }
        }

        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::grantpt(&ours).unwrap();
        rustix::pty::unlockpt(&ours).unwrap();
        let name = rustix::pty::ptsname(&ours, Vec::new()).unwrap();
        let mut options = File::options();
        let options = options.read(true).write(true);
        let theirs = options.open(name.to_str().unwrap()).unwrap();
        let terminal = File::from(ours);
        resize(&terminal, self.size);
        command
            .stdin(theirs.try_clone().unwrap())
            .stderr(theirs.try_clone().unwrap());
        if self.is_piped {
            command.stdout(Stdio::piped());
        } else {
            command.stdout(theirs);
        }
        let mut child = command.spawn().unwrap();
        let (sender, output) = mpsc::channel();
        match child.stdout.take() {
            Some(pipe) => read(pipe, sender),
            None => read(terminal.try_clone().unwrap(), sender),
        }
        Seated {
            child,
            terminal,
            output,
            raw: Vec::new(),
            emulator: emulator(self.size),
            seat: self,
        }
    }
}

fn read(mut from: impl Read + Send + 'static, sender: mpsc::Sender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut some = [0; 65_536];
        // Reading from a closed terminal is an error.
        while let Ok(count) = from.read(&mut some) {
            if count == 0 || sender.send(some[..count].to_vec()).is_err() {
                break;
            }
        }
    });
}

fn resize(terminal: &File, (rows, columns): (u16, u16)) {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(terminal, size).unwrap();
}

fn emulator((rows, columns): (u16, u16)) -> vt100::Parser {
    vt100::Parser::new(
        rows.try_into().unwrap(),
        columns.try_into().unwrap(),
        10_000,
    )
}

/// A running chat and its terminal.
pub(crate) struct Seated {
    child: Child,
    terminal: File,
    output: mpsc::Receiver<Vec<u8>>,
    raw: Vec<u8>,
    emulator: vt100::Parser,
    pub(crate) seat: Seat,
}

impl Seated {
    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    /// Pastes text. A terminal takes it in parts while it prints the effect of earlier
    /// ones.
    pub(crate) fn paste(&mut self, text: &str) {
        let mut terminal = self.terminal.try_clone().unwrap();
        let text = format!("\x1b[200~{text}\x1b[201~");
        std::thread::spawn(move || terminal.write_all(text.as_bytes()).unwrap());
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw.extend(bytes);
        for byte in bytes {
            // A pipe has no terminal that adds carriage returns.
            if self.seat.is_piped && *byte == b'\n' {
                self.emulator.process(b"\r");
            }
            self.emulator.process(&[*byte]);
        }
    }

    /// Reads the output so far.
    fn look(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        match self
            .output
            .recv_timeout(left.min(Duration::from_millis(50)))
        {
            Ok(bytes) => {
                self.take(&bytes);
                true
            }
            Err(mpsc::RecvTimeoutError::Timeout) => true,
            Err(mpsc::RecvTimeoutError::Disconnected) => false,
        }
    }

    /// Waits until the screen satisfies a condition.
    pub(crate) fn until(&mut self, what: &str, expected: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !expected(&self.screen()) {
            let is_there = self.look(deadline);
            let screen = self.screen();
            assert!(
                (is_there && Instant::now() < deadline) || expected(&screen),
                "{what} did not come:\n{}",
                screen.join("\n")
            );
        }
    }

    /// Waits until a row of the screen contains a text.
    pub(crate) fn wait(&mut self, words: &str) {
        self.until(words, |rows| rows.iter().any(|row| row.contains(words)));
    }

    /// Waits until a text is gone from the screen.
    pub(crate) fn wait_gone(&mut self, words: &str) {
        let what = format!("the end of {words}");
        self.until(&what, |rows| !rows.iter().any(|row| row.contains(words)));
    }

    /// The rows of the screen, without empty ones at the end.
    pub(crate) fn screen(&self) -> Vec<String> {
        let screen = self.emulator.screen();
        let rows = screen.rows(0, screen.size().1.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        let last = rows.iter().rposition(|row| !row.is_empty());
        rows.into_iter()
            .take(last.map_or(0, |last| last + 1))
            .collect()
    }

    /// Cursor position: row and column.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.emulator.screen().cursor_position()
    }

    /// Colour of a text on the screen.
    pub(crate) fn colour(&self, words: &str) -> vt100::Color {
        let screen = self.emulator.screen();
        let rows: Vec<String> = screen.rows(0, screen.size().1.get()).collect();
        let (row, text) = rows
            .iter()
            .enumerate()
            .find(|(_, text)| text.contains(words))
            .expect(words);
        let column = text.split(words).next().unwrap().chars().count();
        let cell = screen.cell(row.try_into().unwrap(), column.try_into().unwrap());
        cell.unwrap().fgcolor()
    }

    /// Everything that was written.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.emulator
            .screen_mut()
            .set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        resize(&self.terminal, (rows, columns));
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Prompts that the agent received, one JSON value per line.
    pub(crate) fn received(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.seat.state("prompts.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Path in the state folder.
    pub(crate) fn state(&self, below: &str) -> PathBuf {
        self.seat.state(below)
    }

    /// File in the work folder.
    pub(crate) fn work(&self, below: &str) -> PathBuf {
        self.seat.root.path().join("work").join(below)
    }

    /// Whether the terminal modes are restored.
    pub(crate) fn is_given_back(&self) -> bool {
        use rustix::termios::{LocalModes, tcgetattr};
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the end and returns the exit code; the rest of the output is read too.
    pub(crate) fn ended(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            self.look(deadline);
            assert!(
                Instant::now() < deadline,
                "no end:\n{}",
                self.screen().join("\n")
            );
        };
        // Read the remaining output.
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
            self.take(&bytes);
        }
        status.code().unwrap_or(-1)
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
