//! A session as text for a person.

use super::pieces::{self, Piece, moment};
use super::told;
use crate::exit::Failure;
use crate::output;
use haft::ops::text::decode::visible;
use haft_store::sessions::Sessions;
use std::ops::ControlFlow;

/// How many lines of a result are shown.
const LINES: usize = 20;

/// How many characters of arguments are shown.
const ARGUMENTS: usize = 400;

/// Prints a session.
pub(super) fn show(sessions: &Sessions, id: &str) -> Result<(), Failure> {
    let mut printed = Ok(());
    pieces::walk(sessions, id, |piece| {
        printed = output::raw(&shown(&piece));
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })
    .map_err(told)?;
    printed
}

fn shown(piece: &Piece) -> String {
    match piece {
        Piece::Session(info) => format!(
            "session {}\n{}\n{}\n",
            visible(&info.id),
            on_a_line(&pieces::about(info)),
            on_a_line(info.title.as_deref().unwrap_or_default())
        ),
        Piece::Words {
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
        Piece::Call { tool, arguments } => {
            let arguments = on_a_line(arguments);
            let cut: String = arguments.chars().take(ARGUMENTS).collect();
            let more = if cut.len() < arguments.len() {
                "…"
            } else {
                ""
            };
            format!("  → {} {cut}{more}\n", on_a_line(tool))
        }
        Piece::Result {
            tool,
            text,
            is_error,
        } => {
            let mark = if *is_error { "✗" } else { "←" };
            let text = visible(text);
            let lines: Vec<&str> = text.lines().collect();
            let mut out = format!("  {mark} {}\n", on_a_line(tool));
            for line in lines.iter().take(LINES) {
                out.push_str(&format!("    {line}\n"));
            }
            if lines.len() > LINES {
                out.push_str(&format!("    … {} more lines\n", lines.len() - LINES));
            }
            out
        }
        Piece::Unknown { call_id, note } => format!("  ? {}: {note}\n", on_a_line(call_id)),
    }
}

fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}
