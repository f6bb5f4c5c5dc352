//! Logging: lines on stderr at the level the user chose.

use crate::env;
use crate::stderr;
use haft_store::sessions::Redactor;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Starts logging to stderr; an unknown level means no logging. Libraries may log what
/// they send and receive, so secrets are redacted.
pub(crate) fn start(level: &str, secrets: &[String]) {
    let ansi = io::stderr().is_terminal() && env::allows_colour();
    install(level, secrets, &LogTarget::Stderr, ansi);
}

/// Starts logging to a file, while the chat uses the screen. Without a writable file
/// nothing is logged.
pub(crate) fn start_in(level: &str, secrets: &[String], file: Option<&Path>) {
    let opened = file.and_then(|file| {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        haft::ops::private::file(&options, file).ok()
    });
    match opened {
        Some(file) => install(level, secrets, &LogTarget::File(Arc::new(file)), false),
        None => install("off", secrets, &LogTarget::Stderr, false),
    }
}

#[derive(Clone)]
enum LogTarget {
    Stderr,
    File(Arc<File>),
}

fn install(level: &str, secrets: &[String], target: &LogTarget, ansi: bool) {
    let filter: LevelFilter = level.parse().unwrap_or(LevelFilter::OFF);
    if filter != LevelFilter::OFF {
        // Below `debug` the MCP library adds nothing: its warnings repeat replies that
        // haft gave the client, and a server's errors are reported by the tool call.
        let library = if filter <= LevelFilter::INFO {
            LevelFilter::OFF
        } else {
            filter
        };
        let filter = EnvFilter::default()
            .add_directive(filter.into())
            .add_directive(
                format!("rmcp={library}")
                    .parse()
                    .unwrap_or_else(|_| filter.into()),
            );
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer({
                let known = env::read().secrets().into_iter();
                let secrets = known.chain(secrets.iter().cloned());
                let secrets = Arc::new(Redactor::new(secrets));
                let target = target.clone();
                move || RedactingWriter(Arc::clone(&secrets), target.clone())
            })
            .with_ansi(ansi)
            .without_time()
            .finish();
        // Fails only if a subscriber is already set, which is harmless.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
    // The runtime turns a panic in a tool into an error reply; without this hook a
    // backtrace would be printed into the output.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, "panic: {message}");
    }));
}

/// Redacts one more secret that was not known when logging started.
pub(crate) fn redact(secret: &str) {
    let mut added = ADDED_SECRETS
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    added.get_or_insert_default().add([secret.to_owned()]);
}

static ADDED_SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// Writes log entries without secrets; each call to `write` receives one complete entry.
/// Write errors are ignored: reporting them would write to stderr, which may be what is
/// gone.
struct RedactingWriter(Arc<Redactor>, LogTarget);

impl Write for RedactingWriter {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(entry);
        let added = ADDED_SECRETS.read().unwrap_or_else(PoisonError::into_inner);
        let text = match &*added {
            Some(added) => added.clean(&text).into_owned(),
            None => text.into_owned(),
        };
        let text = self.0.scrub(&text);
        let _ = match &self.1 {
            LogTarget::Stderr => write_to_stderr(&text),
            LogTarget::File(file) => (&**file).write_all(text.as_bytes()),
        };
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Number of entries dropped since the last one that was written.
static DROPPED: Mutex<u64> = Mutex::new(0);

/// Maximum wait for a slow reader of stderr.
const PATIENCE: Duration = Duration::from_millis(20);

/// Writes an entry to stderr, or drops it if nothing reads there: a log must never stop a
/// call.
fn write_to_stderr(text: &str) -> io::Result<()> {
    let mut dropped = DROPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = text.to_owned();
    let mut patience = PATIENCE;
    if *dropped > 0 {
        text = format!("[{dropped} log entries dropped: stderr was not read]\n{text}");
        // Only a reader that has caught up is worth a wait.
        patience = Duration::ZERO;
    }
    match stderr::write_all(text.as_bytes(), patience) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => *dropped += 1,
        written => {
            *dropped = 0;
            written?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts itself again, with stderr gone"
)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Environment variable that marks the test's child process, which runs without a
    /// usable stderr.
    const WITHOUT_STDERR: &str = "HAFT_TEST_WITHOUT_STDERR";

    /// Calls tools that panic, some immediately and some after waiting; each call must
    /// get an error reply.
    fn check_panicking_calls_get_replies() {
        let panicking = |name: &str, waits: bool| {
            let schema = serde_json::json!({ "type": "object" });
            let effect = haft::Effect::Pure;
            let tool = haft::FromSchema::new(name, "d", schema, effect, move |_, _| async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                panic!("{}", "broken".repeat(2))
            });
            Arc::new(tool.unwrap())
        };
        crate::signals::block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let builder = haft::Runtime::builder().dir(folder.path()).preset("none");
            let runtime = builder.build().unwrap();
            for (name, waits) in [("once", false), ("later", true)] {
                runtime.tools().add_any(panicking(name, waits)).unwrap();
            }
            for name in ["once", "later", "once"] {
                let reply = runtime.call(name, serde_json::json!({})).await;
                assert!(reply.is_error());
                assert!(reply.text().contains("brokenbroken"), "{}", reply.text());
            }
            Ok(())
        })
        .ok()
        .unwrap();
    }

    /// Environment variable that marks a child process whose stderr is not read.
    const UNREAD_STDERR: &str = "HAFT_TEST_UNREAD_STDERR";

    #[test]
    fn a_log_that_is_not_read_stops_nothing() {
        if std::env::var_os(UNREAD_STDERR).is_some() {
            install("trace", &[], &LogTarget::Stderr, false);
            for number in 0..2_000 {
                tracing::error!("{number} {}", "x".repeat(100));
            }
            return;
        }
        let (unread, stderr) = io::pipe().unwrap();
        // A log that waits would wait forever.
        let ended = Command::new("timeout")
            .arg("60")
            .arg(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "log::tests::a_log_that_is_not_read_stops_nothing",
                "--nocapture",
            ])
            .env(UNREAD_STDERR, "1")
            .stderr(stderr)
            .output()
            .unwrap();
        drop(unread);
        assert!(ended.status.success(), "{}", ended.status);
    }

    /// A failing log must not end the process, not even during a panic.
    #[test]
    fn a_panic_without_stderr_does_not_abort() {
        if std::env::var_os(WITHOUT_STDERR).is_some() {
            install("trace", &[], &LogTarget::Stderr, false);
            tracing::error!("cannot be written");
            let caught = std::panic::catch_unwind(|| panic!("cannot be written either"));
            assert!(caught.is_err());
            check_panicking_calls_get_replies();
            return;
        }
        let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
        let broken = || Stdio::from(io::pipe().unwrap().1);
        // The third closes stderr before the process starts.
        for (stderr, line) in [
            (full(), "exec \"$0\" \"$@\""),
            (broken(), "exec \"$0\" \"$@\""),
            (Stdio::null(), "exec \"$0\" \"$@\" 2>&-"),
        ] {
            let ended = Command::new("/bin/sh")
                .args(["-c", line])
                .arg(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "log::tests::a_panic_without_stderr_does_not_abort",
                ])
                .arg("--nocapture")
                .env(WITHOUT_STDERR, "1")
                .stderr(stderr)
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.success(), "{}: {stdout}", ended.status);
            assert!(stdout.contains("1 passed"), "{stdout}");
        }
    }
}
