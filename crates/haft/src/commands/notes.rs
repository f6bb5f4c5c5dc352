//! What there is to say of a command beside its output.

use crate::{Context, Reply};
use haft_ops::exec::{Confined, Done, Touched};
use haft_ops::executor::sandbox::{Enforcement, Network};
use haft_ops::executor::{Ended, Exit};
use haft_ops::scope::{Reading, Writing};
use haft_ops::text::decode::lossy;
use serde_json::{Value, json};

/// What the end of a line says when the kernel refused something.
const REFUSALS: [&str; 8] = [
    "permission denied",
    "read-only file system",
    "operation not permitted",
    "network is unreachable",
    "temporary failure in name resolution",
    "name or service not known",
    "could not resolve host",
    "connect to server",
];

/// The same as a program of Python writes it.
const NUMBERS: [&str; 4] = ["[errno 1]", "[errno 13]", "[errno 30]", "[errno 101]"];

/// Notes in brackets, each a line: what was left running, what was touched, and
/// whether the sandbox is the likely reason for what went wrong.
pub(crate) fn notes(done: &Done, cx: &Context) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(question) = &done.finished.waiting_for_input {
        notes.push(format!(
            "[the command seems to wait for input: '{question}']"
        ));
        notes.push("[nobody can answer it, so it was stopped; give the answer as an option, by a pipe or in a file]".to_owned());
    }
    if !done.finished.survivors.is_empty() {
        let names: Vec<String> = done
            .finished
            .survivors
            .iter()
            .take(10)
            .map(|left| format!("{} (pid {})", left.name, left.pid))
            .collect();
        let more = done.finished.survivors.len().saturating_sub(names.len());
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        notes.push(format!(
            "[still running in the background: {}{more}; ended with this session]",
            names.join(", ")
        ));
    }
    notes.extend(touched(&done.touched, cx));
    if let (Confined::By(enforcement), true) = (&done.confined, looks_refused(done)) {
        notes.push(format!(
            "[this may have been refused by the sandbox ({}): {}]",
            level(enforcement),
            bounds(cx)
        ));
    }
    notes
}

/// What commands may reach, in one line.
fn bounds(cx: &Context) -> String {
    let request = cx.bounds();
    // The rules of commands: file tools may have stricter ones.
    let rules = request.map_or_else(|| cx.scope().rules(), |request| request.rules);
    let writing = match rules.writing {
        Writing::Nothing => "only $TMPDIR can be written",
        Writing::Roots | Writing::Anywhere => "only the work folder and $TMPDIR can be written",
    };
    let reading = match rules.reading {
        Reading::RootsAndSystem | Reading::Roots => {
            "only those and the system's folders can be read"
        }
        Reading::Anywhere | Reading::NotSecret => "secret places cannot be read",
    };
    let network = match request.map(|request| request.network) {
        Some(Network::On) => "",
        _ => ", and there is no network (`--network on` gives it)",
    };
    format!("{writing}, {reading}{network}")
}

/// What there is to say of places that were touched, each a line in brackets.
pub(crate) fn touched(touched: &[Touched], cx: &Context) -> Vec<String> {
    touched.iter().map(|place| said_of(place, cx)).collect()
}

fn said_of(touched: &Touched, cx: &Context) -> String {
    match touched {
        Touched::MovedOut { path, to } => format!(
            "[protected: {} must not be written; what the command made there was moved to {}]",
            cx.shown(path),
            to.display()
        ),
        Touched::Appeared { path } => {
            let name = path.file_name().unwrap_or_default();
            let why = if name == "haft.yaml" {
                "it is not trusted"
            } else if name == ".git" {
                "a repository: git obeys its hooks and config"
            } else {
                "it lies in a protected place"
            };
            format!("[new: {} ({why})]", cx.shown(path))
        }
        Touched::Changed { path } => {
            format!("[protected: {} was changed by the command]", cx.shown(path))
        }
    }
}

/// Whether the last lines sound as if the kernel had said no.
fn looks_refused(done: &Done) -> bool {
    let output = &done.finished.output;
    let error = &done.finished.error;
    [&output.head, &output.tail, &error.head, &error.tail]
        .into_iter()
        .any(|bytes| {
            let from = bytes.len().saturating_sub(4 << 10);
            let text = lossy(bytes.get(from..).unwrap_or_default()).to_lowercase();
            text.lines().rev().take(40).any(|line| {
                let line = line.trim_end_matches([' ', '.', '\'', '"', ')']);
                REFUSALS
                    .iter()
                    .any(|words| line.ends_with(words) || line.contains(&format!("{words}:")))
                    || NUMBERS.iter().any(|number| line.contains(number))
            })
        })
}

pub(crate) fn level(enforcement: &Enforcement) -> &'static str {
    match enforcement {
        Enforcement::Full { .. } => "full",
        Enforcement::Partial { .. } => "partial",
        Enforcement::None { .. } => "none",
    }
}

/// What the host is told of a command.
pub(crate) fn details(mut reply: Reply, done: &Done) -> Reply {
    let finished = &done.finished;
    let (code, signal) = match finished.status {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (Some(128 + signal), Some(signal)),
        Exit::Unknown => (None, None),
    };
    reply = reply
        .detail("exit_code", code)
        .detail(
            "duration_ms",
            u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        )
        .detail(
            "sandbox",
            match &done.confined {
                Confined::Off => "off",
                Confined::By(enforcement) => level(enforcement),
            },
        );
    if let Some(signal) = signal {
        reply = reply.detail("signal", signal);
    }
    let ended = match finished.ended {
        Ended::Itself => None,
        Ended::TimedOut => Some("timed_out"),
        Ended::Cancelled => Some("cancelled"),
        Ended::Waiting => Some("waiting_for_input"),
    };
    if let Some(ended) = ended {
        reply = reply.detail("ended", ended);
    }
    if !finished.survivors.is_empty() {
        let left: Vec<Value> = finished
            .survivors
            .iter()
            .map(|left| json!({ "pid": left.pid, "name": left.name }))
            .collect();
        reply = reply.detail("survivors", left);
    }
    reply
}
