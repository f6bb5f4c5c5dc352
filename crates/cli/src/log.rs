//! Logs: lines on stderr, at the level that was asked for.

use crate::env;
use std::io::IsTerminal;
use std::path::Path;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// The levels, by the names that `--log` takes.
pub(crate) const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// Logs at `level` from now on; at an unknown level nothing.
pub(crate) fn start(level: &str) {
    let ansi = std::io::stderr().is_terminal() && env::colour_welcome();
    begin(level, std::io::stderr, ansi);
}

/// The same into a file: the screen is somebody's.
pub(crate) fn start_in(level: &str, file: Option<&Path>) {
    use std::os::unix::fs::OpenOptionsExt;
    let opened = file.and_then(|file| {
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        options.open(file).ok()
    });
    match opened {
        Some(file) => begin(level, std::sync::Mutex::new(file), false),
        None => begin("off", std::io::sink, false),
    }
}

fn begin<W>(level: &str, writer: W, ansi: bool)
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let filter: LevelFilter = level.parse().unwrap_or(LevelFilter::OFF);
    if filter != LevelFilter::OFF {
        // What the MCP library warns of is what we answered to the client.
        let library = if filter <= LevelFilter::INFO {
            LevelFilter::ERROR
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
            .with_writer(writer)
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
