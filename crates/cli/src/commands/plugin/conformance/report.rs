//! Findings and the verdict.

use crate::output::Paint;
use crate::text;
use haft::ops::text::decode::visible;
use serde_json::{Value, json};
use std::time::Duration;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Passed,
    /// Works, but could be better.
    Warned,
    Failed,
}

/// A check and its result.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// Stable name for scripts.
    id: &'static str,
    title: String,
    level: Level,
    detail: String,
    /// Advice for the plugin's author.
    fix: Option<String>,
    took: Option<Duration>,
}

impl Check {
    pub(super) fn passed(id: &'static str, title: impl Into<String>) -> Self {
        Self {
            id,
            title: title.into(),
            level: Level::Passed,
            detail: String::new(),
            fix: None,
            took: None,
        }
    }

    pub(super) fn failed(id: &'static str, title: impl Into<String>) -> Self {
        Self::passed(id, title).level(Level::Failed)
    }

    pub(super) fn warned(id: &'static str, title: impl Into<String>) -> Self {
        Self::passed(id, title).level(Level::Warned)
    }

    pub(super) fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn took(mut self, took: Duration) -> Self {
        self.took = Some(took);
        self
    }

    /// Formats the check in lines that fit the width.
    pub(super) fn line(&self, paint: Paint, width: usize) -> String {
        let mut line = visible(&self.title);
        let detail = visible(&self.detail).replace('\n', " ⏎ ");
        if !detail.is_empty() {
            line.push_str(&format!(": {detail}"));
        }
        let took = self.took.map(|took| format!(" ({})", duration(took)));
        let took = took.unwrap_or_default();
        line.push_str(&took);
        let mut lines = text::wrap(&line, width.saturating_sub(3)).join("\n  ");
        // Dim the duration, unless it was wrapped.
        if !took.is_empty()
            && let Some(rest) = lines.strip_suffix(&took)
        {
            lines = format!("{rest}{}", paint.dim(&took));
        }
        let sign = match self.level {
            Level::Passed => paint.green("✓"),
            Level::Warned => paint.yellow("⚠"),
            Level::Failed => paint.red("✗"),
        };
        format!("{sign} {lines}")
    }

    fn as_json(&self) -> Value {
        json!({
            "id": self.id,
            "title": self.title,
            "result": match self.level {
                Level::Passed => "passed",
                Level::Warned => "warning",
                Level::Failed => "failed",
            },
            "detail": self.detail,
            "fix": self.fix.as_ref().filter(|_| self.level != Level::Passed),
            "ms": self.took.map(|took| (took.as_secs_f64() * 1e4).round() / 1e1),
        })
    }
}

/// All findings of a test run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) checks: Vec<Check>,
    /// Names of the plugin's tools.
    pub(super) tools: Vec<String>,
    /// The plugin's protocol, once known.
    pub(super) protocol: Option<&'static str>,
    pub(super) is_second: bool,
    /// Reason why some checks could not be run.
    pub(super) given_up: Option<String>,
}

impl Report {
    fn count(&self, level: Level) -> usize {
        self.at(level).count()
    }

    fn at(&self, level: Level) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |check| check.level == level)
    }

    pub(super) fn is_good(&self) -> bool {
        self.count(Level::Failed) == 0 && self.given_up.is_none()
    }

    /// Formats the verdict as one line.
    fn verdict(&self) -> String {
        let warned = match self.count(Level::Warned) {
            0 => String::new(),
            count => format!(", {}", counted(count, "warning")),
        };
        if self.is_good() {
            format!(
                "good: {}, {} passed{warned}",
                counted(self.tools.len(), "tool"),
                counted(self.count(Level::Passed), "check")
            )
        } else {
            format!(
                "bad: {} of {} failed{warned}",
                self.count(Level::Failed),
                counted(self.checks.len(), "check")
            )
        }
    }

    /// Formats the verdict, followed by failures and warnings with advice.
    pub(super) fn conclusion(&self, paint: Paint, width: usize, with_warnings: bool) -> String {
        let verdict = visible(&self.verdict());
        let mut out = if self.is_good() {
            paint.bold(&paint.green(&verdict))
        } else {
            paint.bold(&paint.red(&verdict))
        };
        out.push('\n');
        if let Some(reason) = &self.given_up {
            out.push_str(&format!("Some checks were skipped: {}.\n", visible(reason)));
        }
        let levels: &[Level] = if with_warnings {
            &[Level::Failed, Level::Warned]
        } else {
            &[Level::Failed]
        };
        let mut reported: Vec<&Check> = levels.iter().flat_map(|level| self.at(*level)).collect();
        // Group checks with the same advice.
        while let Some(first) = reported.first().copied() {
            let (same, others) = reported
                .into_iter()
                .partition(|check| check.level == first.level && check.fix == first.fix);
            reported = others;
            out.push('\n');
            let same: Vec<&Check> = same;
            for check in same {
                out.push_str(&format!("{}\n", check.line(paint, width)));
            }
            let Some(fix) = &first.fix else { continue };
            let fix = text::wrap(&format!("Fix: {}", visible(fix)), text::WIDTH - 2).join("\n  ");
            let fix = fix.replacen("Fix:", &paint.bold("Fix:"), 1);
            out.push_str(&format!("  {fix}\n"));
        }
        out
    }

    pub(super) fn as_json(&self, program: &[String]) -> Value {
        json!({
            "verdict": if self.is_good() { "good" } else { "bad" },
            "line": self.verdict(),
            "program": program,
            "protocol": self.protocol,
            "version": if self.is_second { 2 } else { 1 },
            "tools": self.tools,
            "passed": self.count(Level::Passed),
            "warnings": self.count(Level::Warned),
            "failed": self.count(Level::Failed),
            "not_tried": self.given_up,
            "checks": self.checks.iter().map(Check::as_json).collect::<Vec<_>>(),
        })
    }
}

/// Formats a count with a noun.
pub(super) fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Formats a duration.
fn duration(took: Duration) -> String {
    let milliseconds = took.as_secs_f64() * 1e3;
    match milliseconds {
        ..9.95 => format!("{milliseconds:.1} ms"),
        ..999.5 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}
