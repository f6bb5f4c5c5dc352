//! Prints a session as text.

use super::failure;
use super::transcript::{self, Part, moment};
use crate::exit::Failure;
use crate::output;
use haft::ops::effects::Store;
use haft::ops::text::decode::visible;
use haft_store::sessions::Sessions;
use std::ops::ControlFlow;

/// Maximum lines shown of a result.
const MAX_LINES: usize = 20;

/// Maximum characters shown of arguments.
const MAX_ARGUMENT_CHARS: usize = 400;

/// Prints a session.
pub(super) fn show(sessions: &Sessions, store: Option<&Store>, id: &str) -> Result<(), Failure> {
    let mut printed = Ok(());
    transcript::walk(sessions, store, id, |part| {
        printed = output::raw(&shown(&part));
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
    .map_err(failure)?;
    printed
}

fn shown(part: &Part) -> String {
    match part {
        Part::Session(info) => format!(
            "session {}\n{}\n{}\n",
            visible(&info.id),
            on_a_line(&transcript::about(info)),
            on_a_line(info.title.as_deref().unwrap_or_default())
        ),
        Part::Words {
            who,
            message,
            time,
            text,
        } => {
            let number = message
                .map(|id| format!(" · message {id}"))
                .unwrap_or_default();
            let text = visible(text);
            let end = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            format!("\n── {who}{number} · {}\n{text}{end}", moment(*time))
        }
        Part::Call { tool, arguments } => {
            let arguments = on_a_line(arguments);
            let cut: String = arguments.chars().take(MAX_ARGUMENT_CHARS).collect();
            let more = if cut.len() < arguments.len() {
                "…"
            } else {
                ""
            };
            format!("  → {} {cut}{more}\n", on_a_line(tool))
        }
        Part::Result {
            tool,
            text,
            is_error,
        } => {
            let mark = if *is_error { "✗" } else { "←" };
            let text = visible(text);
            let lines: Vec<&str> = text.lines().collect();
            let mut out = format!("  {mark} {}\n", on_a_line(tool));
            for line in lines.iter().take(MAX_LINES) {
                out.push_str(&format!("    {line}\n"));
            }
            if lines.len() > MAX_LINES {
                out.push_str(&format!("    … {} more lines\n", lines.len() - MAX_LINES));
            }
            out
        }
        Part::Changes { summary, lines } => {
            let mut out = format!("  Δ {}\n", on_a_line(summary));
            for line in lines.iter().take(MAX_LINES) {
                out.push_str(&format!("    {}\n", on_a_line(line)));
            }
            if lines.len() > MAX_LINES {
                out.push_str(&format!("    … {} more\n", lines.len() - MAX_LINES));
            }
            out
        }
        Part::Unknown { call_id, note } => format!("  ? {}: {note}\n", on_a_line(call_id)),
    }
}

fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}
