//! Prints the list of sessions.

use super::failure;
use crate::args::sessions::List;
use crate::exit::Failure;
use crate::{output, text};
use haft::ops::text::decode::visible;
use haft_config::Settings;
use haft_store::sessions::{Filter, SessionKind, Sessions, Summary};
use serde_json::json;
use std::time::SystemTime;

/// Finds the sessions to list.
pub(super) fn find(
    sessions: &Sessions,
    settings: &Settings,
    args: &List,
) -> Result<Vec<Summary>, Failure> {
    let filter = Filter {
        work_dir: (!args.all).then(|| settings.paths.work_dir.clone()),
        kinds: match args.all || args.calls {
            true => Vec::new(),
            false => vec![SessionKind::Agent],
        },
        ..Filter::default()
    };
    sessions.list(&filter).map_err(failure)
}

/// Prints the list.
pub(super) fn show(found: &[Summary], args: &List) -> Result<(), Failure> {
    if args.json {
        for summary in found {
            output::json(&document(summary))?;
        }
        return Ok(());
    }
    if found.is_empty() {
        output::note(match args.all {
            true => "no sessions",
            false => "no sessions in this folder; --all lists all folders and single calls",
        });
        return Ok(());
    }
    let now = SystemTime::now();
    let mut rows = vec![
        ["SESSION", "AGE", "TURNS", "COST", "ABOUT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(found.iter().map(|summary| row(summary, now, args.all)));
    let widths: Vec<usize> = (0..4)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0) + 2
        })
        .collect();
    let room = text::WIDTH.saturating_sub(widths.iter().sum());
    for row in &mut rows {
        if let Some(about) = row.last_mut() {
            *about = truncate(about, room);
        }
    }
    output::text(&text::table(&rows, None))
}

fn row(summary: &Summary, now: SystemTime, with_folder: bool) -> Vec<String> {
    let mut marks = Vec::new();
    if summary.waiting > 0 {
        marks.push("needs approval".to_owned());
    }
    if let Some(pid) = summary.in_use_by {
        marks.push(format!("in use by {pid}"));
    }
    let mut about = String::new();
    if !marks.is_empty() {
        about.push_str(&format!("({}) ", marks.join(", ")));
    }
    if with_folder && let Some(name) = summary.work_dir.file_name() {
        about.push_str(&format!("{}: ", name.to_string_lossy()));
    }
    if summary.kind != SessionKind::Agent {
        about.push_str(&format!("{} ", summary.kind.name()));
    }
    about.push_str(summary.title.as_deref().unwrap_or_default());
    vec![
        visible(&summary.id),
        age(now, summary.updated),
        match summary.kind {
            SessionKind::Agent => summary.turns.to_string(),
            _ => "-".to_owned(),
        },
        summary
            .cost
            .map_or_else(|| "-".to_owned(), |cost| format!("${cost:.2}")),
        visible(&about).replace(['\n', '\t'], " "),
    ]
}

/// Formats an age in the largest unit that fits.
pub(crate) fn age(now: SystemTime, then: SystemTime) -> String {
    let seconds = now.duration_since(then).map_or(0, |since| since.as_secs());
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400..1_209_600 => format!("{}d", seconds / 86_400),
        _ => format!("{}w", seconds / 604_800),
    }
}

fn truncate(words: &str, room: usize) -> String {
    if words.chars().count() <= room {
        return words.to_owned();
    }
    let start: String = words.chars().take(room.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

fn document(summary: &Summary) -> serde_json::Value {
    let time = super::transcript::moment;
    json!({
        "id": summary.id,
        "kind": summary.kind.name(),
        "title": summary.title,
        "work_dir": summary.work_dir.to_string_lossy(),
        "model": summary.model,
        "created": time(summary.created),
        "updated": time(summary.updated),
        "messages": summary.messages,
        "turns": summary.turns,
        "calls": summary.calls,
        "tokens": summary.tokens,
        "cost": summary.cost,
        "waiting": summary.waiting,
        "in_use_by": summary.in_use_by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn ages_are_short_and_titles_are_truncated() {
        let now = SystemTime::now();
        for (seconds, shown) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7200, "2h"),
            (900_000, "10d"),
            (9_000_000, "14w"),
        ] {
            assert_eq!(age(now, now - Duration::from_secs(seconds)), shown);
        }
        assert_eq!(
            age(now, now + Duration::from_secs(60)),
            "0s",
            "a time in the future"
        );
        assert_eq!(truncate("four", 4), "four");
        assert_eq!(truncate("ünf ünf", 5), "ünf…");
    }
}
