//! `haft plugin log`: shows plugins' stderr, which is not shown on the terminal while
//! they run.

use crate::args::Shared;
use crate::args::plugin::Log;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::{output, text};
use haft::ops::text::decode::visible;
use haft::ops::text::spelling::hint;
use haft::truncate::format_size;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Maximum bytes read from the end of a log.
const MAX_BYTES: u64 = 4 << 20;

/// Lists the logs, or shows the end of one.
pub(crate) fn run(shared: &Shared, args: &Log) -> Result<Exit, Failure> {
    let folder = folder()
        .ok_or_else(|| Failure::failed("no state folder").hint("set HOME or XDG_STATE_HOME"))?;
    match &args.name {
        None => list(shared, &folder),
        Some(name) => show(shared, &folder, name, args.lines),
    }
}

/// Returns the folder of all logs.
pub(super) fn folder() -> Option<PathBuf> {
    env::read()
        .folders()
        .state
        .map(|state| state.join("plugins"))
}

/// Returns the name of a log, with only characters that any file name may contain.
pub(super) fn label(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect()
}

/// An existing log.
struct Entry {
    name: String,
    size: u64,
    written: Option<SystemTime>,
}

/// Returns all logs, sorted by name.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own files, which no tool may read"
)]
fn entries(folder: &Path) -> Result<Vec<Entry>, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::failed(format!("cannot read {}: {error}", folder.display()))
    };
    let listed = match std::fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let mut entries = Vec::new();
    for entry in listed {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        let is_log = path.extension().is_some_and(|extension| extension == "log");
        // A log that was removed meanwhile is skipped.
        let (true, Some(name), Ok(about)) = (is_log, path.file_stem(), entry.metadata()) else {
            continue;
        };
        if about.is_file() {
            entries.push(Entry {
                name: name.to_string_lossy().into_owned(),
                size: about.len(),
                written: about.modified().ok(),
            });
        }
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn list(shared: &Shared, folder: &Path) -> Result<Exit, Failure> {
    let entries = entries(folder)?;
    if entries.is_empty() {
        if !shared.quiet {
            output::note(&format!("no plugin logs in {}", folder.display()));
        }
        return Ok(Exit::Done);
    }
    let now = SystemTime::now();
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            let age = entry
                .written
                .map(|written| now.duration_since(written).unwrap_or_default());
            vec![
                visible(&entry.name),
                format_size(entry.size),
                age.map(ago).unwrap_or_default(),
            ]
        })
        .collect();
    output::text(&text::table(&rows, None))?;
    Ok(Exit::Done)
}

/// Formats an age in the largest unit that fits.
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

fn show(shared: &Shared, folder: &Path, name: &str, lines: usize) -> Result<Exit, Failure> {
    let path = folder.join(format!("{}.log", label(name)));
    let log = match tail(&path) {
        Ok(log) => log,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(folder, name)),
        Err(error) => {
            return Err(Failure::failed(format!(
                "cannot read {}: {error}",
                path.display()
            )));
        }
    };
    let log = String::from_utf8_lossy(&log);
    let all: Vec<&str> = log.lines().collect();
    let before = all.len().saturating_sub(lines);
    let shown = all.get(before..).unwrap_or_default().join("\n");
    // Escaped even if stdout is not a terminal: the log is untrusted text, and the output
    // may be shown on a terminal later.
    output::text(&visible(&shown))?;
    if before > 0 && !shared.quiet {
        output::note(&format!(
            "{before} earlier lines are in {} (--lines N shows more)",
            path.display()
        ));
    }
    Ok(Exit::Done)
}

/// Returns the end of a log, usually all of it.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own files, which no tool may read"
)]
fn tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    let mut log = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut log)?;
    Ok(log)
}

/// Error for an unknown log, with the closest name.
fn unknown(folder: &Path, name: &str) -> Failure {
    let names: Vec<String> = entries(folder)
        .unwrap_or_default()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    let hint = hint(&label(name), &names);
    let failure = Failure::failed(format!("no log of \"{name}\"{hint}"));
    if names.is_empty() {
        failure.hint(format!("{} has no logs", folder.display()))
    } else {
        failure.hint(format!("existing logs: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_file_name() {
        assert_eq!(label("../a b/tool.py"), "___a_b_tool_py");
        assert_eq!(label("my-tool_2"), "my-tool_2");
    }

    #[test]
    fn an_age_has_one_unit() {
        let ago = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(ago(5), "just now");
        assert_eq!(ago(60), "1 minute ago");
        assert_eq!(ago(7_300), "2 hours ago");
        assert_eq!(ago(90_000), "1 day ago");
    }
}
