//! Background tasks as the person sees them: a line for each while it runs, and a note when
//! it ends.

use super::spinner;
use crate::chat::card::spoken;
use crate::chat::ink::{Line, Style};
use haft::ops::text::brief;
use std::time::Instant;

/// Rows for those that work; of more only the number is shown.
const ROWS: usize = 4;

/// Characters of a description beside each call of a task.
const WORK: usize = 30;

/// The most ends to remember until the agent learns of them.
const TOLD: usize = 64;

/// A sub-agent that works, or waits for its turn.
struct Task {
    id: String,
    agent: String,
    /// Its work in a few words.
    description: String,
    is_queued: bool,
    since: Instant,
}

#[derive(Default)]
pub(super) struct Background {
    tasks: Vec<Task>,
    /// Ends that were shown before the agent heard of them: they are not shown again then.
    told: Vec<(String, String)>,
}

impl Background {
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The sub-agent that works in this session and the beginning of its description, if it
    /// works in the background.
    pub(super) fn name_of(&self, session: Option<&str>) -> Option<String> {
        let mut tasks = self.tasks.iter();
        let task = tasks.find(|task| Some(task.id.as_str()) == session)?;
        Some(match task.description.is_empty() {
            true => task.agent.clone(),
            false => format!("{}: {}", task.agent, brief(&task.description, WORK)),
        })
    }

    /// Takes in a change of status, and returns whether to show it. An end comes twice:
    /// `at_once` when it happens, and again when the agent learns of it.
    pub(super) fn see(
        &mut self,
        id: &str,
        (agent, description): (&str, &str),
        status: &str,
        at_once: bool,
        now: Instant,
    ) -> bool {
        let ended = (id.to_owned(), status.to_owned());
        if !at_once {
            let known = self.told.iter().position(|told| *told == ended);
            known.map(|at| self.told.remove(at));
            return known.is_none();
        }
        let before = self.tasks.iter().position(|task| task.id == id);
        let before = before.map(|at| self.tasks.remove(at));
        self.told.retain(|(told, _)| told != id);
        if !matches!(status, "queued" | "running") {
            self.told.push(ended);
            let excess = self.told.len().saturating_sub(TOLD);
            self.told.drain(..excess);
            return true;
        }
        let is_queued = status == "queued";
        // Its time counts from when it begins to work.
        let since = before.filter(|task| task.is_queued == is_queued);
        self.tasks.push(Task {
            id: id.to_owned(),
            agent: agent.to_owned(),
            description: description.to_owned(),
            is_queued,
            since: since.map_or(now, |task| task.since),
        });
        false
    }

    /// A row for each that works.
    pub(super) fn rows(&self, now: Instant, columns: usize) -> Vec<Line> {
        let shown = self.tasks.iter().take(ROWS).map(|task| {
            let time = spoken(now.saturating_duration_since(task.since));
            let waits = if task.is_queued {
                " waits its turn"
            } else {
                ""
            };
            let end = format!("{waits} · {time}");
            let (spinner, begin) = (spinner(task.since, now), " in the background: ");
            let mut line = Line::new(spinner, Style::CYAN);
            line.push(begin, Style::DIM);
            line.push(&task.agent, Style::PLAIN);
            if !task.description.is_empty() {
                // The end of the row stays in sight.
                let beside = [spinner, begin, &task.agent, ": …", &end];
                let beside: usize = beside.iter().map(|text| text.chars().count()).sum();
                let work = brief(&task.description, columns.saturating_sub(beside));
                line.push(&format!(": {work}"), Style::PLAIN);
            }
            line.push(&end, Style::DIM);
            line.cut(columns)
        });
        let mut rows: Vec<Line> = shown.collect();
        let more = self.tasks.len().saturating_sub(ROWS);
        if more > 0 {
            rows.push(Line::new(&format!("  and {more} more"), Style::DIM));
        }
        rows
    }
}

/// A line about a background task: `background task ID (AGENT: DESCRIPTION): STATUS`.
pub(crate) fn background_task(id: &str, agent: &str, description: &str, status: &str) -> String {
    let work = match description.is_empty() {
        true => String::new(),
        false => format!(": {description}"),
    };
    format!("background task {id} ({agent}{work}): {status}")
}
