//! Calls the tools through the session, as a model would, and judges the answers.

use super::advice;
use super::observed::Observed;
use super::report::{Check, Level, Report, counted};
use super::screen::shortened;
use haft::{Call, Definition, ExampleParameters, Runtime, Trace};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Text with characters that are often mishandled.
const UNICODE: &str = "Grüße, \"quoted\" \\ 'x' $HOME `y` %s\nзавтра 日本語 العربية 🎉";

/// Length of a text that exceeds a pipe's buffer.
const LONG: usize = 100_000;

/// Maximum number of unanswered calls.
const MAX_UNANSWERED: u32 = 3;

/// Time for haft to notice the end of a process.
const ENDING: Duration = Duration::from_secs(1);

/// Time for an answer to a cancelled call, slightly more than haft gives.
const CANCELLED: Duration = Duration::from_millis(2_200);

/// Time between sending a call and cancelling it.
const BEFORE_CANCEL: Duration = Duration::from_millis(2);

/// The remaining checks cannot be run; the report says why.
pub(super) struct Stop;

/// Calls from `--call`: tool and arguments.
pub(super) type Given = Vec<(String, Value)>;

/// State of a test run.
pub(super) struct Trial {
    pub(super) runtime: Runtime,
    pub(super) trace: Trace,
    pub(super) observed: Observed,
    pub(super) timeout: Duration,
    pub(super) report: Report,
    pub(super) tools: Vec<Definition>,
    pub(super) calls: usize,
    pub(super) unanswered: u32,
}

/// Result of a call.
enum Answer {
    Given {
        deviation: Option<String>,
        /// Text of an error.
        error: Option<String>,
        took: Duration,
    },
    /// haft did not send the call, for this reason.
    Refused(String),
    /// A message that is not an answer.
    Other(String),
    Silence,
    /// Description of how the plugin ended.
    Gone(String),
}

/// A call that was answered.
pub(super) struct Probe {
    tool: String,
    arguments: Value,
    took: Duration,
}

impl Trial {
    /// Shows and records a check.
    pub(super) fn found(&mut self, check: Check) {
        self.observed.facts().screen.check(&check);
        self.report.checks.push(check);
    }

    pub(super) fn section(&self, title: &str) {
        self.observed.facts().screen.section(title);
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> (String, Call) {
        self.calls += 1;
        let id = format!("test-{}", self.calls);
        let call = Call::new(tool, arguments.clone()).id(&id);
        (id, call)
    }

    async fn ask(&mut self, tool: &str, arguments: &Value) -> Result<Answer, Stop> {
        if self.unanswered >= MAX_UNANSWERED {
            let reason = format!("{MAX_UNANSWERED} calls were not answered");
            self.report.given_up = Some(reason);
            return Err(Stop);
        }
        let (id, call) = self.call(tool, arguments);
        let (sent, exits) = self.observed.counts();
        let begun = Instant::now();
        let reply = self.runtime.run(call).await;
        let took = begun.elapsed();
        let text = reply.text().replace('\n', " ");
        if let Some(answered) = self.observed.facts().answered.remove(&id) {
            return Ok(Answer::Given {
                deviation: answered.deviations.into_iter().next(),
                error: reply.is_error().then(|| shortened(text.as_bytes(), 80)),
                took: answered.took,
            });
        }
        if self.observed.facts().sent == sent {
            return Ok(Answer::Refused(text));
        }
        self.observed
            .until(ENDING, |facts| !facts.is_running())
            .await;
        let mut facts = self.observed.facts();
        let (other, exit) = (facts.others.first().cloned(), facts.exited_by_itself());
        if exit.is_some() {
            // Reported here; haft may have repeated the call in another process.
            facts.exits.truncate(exits);
        }
        drop(facts);
        let is_late = took >= self.timeout;
        self.unanswered += u32::from(is_late);
        Ok(match (exit, other) {
            (Some(how), _) => Answer::Gone(how),
            (None, Some(other)) => Answer::Other(other),
            (None, None) if is_late => Answer::Silence,
            (None, None) => {
                // Without the name of the plugin.
                let words = text.splitn(3, ' ').nth(2).unwrap_or(&text);
                Answer::Gone(shortened(words.as_bytes(), 200))
            }
        })
    }

    /// Checks an answer, which must exist and be well-formed. The tool may report an error.
    fn judge(&self, id: &'static str, title: String, answer: &Answer) -> Check {
        let failed = |detail: String, fix: &str| {
            let check = Check::failed(id, title.clone());
            check.detail(detail).fix(fix)
        };
        match answer {
            Answer::Given {
                deviation: Some(problem),
                took,
                ..
            } => failed(problem.clone(), advice::SHAPE).took(*took),
            Answer::Given { error, took, .. } => {
                let detail = match error {
                    Some(text) => format!("answered with an error, which is fine: {text}"),
                    None => "answered".to_owned(),
                };
                Check::passed(id, title).detail(detail).took(*took)
            }
            Answer::Refused(reason) => {
                failed(format!("not called: {reason}"), advice::REFUSED).level(Level::Warned)
            }
            Answer::Other(message) => {
                failed(format!("not a valid result: {message}"), advice::SHAPE)
            }
            Answer::Silence => {
                let seconds = usize::try_from(self.timeout.as_secs()).unwrap_or(0);
                let detail = format!("no answer within {}", counted(seconds, "second"));
                let is_unended = self.observed.facts().output.is_unended;
                failed(
                    detail,
                    match is_unended {
                        true => advice::NEWLINE,
                        false => advice::UNANSWERED,
                    },
                )
            }
            Answer::Gone(how) if how.contains("call_id") => failed(how.clone(), advice::CALL_ID),
            Answer::Gone(how) => failed(how.clone(), advice::CRASHED),
        }
    }

    /// Calls each tool as a model would. Returns the answered calls, fastest first.
    pub(super) async fn valid_arguments(&mut self, given: &Given) -> Result<Vec<Probe>, Stop> {
        self.section("Calls");
        let mut probes = Vec::new();
        for definition in self.tools.clone() {
            let tool = definition.name.clone();
            let own = given.iter().filter(|(name, _)| *name == tool);
            let mut planned: Vec<(&str, Value)> = own
                .map(|(_, arguments)| ("with your arguments", arguments.clone()))
                .collect();
            if planned.is_empty() {
                let required = definition.example(ExampleParameters::Required);
                let all = definition.example(ExampleParameters::All);
                let title = match required.as_object().is_none_or(serde_json::Map::is_empty) {
                    true => "without arguments",
                    false => "with required arguments",
                };
                let has_more = required != all;
                planned.push((title, required));
                planned.extend(has_more.then_some(("with all parameters", all)));
            }
            for (title, arguments) in planned {
                let answer = self.ask(&tool, &arguments).await?;
                let check = self.judge("call", format!("{tool}, {title}"), &answer);
                self.found(check);
                if let Answer::Given { took, .. } = answer {
                    let tool = tool.clone();
                    probes.push(Probe {
                        tool,
                        arguments,
                        took,
                    });
                }
            }
        }
        probes.sort_by_key(|probe| probe.took);
        Ok(probes)
    }

    /// Sends difficult texts to a tool that accepts texts.
    pub(super) async fn texts(&mut self, probe: &Probe) -> Result<(), Stop> {
        self.section("Texts");
        for (id, title, text) in [
            (
                "unicode",
                "quotes, newlines and several scripts",
                UNICODE.to_owned(),
            ),
            ("long", "a text of 100 KB", "haft ".repeat(LONG / 5)),
        ] {
            let accepting = self.tools.iter().find_map(|definition| {
                let base = match definition.name == probe.tool {
                    true => probe.arguments.clone(),
                    false => definition.example(ExampleParameters::Required),
                };
                let arguments = definition.example_with(&base, &text)?;
                Some((definition.name.clone(), arguments))
            });
            let Some((tool, arguments)) = accepting else {
                continue;
            };
            let answer = self.ask(&tool, &arguments).await?;
            let check = self.judge(id, title.to_owned(), &answer);
            let check = match (&answer, id) {
                (Answer::Silence | Answer::Gone(_), "long") => {
                    check.level(Level::Warned).fix(advice::LONG)
                }
                (Answer::Silence, _) => check.fix(advice::TEXT),
                _ => check,
            };
            self.found(check);
        }
        Ok(())
    }

    /// Checks simultaneous calls, for plugins that declare protocol 2.
    pub(super) async fn concurrent(&mut self, probe: &Probe) {
        self.section("Protocol 2");
        let (one, first) = self.call(&probe.tool, &probe.arguments);
        let (other, second) = self.call(&probe.tool, &probe.arguments);
        let begun = Instant::now();
        self.runtime.run_all(vec![first, second]).await;
        let facts = self.observed.facts();
        let ids = [one, other];
        let count = ids.iter().filter(|id| facts.answered.contains_key(*id));
        let count = count.count();
        drop(facts);
        let title = "two calls at once";
        self.found(match count {
            2 => Check::passed("concurrent", title)
                .detail("each answered with its call_id")
                .took(begun.elapsed()),
            count => Check::failed("concurrent", title)
                .detail(format!("{count} of 2 answered with its call_id"))
                .fix(advice::CALL_ID),
        });
    }

    /// Cancels a call right after sending it, and makes another one.
    pub(super) async fn cancelled(&mut self, probe: &Probe) -> Result<(), Stop> {
        let (id, call) = self.call(&probe.tool, &probe.arguments);
        let (cancel, begun) = (CancellationToken::new(), Instant::now());
        let (sent, _) = self.observed.counts();
        tokio::join!(self.runtime.run(call.cancel(cancel.clone())), async {
            self.observed
                .until(self.timeout, |facts| facts.sent > sent)
                .await;
            tokio::time::sleep(BEFORE_CANCEL).await;
            cancel.cancel();
        });
        self.observed
            .until(CANCELLED, |facts| {
                facts.answered.contains_key(&id) || !facts.is_running()
            })
            .await;
        let is_answered = self.observed.facts().answered.contains_key(&id);
        let exit = self.observed.facts().exited_by_itself();
        let title = "a cancelled call";
        self.found(match exit {
            _ if is_answered => Check::passed("cancel", title)
                .detail("answered")
                .took(begun.elapsed()),
            Some(how) => Check::failed("cancel", title)
                .detail(how)
                .fix(advice::CRASHED),
            None => Check::warned("cancel", title)
                .detail("not answered within 2 seconds")
                .fix(advice::CANCEL),
        });
        let answer = self.ask(&probe.tool, &probe.arguments).await?;
        let check = self.judge("after_cancel", "the call after it".to_owned(), &answer);
        self.found(check);
        Ok(())
    }

    /// Makes a call if the plugin is not running, so that haft starts it.
    pub(super) async fn restarted(&mut self, probe: &Probe) {
        if !self.observed.facts().is_running() {
            let (_, call) = self.call(&probe.tool, &probe.arguments);
            self.runtime.run(call).await;
        }
    }
}
