//! Background tasks in the transcript: a line for each while it runs, and a note when it
//! ends.

use super::spinner;
use crate::card::format_duration;
use crate::styled_text::{Line, Style};
use haft::ops::text::brief;
use std::time::Instant;

/// Maximum rows of running tasks; of the others only the number is shown.
const MAX_TASK_ROWS: usize = 4;

/// Characters of a description beside each call of a task.
const MAX_DESCRIPTION: usize = 30;

/// Maximum number of ends to remember until the agent learns of them.
const MAX_REPORTED: usize = 64;

/// A sub-agent that works or is queued.
struct Task {
    id: String,
    agent: String,
    /// Short description of its work.
    description: String,
    is_queued: bool,
    started: Instant,
}

#[derive(Default)]
pub(super) struct Background {
    tasks: Vec<Task>,
    /// Ends that were shown before the agent learned of them, so they are not shown again.
    reported: Vec<(String, String)>,
}

impl Background {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Name and short description of the sub-agent that works in this session, if it works
    /// in the background.
    pub(super) fn name_of(&self, session: Option<&str>) -> Option<String> {
        let mut tasks = self.tasks.iter();
        let task = tasks.find(|task| Some(task.id.as_str()) == session)?;
        Some(match task.description.is_empty() {
            true => task.agent.clone(),
            false => format!(
                "{}: {}",
                task.agent,
                brief(&task.description, MAX_DESCRIPTION)
            ),
        })
    }

    /// Handles a change of status, and returns whether to show it. An end is reported
    /// twice: `at_once` when it happens, and again when the agent learns of it.
    pub(super) fn update(
        &mut self,
        id: &str,
        (agent, description): (&str, &str),
        status: &str,
        at_once: bool,
        now: Instant,
    ) -> bool {
        let ended = (id.to_owned(), status.to_owned());
        if !at_once {
            let known = self.reported.iter().position(|reported| *reported == ended);
            known.map(|at| self.reported.remove(at));
            return known.is_none();
        }
        let before = self.tasks.iter().position(|task| task.id == id);
        let before = before.map(|at| self.tasks.remove(at));
        self.reported.retain(|(reported, _)| reported != id);
        if !matches!(status, "queued" | "running") {
            self.reported.push(ended);
            let excess = self.reported.len().saturating_sub(MAX_REPORTED);
            self.reported.drain(..excess);
            return true;
        }
        let is_queued = status == "queued";
        // The time counts from the start of the work.
        let started = before.filter(|task| task.is_queued == is_queued);
        self.tasks.push(Task {
            id: id.to_owned(),
            agent: agent.to_owned(),
            description: description.to_owned(),
            is_queued,
            started: started.map_or(now, |task| task.started),
        });
        false
    }

    pub(super) fn rows(&self, now: Instant, columns: usize) -> Vec<Line> {
        let shown = self.tasks.iter().take(MAX_TASK_ROWS).map(|task| {
            let time = format_duration(now.saturating_duration_since(task.started));
            let waits = if task.is_queued { " (queued)" } else { "" };
            let end = format!("{waits} · {time}");
            let (spinner, begin) = (spinner(task.started, now), " in the background: ");
            let mut line = Line::new(spinner, Style::CYAN);
            line.push(begin, Style::DIM);
            line.push(&task.agent, Style::PLAIN);
            if !task.description.is_empty() {
                // Keep the end of the row visible.
                let beside = [spinner, begin, &task.agent, ": …", &end];
                let beside: usize = beside.iter().map(|text| text.chars().count()).sum();
                let work = brief(&task.description, columns.saturating_sub(beside));
                line.push(&format!(": {work}"), Style::PLAIN);
            }
            line.push(&end, Style::DIM);
            line.truncated(columns)
        });
        let mut rows: Vec<Line> = shown.collect();
        let more = self.tasks.len().saturating_sub(MAX_TASK_ROWS);
        if more > 0 {
            rows.push(Line::new(&format!("  and {more} more"), Style::DIM));
        }
        rows
    }
}

/// Formats a line about a background task, `background task ID (AGENT: DESCRIPTION): STATUS`.
/// The parts are not sanitized.
pub fn background_task_line(id: &str, agent: &str, description: &str, status: &str) -> String {
    let work = match description.is_empty() {
        true => String::new(),
        false => format!(": {description}"),
    };
    format!("background task {id} ({agent}{work}): {status}")
}
