//! Logs: lines on stderr, at the level that was asked for.

use crate::env;
use haft_store::sessions::Redactor;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// The levels, by the names that `--log` takes.
pub(crate) const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// Logs at `level` from now on; at an unknown level nothing. What libraries say may be
/// what was sent and came: the secrets among it are left out.
pub(crate) fn start(level: &str, secrets: &[String]) {
    let ansi = io::stderr().is_terminal() && env::colour_welcome();
    begin(level, secrets, &Place::Stderr, ansi);
}

/// The same into a file: the screen is somebody's.
pub(crate) fn start_in(level: &str, secrets: &[String], file: Option<&Path>) {
    let opened = file.and_then(|file| {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        haft::ops::private::file(&options, file).ok()
    });
    match opened {
        Some(file) => begin(level, secrets, &Place::File(Arc::new(file)), false),
        None => begin("off", secrets, &Place::Stderr, false),
    }
}

/// Where entries go.
#[derive(Clone)]
enum Place {
    Stderr,
    File(Arc<File>),
}

fn begin(level: &str, secrets: &[String], place: &Place, ansi: bool) {
    let filter: LevelFilter = level.parse().unwrap_or(LevelFilter::OFF);
    if filter != LevelFilter::OFF {
        // What the MCP library warns of is what we answered to the client, and what it
        // calls an error of a server is told as one of that server.
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
                let known = env::secrets().into_iter();
                let secrets = known.chain(secrets.iter().cloned());
                let secrets = Arc::new(Redactor::new(secrets));
                let place = place.clone();
                move || Quiet(Arc::clone(&secrets), place.clone())
            })
            .with_ansi(ansi)
            .without_time()
            .finish();
        // Set once; a second start would be a mistake that does no harm.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
    // A tool that panics is answered for by the runtime. The person wants the
    // reply, not a backtrace in the middle of it.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(place, "panic: {message}");
    }));
}

/// Keeps one more text out of the log, that was not known when it began.
pub(crate) fn keep_out(secret: &str) {
    let mut late = LATE.write().unwrap_or_else(PoisonError::into_inner);
    late.get_or_insert_default().add([secret.to_owned()]);
}

static LATE: RwLock<Option<Redactor>> = RwLock::new(None);

/// A place without them. An entry of the log comes as a whole. One that cannot be written
/// is dropped without a word: reporting the error would write to stderr, which may be what
/// is gone.
struct Quiet(Arc<Redactor>, Place);

impl Write for Quiet {
    fn write(&mut self, entry: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(entry);
        let late = LATE.read().unwrap_or_else(PoisonError::into_inner);
        let text = match &*late {
            Some(late) => late.clean(&text).into_owned(),
            None => text.into_owned(),
        };
        let text = self.0.scrub(&text);
        let _ = match &self.1 {
            Place::Stderr => io::stderr().write_all(text.as_bytes()),
            Place::File(file) => (&**file).write_all(text.as_bytes()),
        };
        Ok(entry.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test starts itself again, with stderr gone"
)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// Set for the process that has no stderr.
    const WITHOUT: &str = "HAFT_TEST_WITHOUT_STDERR";

    /// Tools that panic at once and after they have waited, called as every tool is.
    fn a_call_that_panics_is_answered() {
        let falls = |name: &str, waits: bool| {
            let schema = serde_json::json!({ "type": "object" });
            let effect = haft::Effect::Pure;
            let tool = haft::FromSchema::new(name, "d", schema, effect, move |_, _| async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                panic!("{}", "it fell".repeat(2))
            });
            Arc::new(tool.unwrap())
        };
        crate::signals::block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let builder = haft::Runtime::builder().dir(folder.path()).preset("none");
            let runtime = builder.build().unwrap();
            for (name, waits) in [("once", false), ("later", true)] {
                runtime.tools().add_any(falls(name, waits)).unwrap();
            }
            for name in ["once", "later", "once"] {
                let reply = runtime.call(name, serde_json::json!({})).await;
                assert!(reply.is_error());
                assert!(reply.text().contains("it fellit fell"), "{}", reply.text());
            }
            Ok(())
        })
        .ok()
        .unwrap();
    }

    /// A log that cannot be written ends nothing, not even in a panic.
    #[test]
    fn a_panic_without_stderr_is_survived() {
        if std::env::var_os(WITHOUT).is_some() {
            begin("trace", &[], &Place::Stderr, false);
            tracing::error!("nobody hears this");
            let caught = std::panic::catch_unwind(|| panic!("nor this"));
            assert!(caught.is_err());
            a_call_that_panics_is_answered();
            return;
        }
        let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
        let broken = || Stdio::from(io::pipe().unwrap().1);
        // The third closes stderr itself, before the process begins.
        for (stderr, line) in [
            (full(), "exec \"$0\" \"$@\""),
            (broken(), "exec \"$0\" \"$@\""),
            (Stdio::null(), "exec \"$0\" \"$@\" 2>&-"),
        ] {
            let ended = Command::new("/bin/sh")
                .args(["-c", line])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "log::tests::a_panic_without_stderr_is_survived"])
                .arg("--nocapture")
                .env(WITHOUT, "1")
                .stderr(stderr)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ended.stdout).into_owned();
            assert!(ended.status.success(), "{}: {said}", ended.status);
            assert!(said.contains("1 passed"), "{said}");
        }
    }
}
