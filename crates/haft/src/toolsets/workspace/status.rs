//! What is said of a process.

use super::reply;
use crate::commands;
use crate::prelude::*;
use haft_ops::executor::Exit;
use haft_ops::processes::{State, Status, Tail};
use haft_ops::text::{decode, size, sniff};
use serde_json::Value;
use std::path::Path;
use std::time::SystemTime;

/// The fields that all actions answer with.
pub(super) fn described(status: &Status, cx: &Context) -> Value {
    let mut described = json!({
        "process_id": status.id,
        "command": status.title,
        "working_dir": status.dir.to_string_lossy(),
        "running": status.state == State::Running,
        "started_at": time(status.started),
    });
    let (at, code, error, left) = match &status.state {
        State::Running => return described,
        State::Ended {
            status, at, left, ..
        } => (at, reply::exit_code(*status), why(*status), left.as_slice()),
        State::Failed { detail, at, .. } => (at, -1, Some(detail.clone()), &[][..]),
    };
    reply::add(&mut described, "ended_at", time(*at));
    reply::add(&mut described, "exit_code", code);
    if let Some(error) = error {
        reply::add(&mut described, "error", error);
    }
    let mut notes: Vec<String> = Vec::new();
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|one| one.name.as_str()).collect();
        notes.push(format!(
            "it left something running: {}; action=kill ends that",
            names.join(", ")
        ));
    }
    let touched = commands::touched(&status.touched, cx);
    notes.extend(touched.iter().map(|note| reply::plain(note).to_owned()));
    if !notes.is_empty() {
        reply::add(&mut described, "hint", notes.join("\n"));
    }
    described
}

/// Each of them, in a list.
pub(super) fn all(all: &[Status], cx: &Context) -> Value {
    all.iter().map(|status| described(status, cx)).collect()
}

/// `2026-11-15T04:36:07Z`.
fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Why it is no success that it ended.
fn why(status: Exit) -> Option<String> {
    let signal = match status {
        Exit::Code(0) => return None,
        Exit::Code(code) => return Some(format!("exit status {code}")),
        Exit::Unknown => return Some("nobody saw how it ended".to_owned()),
        Exit::Signal(signal) => signal,
    };
    let name = match signal {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        6 => "aborted",
        7 => "bus error",
        8 => "floating point exception",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        15 => "terminated",
        other => return Some(format!("signal: {other}")),
    };
    Some(format!("signal: {name}"))
}

/// The end of what it has said; how much there is and where, if that is not all.
pub(super) fn add_log(answer: &mut Value, log: &Tail, most: usize) {
    let streams = [
        Stream {
            name: "stdout",
            end: &log.output,
            bytes: log.output_bytes,
            lines: log.output_lines,
            file: &log.output_file,
        },
        Stream {
            name: "stderr",
            end: &log.error,
            bytes: log.error_bytes,
            lines: log.error_lines,
            file: &log.error_file,
        },
    ];
    for stream in &streams {
        reply::add(answer, stream.name, stream.text());
    }
    reply::add(answer, "tail", most);
    let is_cut = |stream: &&Stream<'_>| stream.bytes > most as u64;
    if streams.iter().any(|stream| is_cut(&stream)) {
        reply::add(answer, "truncated", true);
    }
    for Stream {
        name, bytes, lines, ..
    } in streams.iter().filter(is_cut)
    {
        reply::add_size(answer, name, *bytes, *lines);
    }
    for stream in &streams {
        if is_cut(&stream) || stream.is_binary() {
            let name = format!("{}_path", stream.name);
            reply::add(answer, &name, stream.file.to_string_lossy());
        }
    }
}

/// One stream of a process, as far as its log gives it.
struct Stream<'a> {
    name: &'static str,
    end: &'a [u8],
    bytes: u64,
    lines: u64,
    file: &'a Path,
}

impl Stream<'_> {
    fn is_binary(&self) -> bool {
        sniff::is_binary(self.end)
    }

    fn text(&self) -> String {
        if self.is_binary() {
            let (size, file) = (size::size(self.bytes), self.file.display());
            return format!("[binary output, {size}, not shown; saved to: {file}]");
        }
        text(self.end, self.bytes)
    }
}

fn text(bytes: &[u8], total: u64) -> String {
    // What was cut off may have been the beginning of a character.
    let is_cut = total > bytes.len() as u64;
    let broken = bytes
        .iter()
        .take(3)
        .take_while(|byte| is_cut && **byte & 0xc0 == 0x80)
        .count();
    // One that has not come whole will be there the next time.
    let end = bytes.len() - decode::unfinished(bytes);
    decode::lossy(bytes.get(broken..end).unwrap_or_default()).into_owned()
}
