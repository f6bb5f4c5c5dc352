//! The end of a process's output.

use super::reply;
use haft_ops::processes::Tail;
use haft_ops::text::{decode, size, sniff};
use serde_json::Value;
use std::path::Path;

/// Adds the end of the output and, if it is truncated, its size and path.
pub(super) fn add(answer: &mut Value, log: &Tail, most: usize) {
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

/// One stream of a process, as far as its log has it.
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
    // The truncated text may start within a character.
    let is_cut = total > bytes.len() as u64;
    let broken = bytes
        .iter()
        .take(3)
        .take_while(|byte| is_cut && **byte & 0xc0 == 0x80)
        .count();
    // An incomplete character at the end is shown next time.
    let end = bytes.len() - decode::unfinished(bytes);
    decode::lossy(bytes.get(broken..end).unwrap_or_default()).into_owned()
}
