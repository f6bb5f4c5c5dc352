//! Checks of the whole conversation, and of how the plugin exits.

use super::advice;
use super::calls::{Probe, Trial};
use super::observed::{Facts, describe_exit};
use super::report::{Check, Level, counted};
use haft::MessageForm;
use haft::ops::executor::Exit;
use haft::truncate::format_size;
use std::time::{Duration, Instant};

/// Time to exit after stdin is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time to wait for unexpected answers.
const LATE_ANSWERS: Duration = Duration::from_millis(100);

/// Bytes of a plugin's log that haft keeps.
const LOG_LIMIT: u64 = 1 << 20;

/// Closes stdin and waits for the plugin to exit.
pub(super) async fn end(trial: &mut Trial, probe: Option<&Probe>) {
    trial.section("End");
    tokio::time::sleep(LATE_ANSWERS).await;
    if let Some(probe) = probe {
        trial.restarted(probe).await;
    }
    let begun = Instant::now();
    trial.trace.close_input();
    trial
        .observed
        .until(EXIT_TIMEOUT, |facts| !facts.is_running())
        .await;
    let exit = trial.observed.facts().exit.clone();
    let check = Check::warned("end", "exits when stdin closes").fix(advice::END);
    let Some((status, _, survivors)) = exit else {
        return trial.found(check.detail("still running after 2 seconds; killed"));
    };
    let level = match status {
        Exit::Code(0) => Level::Passed,
        _ => Level::Warned,
    };
    let check = check.level(level).detail(describe_exit(status));
    trial.found(check.took(begun.elapsed()));
    let names: Vec<String> = survivors
        .iter()
        .map(|process| format!("{} ({})", process.name, process.pid))
        .collect();
    let check = Check::passed("left", "leaves no processes running");
    trial.found(match names.is_empty() {
        true => check,
        false => check
            .level(Level::Warned)
            .detail(format!("killed: {}", names.join(", ")))
            .fix(advice::LEFT),
    });
}

/// Runs the checks that need the whole conversation.
pub(super) fn summarize(trial: &mut Trial) {
    trial.section("Overall");
    let is_second = trial.report.is_second;
    let mut facts = trial.observed.facts();
    facts.settle();
    let checks = [
        Some(stdout(&facts)),
        Some(lines(&facts)),
        exits(&facts),
        step(&facts),
        ids(&facts, is_second),
        updates(&facts),
        log(&facts),
    ];
    drop(facts);
    for check in checks.into_iter().flatten() {
        trial.found(check);
    }
}

/// Checks that stdout contains only messages.
fn stdout(facts: &Facts) -> Check {
    let check = Check::failed("stdout", "only messages on stdout").fix(advice::STDOUT);
    match (&facts.output.sample, facts.output.noise) {
        _ if facts.output.is_endless => check.detail("endless output"),
        (None, _) => check.level(Level::Passed),
        (Some(sample), 1) => check.detail(format!("1 line is not a message: {sample}")),
        (Some(sample), count) => check.detail(format!("{count} lines are not a message: {sample}")),
    }
}

/// Checks that each message is one line of valid JSON.
fn lines(facts: &Facts) -> Check {
    let count = |form| facts.output.forms.get(&form).copied().unwrap_or(0);
    let counted = |form| counted(count(form), "message");
    let check = Check::warned("lines", "one line of JSON per message");
    if count(MessageForm::List) > 0 {
        check.detail("the tools are a bare list").fix(advice::LIST)
    } else if count(MessageForm::Lines) > 0 {
        let detail = format!("{} on several lines", counted(MessageForm::Lines));
        check.detail(detail).fix(advice::PRETTY)
    } else if count(MessageForm::Repaired) > 0 {
        let detail = format!("{} of invalid JSON", counted(MessageForm::Repaired));
        check.detail(detail).fix(advice::REPAIRED)
    } else {
        check.level(Level::Passed)
    }
}

/// Checks that the plugin never exits by itself. haft restarts it, but state is lost.
fn exits(facts: &Facts) -> Option<Check> {
    let how = facts.exits.first()?;
    let check = Check::failed("running", "keeps running between calls");
    Some(check.detail(how).fix(advice::ENDED))
}

/// Checks that every answer belongs to a request.
fn step(facts: &Facts) -> Option<Check> {
    let check = Check::passed("step", "each answer belongs to a request");
    match facts.strays.first() {
        None => (facts.named + facts.unnamed > 0).then_some(check),
        Some(stray) => {
            let answers = counted(facts.strays.len(), "answer");
            let check = check.level(Level::Failed).fix(advice::STEP);
            Some(check.detail(format!("{answers} without a request: {stray}")))
        }
    }
}

/// Checks whether answers contain the call's id.
fn ids(facts: &Facts, is_second: bool) -> Option<Check> {
    let check = Check::passed("call_id", "repeats call_id");
    let answers = counted(facts.unnamed, "answer");
    match (facts.named, facts.unnamed) {
        (0, 0) => None,
        (_, 0) => Some(check),
        _ if is_second => Some(
            check
                .level(Level::Failed)
                .detail(format!("{answers} without it"))
                .fix(advice::CALL_ID),
        ),
        (0, _) => Some(check.detail("no, which is fine")),
        _ => Some(check.detail(format!("not in {answers}, which is fine"))),
    }
}

fn updates(facts: &Facts) -> Option<Check> {
    let check = Check::passed("updates", "updates");
    match facts.bad_updates.first() {
        None if facts.updates == 0 => None,
        None => Some(check.detail(format!("{}, all well-formed", facts.updates))),
        Some(problem) => Some(
            check
                .level(Level::Failed)
                .detail(problem)
                .fix(advice::UPDATE),
        ),
    }
}

/// Checks that the log is not too long.
fn log(facts: &Facts) -> Option<Check> {
    let detail = format!("{} for a few calls", format_size(facts.logged));
    let check = Check::warned("stderr", "log on stderr").detail(detail);
    (facts.logged > LOG_LIMIT).then(|| check.fix(advice::LOG))
}
