//! One section by one route.

use super::matching::matches;
use super::page::{Call, Reply, Step, What};
use super::{Answer, Place, Report, Route, Session};
use std::path::Path;

/// How many characters of a text a problem shows of each end.
const SHOWN: usize = 2000;

/// Runs the steps of a section in folders of its own.
pub(super) async fn run(steps: &[Step], below: &Path, route: &dyn Route, report: &mut Report) {
    let mut run = Run {
        place: Place::new(below),
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
    place: Place,
    route: &'a dyn Route,
    session: Option<Box<dyn Session>>,
    report: &'a mut Report,
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) {
        let is_left_out = step.one_session && !self.route.keeps_session();
        match &step.what {
            What::File { name, content } => self.place.put(name, content),
            What::Page(path, status, text) => self.place.put_page(path, *status, text),
            What::Config(content) => {
                self.close(step.line).await;
                self.place.configure(content);
            }
            What::Call(_) if is_left_out => self.report.skipped += 1,
            What::After { .. } if is_left_out => {}
            What::After { name, content } => self.compare(step.line, name, content),
            What::Call(call) => {
                self.report.calls += 1;
                match self.call(call).await {
                    Ok(answer) => self.answered(call, &answer),
                    Err(problem) => {
                        self.problem(step.line, &format!("{}: {problem}", call.tool));
                    }
                }
            }
        }
    }

    async fn call(&mut self, call: &Call) -> Result<Answer, String> {
        let arguments = serde_json::from_str(&self.place.located(&call.arguments))
            .map_err(|error| format!("the arguments are no JSON: {error}"))?;
        if self.session.is_none() {
            self.session = Some(self.route.open(&self.place).await?);
        }
        match &mut self.session {
            Some(session) => session.call(&call.tool, &arguments).await,
            None => Err("no session".to_owned()),
        }
    }

    fn answered(&mut self, call: &Call, answer: &Answer) {
        let is_error = answer.is_error;
        let Some(Reply {
            line,
            is_error: wanted_error,
            text: wanted,
        }) = &call.reply
        else {
            return;
        };
        let text = self.place.readable(&answer.text);
        if is_error != *wanted_error || !matches(wanted.trim_end_matches('\n'), &text) {
            let mark = if is_error { " error" } else { "" };
            let problem = format!(
                "{} replied{mark}:\n{}\n--- instead of:\n{wanted}",
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

    fn compare(&mut self, line: usize, name: &str, wanted: &[u8]) {
        let found = self.place.get(name);
        if found != wanted {
            let (found, wanted) = (
                String::from_utf8_lossy(&found).into_owned(),
                String::from_utf8_lossy(wanted).into_owned(),
            );
            self.problem(line, &format!("{name} holds {found:?}, not {wanted:?}"));
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

/// A megabyte on the screen shows nobody what is wrong.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text.to_owned();
    }
    let first: String = text.chars().take(SHOWN).collect();
    let last: String = text.chars().skip(count - SHOWN).collect();
    format!("{first}\n--- {} characters ---\n{last}", count - 2 * SHOWN)
}
