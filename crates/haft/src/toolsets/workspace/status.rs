//! The description of a process in replies.

use super::reply;
use crate::commands;
use crate::prelude::*;
use haft_ops::executor::Exit;
use haft_ops::processes::{State, Status};
use serde_json::Value;
use std::time::SystemTime;

/// Returns the fields that all actions include.
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
    let findings = commands::findings(&status.findings, &cx.session);
    notes.extend(findings.iter().map(|note| reply::plain(note).to_owned()));
    if !notes.is_empty() {
        reply::add_hint(&mut described, &notes.join("\n"));
    }
    described
}

/// Returns a list of all processes.
pub(super) fn all(all: &[Status], cx: &Context) -> Value {
    all.iter().map(|status| described(status, cx)).collect()
}

/// Formats a time as `2026-11-15T04:36:07Z`.
fn time(time: SystemTime) -> String {
    haft_ops::text::moment::to_seconds(time)
}

/// Returns why an exit is not a success.
fn why(status: Exit) -> Option<String> {
    let signal = match status {
        Exit::Code(0) => return None,
        Exit::Code(code) => return Some(format!("exit status {code}")),
        Exit::Unknown => return Some("its exit status is unknown".to_owned()),
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
