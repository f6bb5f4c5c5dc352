//! `file_info`: metadata and line counts of files, as a plugin for haft.
//!
//! A plugin reads one JSON message per line from stdin and answers each with one
//! line on stdout. Everything else goes to stderr.

use serde_json::{Map, Value, json};
use std::fs::{self, Metadata};
use std::io::{self, BufRead, Write};
use std::path::Path;

const NAME: &str = "file_info";
const DEFAULT_ENTRIES: u64 = 50;
const MOST_ENTRIES: u64 = 500;
/// Maximum size of a file whose lines are counted, so that the model does not wait long.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

fn definition() -> Value {
    json!({
        "name": NAME,
        "description": "Show the type, size, age and line count of a file, or of each entry of a directory.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": { "type": "string", "description": "File or directory" },
                "max_entries": {
                    "type": "integer",
                    "description": "Entries of a directory to show, 1 to 500 (default 50)"
                }
            },
            "required": ["path"]
        }
    })
}

/// The tool itself: returns its text, or an error message for the model.
fn file_info(params: &Map<String, Value>) -> Result<String, String> {
    let path = match params.get("path") {
        Some(Value::String(path)) if !path.is_empty() => Path::new(path),
        _ => return Err("path must be a non-empty string".into()),
    };
    let most = match params.get("max_entries") {
        None => DEFAULT_ENTRIES,
        Some(given) => match given.as_f64() {
            // A cast from a float saturates at the ends of the range.
            Some(number) => (number as u64).clamp(1, MOST_ENTRIES),
            None => return Err("max_entries must be an integer".into()),
        },
    };
    let fault = |error: io::Error| format!("{}: {error}", path.display());
    let metadata = fs::metadata(path).map_err(fault)?;
    if metadata.is_dir() {
        directory(path, most as usize).map_err(fault)
    } else {
        Ok(format!("{}: {}", path.display(), facts(path, &metadata)))
    }
}

fn directory(path: &Path, most: usize) -> io::Result<String> {
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    let mut text = format!("{}: directory, entries: {}", path.display(), entries.len());
    for entry in entries.iter().take(most) {
        let name = entry.file_name();
        // Metadata of the link itself, because its target may be missing or far away.
        let about = match entry.metadata() {
            Ok(metadata) => facts(&entry.path(), &metadata),
            Err(error) => error.to_string(),
        };
        text += &format!("\n  {}: {about}", name.to_string_lossy());
    }
    if let Some(more @ 1..) = entries.len().checked_sub(most) {
        text += &format!("\n  [{more} more: raise max_entries]");
    }
    Ok(text)
}

fn facts(path: &Path, metadata: &Metadata) -> String {
    let mut facts = if metadata.is_dir() {
        "directory".into()
    } else if metadata.is_symlink() {
        "link".into()
    } else if metadata.is_file() {
        format!(
            "file, {} B, {}",
            metadata.len(),
            lines(path, metadata.len())
        )
    } else {
        // Not read: a pipe or a device could block forever.
        "special file".into()
    };
    if let Some(age) = metadata
        .modified()
        .ok()
        .and_then(|time| time.elapsed().ok())
    {
        facts += &match age.as_secs() {
            seconds @ 0..60 => format!(", changed {seconds}s ago"),
            seconds @ 60..3600 => format!(", changed {}min ago", seconds / 60),
            seconds @ 3600..86_400 => format!(", changed {}h ago", seconds / 3600),
            seconds => format!(", changed {}d ago", seconds / 86_400),
        };
    }
    facts
}

fn lines(path: &Path, size: u64) -> String {
    if size > MOST_BYTES {
        return "too large to count lines".into();
    }
    match fs::read(path) {
        Ok(bytes) if bytes.contains(&0) => "binary".into(),
        Ok(bytes) => {
            // The last line need not end with a line feed.
            let open = bytes.last().is_some_and(|&byte| byte != b'\n');
            let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
            format!("lines: {}", ends + usize::from(open))
        }
        Err(error) => error.to_string(),
    }
}

fn reply(text: impl Into<String>, error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }], "error": error })
}

fn call(message: &Map<String, Value>) -> Value {
    if let Some(name) = message.get("name").filter(|name| *name != NAME) {
        return reply(format!("unknown tool: {name}"), true);
    }
    let empty = Map::new();
    let params = match message.get("params") {
        None => &empty,
        Some(Value::Object(params)) => params,
        Some(_) => return reply("params must be an object", true),
    };
    match file_info(params) {
        Ok(text) => reply(text, false),
        Err(problem) => reply(problem, true),
    }
}

fn answer(line: &str) -> Value {
    let message = match serde_json::from_str(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return reply("a message must be a JSON object", true),
        Err(problem) => return reply(format!("malformed JSON: {problem}"), true),
    };
    let mut result = match message.get("type").and_then(Value::as_str) {
        Some("describe") => return definition(),
        Some("call") => call(&message),
        other => reply(
            format!("unknown message type: {}", other.unwrap_or("none")),
            true,
        ),
    };
    if let Some(call_id) = message.get("call_id") {
        result["call_id"] = call_id.clone();
    }
    result
}

fn main() -> io::Result<()> {
    // Reads bytes, because a line that is not UTF-8 must not end the plugin.
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim(); // also removes the CR of a CRLF
        if !line.is_empty() {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{}", answer(line))?;
            stdout.flush()?;
        }
    }
    Ok(())
}
