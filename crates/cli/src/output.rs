//! The only module that writes to the terminal: results to stdout, everything else to
//! stderr.

use crate::env;
use crate::exit::{Exit, Failure};
use crate::stderr;
use haft::ops::text::brief::brief;
use haft::ops::text::decode::visible;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether stdout is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Number of columns, if stdout is a terminal.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    // Terminals whose size was never set report 0.
    let columns = usize::from(size.ws_col);
    Some(if columns == 0 { 80 } else { columns })
}

/// Writes a result and ends its last line. On a terminal, control characters are made
/// visible.
pub(crate) fn text(text: &str) -> Result<(), Failure> {
    let shown = if is_terminal() {
        visible(text)
    } else {
        text.to_owned()
    };
    raw(&with_newline(shown))
}

/// Writes a part of a result without adding a newline. On a terminal, control characters
/// are made visible.
pub(crate) fn partial_text(text: &str) -> Result<(), Failure> {
    match is_terminal() {
        true => raw(&visible(text)),
        false => raw(text),
    }
}

/// Copies a reader to stdout. On a terminal, control characters are made visible.
pub(crate) fn bytes(mut from: impl io::Read) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("cannot write to stdout: {error}"));
    if !is_terminal() {
        let mut stdout = io::stdout().lock();
        return match io::copy(&mut from, &mut stdout).and_then(|_| stdout.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(failed(error)),
            _ => Ok(()),
        };
    }
    let mut reader = io::BufReader::with_capacity(1 << 16, from);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut piece = io::Read::take(&mut reader, 1 << 16);
        if io::BufRead::read_until(&mut piece, b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        raw(&visible(&String::from_utf8_lossy(&line)))?;
    }
}

/// Writes lines of JSON.
pub(crate) fn json_lines(lines: &str) -> Result<(), Failure> {
    match is_terminal() {
        true => raw(&lines
            .lines()
            .map(|line| escape_control_characters(line) + "\n")
            .collect::<String>()),
        false => raw(lines),
    }
}

/// Writes a result that is one line of JSON.
pub(crate) fn json(value: &serde_json::Value) -> Result<(), Failure> {
    let line = value.to_string();
    let line = if is_terminal() {
        escape_control_characters(&line)
    } else {
        line
    };
    raw(&with_newline(line))
}

/// Writes haft's own text, which may contain colours.
pub(crate) fn raw(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Ok(()),
        // A reader that stops early, as in `haft tools | head -1`, is not a failure.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
    }
}

/// Whether the chat draws on the screen, which other output would damage.
static IS_SCREEN_IN_USE: AtomicBool = AtomicBool::new(false);

/// Sends notes to the log while the chat draws on the screen.
pub(crate) fn use_screen(is_in_use: bool) {
    IS_SCREEN_IN_USE.store(is_in_use, Ordering::SeqCst);
}

/// Writes a line to stderr. A server drops it if nothing reads stderr.
pub(crate) fn note(text: &str) {
    if IS_SCREEN_IN_USE.load(Ordering::SeqCst) {
        tracing::warn!("{}", visible(text));
        return;
    }
    let line = visible(text) + "\n";
    // Nothing can be done if stderr is gone.
    if !IS_SERVING.load(Ordering::Relaxed) {
        let _ = io::stderr().lock().write_all(line.as_bytes());
        return;
    }
    // After one line was dropped, the next ones do not wait.
    let patience = match IS_UNREAD.load(Ordering::Relaxed) {
        true => Duration::ZERO,
        false => Duration::from_secs(1),
    };
    let written = stderr::write_all(line.as_bytes(), patience);
    let is_unread = written.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    IS_UNREAD.store(is_unread, Ordering::Relaxed);
}

/// Whether this process serves clients, which may not read its stderr.
static IS_SERVING: AtomicBool = AtomicBool::new(false);

/// Whether the last line for stderr was dropped.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);

/// Makes later notes give up if nothing reads stderr: a client waits for answers.
pub(crate) fn serve() {
    IS_SERVING.store(true, Ordering::Relaxed);
}

/// Maximum number of warnings that are printed, and of characters in each. A project's file
/// can cause any number of them.
const MAX_WARNINGS: usize = 50;
const MAX_WARNING: usize = 2_000;

/// Writes the first of these warnings to stderr, and the number of others.
pub(crate) fn warnings(warnings: &[String]) {
    for warning in warnings.iter().take(MAX_WARNINGS) {
        note(&brief(warning, MAX_WARNING));
    }
    let more = warnings.len().saturating_sub(MAX_WARNINGS);
    if more > 0 {
        note(&format!("and {more} more warnings"));
    }
}

/// Writes a prompt to stderr; the user types the answer behind it.
pub(crate) fn prompt(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{}", visible(text));
    let _ = stderr.flush();
}

/// Whether the user can see a prompt and answer it.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether a chat can use the keyboard and the screen.
pub(crate) fn can_chat() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Prints an error and its hints.
pub(crate) fn failure(failure: &Failure) {
    note(&failure.message);
    for hint in &failure.hints {
        note(&format!("hint: {hint}"));
    }
}

/// Prints what the argument parser returned: help, or a usage error.
pub(crate) fn usage(error: &clap::Error) -> Exit {
    if error.use_stderr() {
        // Without the parser's colours: it repeats what was typed, which could contain
        // escape sequences.
        note(error.render().to_string().trim_end());
        Exit::Usage
    } else {
        match error.print().and_then(|()| io::stdout().flush()) {
            Err(failed) if failed.kind() != ErrorKind::BrokenPipe => {
                note(&format!("error: cannot write to stdout: {failed}"));
                Exit::Failed
            }
            _ => Exit::Done,
        }
    }
}

/// Colours for haft's own text, used only on a terminal that wants them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn for_stdout() -> Self {
        Self {
            on: is_terminal() && env::allows_colour(),
        }
    }

    /// Paints nothing.
    pub(crate) fn never() -> Self {
        Self { on: false }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

fn with_newline(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Escapes characters that a terminal would act on; the JSON value stays the same.
fn escape_control_characters(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        let mut buffer = [0; 4];
        let character: &str = c.encode_utf8(&mut buffer);
        if visible(character) == character {
            out.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape_control_characters;

    #[test]
    fn json_on_a_terminal_keeps_its_value() {
        let value = serde_json::json!({ "text": "a\u{1b}[31m\u{9b}1m\u{202e}é" });
        let shown = escape_control_characters(&value.to_string());
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }
}
