//! Runs one section through one route.

use super::matching::matches;
use super::page::{Call, Reply, Step, StepKind};
use super::{Report, Route, SectionFolders, Session, ToolReply};
use std::path::Path;

/// Number of characters shown from each end of a long text.
const SHOWN: usize = 2000;

/// Runs the steps of a section in new folders.
pub(super) async fn run(steps: &[Step], below: &Path, route: &dyn Route, report: &mut Report) {
    let mut run = Run {
        folders: SectionFolders::new(below),
        route,
        session: None,
        report,
    };
    let mut last = 0;
    for step in steps {
        last = step.line;
        run.step(step).await;
    }
    run.close(last).await;
}

struct Run<'a> {
    folders: SectionFolders,
    route: &'a dyn Route,
    session: Option<Box<dyn Session>>,
    report: &'a mut Report,
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) {
        let is_skipped = step.one_session && !self.route.keeps_session();
        match &step.kind {
            StepKind::File { name, content } => self.folders.put(name, content),
            StepKind::Page(path, status, text) => self.folders.put_page(path, *status, text),
            StepKind::Config(content) => {
                self.close(step.line).await;
                self.folders.configure(content);
            }
            StepKind::Call(_) if is_skipped => self.report.skipped += 1,
            StepKind::After { .. } if is_skipped => {}
            StepKind::After { name, content } => self.compare(step.line, name, content),
            StepKind::Call(call) => {
                self.report.calls += 1;
                match self.call(call).await {
                    Ok(reply) => self.check_reply(call, &reply),
                    Err(problem) => {
                        self.problem(step.line, &format!("{}: {problem}", call.tool));
                    }
                }
            }
        }
    }

    async fn call(&mut self, call: &Call) -> Result<ToolReply, String> {
        let arguments = serde_json::from_str(&self.folders.resolve(&call.arguments))
            .map_err(|error| format!("the arguments are not JSON: {error}"))?;
        if self.session.is_none() {
            self.session = Some(self.route.open(&self.folders).await?);
        }
        match &mut self.session {
            Some(session) => session.call(&call.tool, &arguments).await,
            None => Err("no session".to_owned()),
        }
    }

    fn check_reply(&mut self, call: &Call, reply: &ToolReply) {
        let is_error = reply.is_error;
        let Some(Reply {
            line,
            is_error: expected_error,
            text: expected,
        }) = &call.reply
        else {
            return;
        };
        let text = self.folders.with_placeholders(&reply.text);
        if is_error != *expected_error || !matches(expected.trim_end_matches('\n'), &text) {
            let mark = if is_error { " error" } else { "" };
            let problem = format!(
                "{} replied{mark}:\n{}\n--- instead of:\n{expected}",
                call.tool,
                shortened(&text)
            );
            self.problem(*line, &problem);
        }
        if is_error {
            &mut self.report.failed
        } else {
            &mut self.report.succeeded
        }
        .push(call.tool.clone());
    }

    fn compare(&mut self, line: usize, name: &str, expected: &[u8]) {
        let found = self.folders.get(name);
        if found != expected {
            let (found, expected) = (
                String::from_utf8_lossy(&found).into_owned(),
                String::from_utf8_lossy(expected).into_owned(),
            );
            self.problem(
                line,
                &format!("{name} contains {found:?}, not {expected:?}"),
            );
        }
    }

    async fn close(&mut self, line: usize) {
        if let Some(session) = self.session.take()
            && let Err(problem) = session.close().await
        {
            self.problem(line, &problem);
        }
    }

    fn problem(&mut self, line: usize, problem: &str) {
        self.report.problems.push(format!("line {line}: {problem}"));
    }
}

/// Shortens a text, because a megabyte of output hides the problem.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text.to_owned();
    }
    let first: String = text.chars().take(SHOWN).collect();
    let last: String = text.chars().skip(count - SHOWN).collect();
    format!("{first}\n--- {} characters ---\n{last}", count - 2 * SHOWN)
}
