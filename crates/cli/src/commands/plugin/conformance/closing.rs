//! Checks of the whole conversation, and of how the plugin exits.

use super::advice;
use super::processes;
use super::report::{Check, Level, counted};
use super::trial::{Stop, Trial, describe_exit};
use haft::truncate::format_size;
use std::time::Duration;

/// Time to exit after stdin is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time to wait for unexpected answers.
const LATE_ANSWERS: Duration = Duration::from_millis(100);

/// Bytes of a plugin's log that haft keeps.
const LOG_LIMIT: u64 = 1 << 20;

/// Closes stdin and waits for the plugin to exit.
pub(super) async fn end(trial: &mut Trial) -> Result<(), Stop> {
    trial.screen.section("End");
    trial.ready().await?;
    tokio::time::sleep(LATE_ANSWERS).await;
    trial.sweep();
    trial.screen.remark("closing its stdin");
    let Some(connection) = &mut trial.connection else {
        return Ok(());
    };
    let begun = tokio::time::Instant::now();
    connection.close();
    let status = connection.exit_status(EXIT_TIMEOUT).await;
    let check = match status {
        None => Check::warned("end", "exits when stdin closes")
            .detail("still running after 2 seconds; killed")
            .fix(advice::END),
        Some(status) => {
            let level = if status.success() {
                Level::Passed
            } else {
                Level::Warned
            };
            let check = Check::passed("end", "exits when stdin closes")
                .level(level)
                .detail(describe_exit(status));
            check.took(begun.elapsed()).fix(advice::END)
        }
    };
    trial.found(check);
    if status.is_some() {
        let left = processes::descendants();
        let names: Vec<String> = left
            .iter()
            .map(|left| format!("{} ({})", left.name, left.pid))
            .collect();
        trial.found(if left.is_empty() {
            Check::passed("left", "leaves no processes running")
        } else {
            Check::warned("left", "leaves no processes running")
                .detail(format!("killed: {}", names.join(", ")))
                .fix(advice::LEFT)
        });
    }
    // Also kills the processes it left behind.
    trial.connection = None;
    Ok(())
}

/// Runs the checks that need the whole conversation.
pub(super) fn summarize(trial: &mut Trial) {
    trial.screen.section("Overall");
    trial.tallies.lock().settle();
    let checks = [
        stdout(trial),
        Some(lines(trial)),
        step(trial),
        ids(trial),
        updates(trial),
        log(trial),
    ];
    for check in checks.into_iter().flatten() {
        trial.found(check);
    }
}

/// Checks that stdout contains only messages.
fn stdout(trial: &Trial) -> Option<Check> {
    let tally = trial.tallies.lock();
    let title = "only messages on stdout";
    if tally.has_endless_output {
        return Some(
            Check::failed("stdout", title)
                .detail("endless output")
                .fix(advice::STDOUT),
        );
    }
    Some(match tally.samples.first() {
        None => Check::passed("stdout", title),
        Some(sample) => Check::failed("stdout", title)
            .detail(format!(
                "{} not a message: {sample}",
                match tally.noise {
                    1 => "1 line is".to_owned(),
                    count => format!("{count} lines are"),
                }
            ))
            .fix(advice::STDOUT),
    })
}

/// Checks that each message is one line of valid JSON.
fn lines(trial: &Trial) -> Check {
    let tally = trial.tallies.lock();
    let title = "one line of JSON per message";
    if tally.lists > 0 {
        Check::warned("lines", title)
            .detail("the tools are a bare list")
            .fix(advice::LIST)
    } else if tally.pretty > 0 {
        Check::warned("lines", title)
            .detail(format!(
                "{} on several lines",
                counted(tally.pretty, "message")
            ))
            .fix(advice::PRETTY)
    } else if tally.repaired > 0 {
        Check::warned("lines", title)
            .detail(format!(
                "{} of invalid JSON",
                counted(tally.repaired, "message")
            ))
            .fix(advice::REPAIRED)
    } else {
        Check::passed("lines", title)
    }
}

/// Checks that every answer belongs to a request.
fn step(trial: &Trial) -> Option<Check> {
    let title = "each answer belongs to a request";
    Some(match trial.strays.first() {
        None if trial.marked + trial.unmarked == 0 => return None,
        None => Check::passed("step", title),
        Some(stray) => Check::failed("step", title)
            .detail(format!(
                "{} without a request: {stray}",
                counted(trial.strays.len(), "answer")
            ))
            .fix(advice::STEP),
    })
}

/// Checks whether answers contain the call's id.
fn ids(trial: &Trial) -> Option<Check> {
    let title = "repeats call_id";
    Some(match (trial.marked, trial.unmarked) {
        (0, 0) => return None,
        (_, 0) => Check::passed("call_id", title),
        (_, _) if trial.report.is_second => Check::failed("call_id", title)
            .detail(format!("{} without it", counted(trial.unmarked, "answer")))
            .fix(advice::CALL_ID),
        (0, _) => Check::passed("call_id", title).detail("no, which is fine"),
        (_, unmarked) => Check::passed("call_id", title).detail(format!(
            "not in {}, which is fine",
            counted(unmarked, "answer")
        )),
    })
}

fn updates(trial: &Trial) -> Option<Check> {
    let title = "updates";
    match trial.bad_updates.first() {
        None if trial.updates == 0 => None,
        None => Some(
            Check::passed("updates", title).detail(format!("{}, all well-formed", trial.updates)),
        ),
        Some(problem) => Some(
            Check::failed("updates", title)
                .detail(problem.clone())
                .fix(advice::UPDATE),
        ),
    }
}

/// Checks that the log is not too long.
fn log(trial: &Trial) -> Option<Check> {
    let logged = trial.tallies.lock().logged;
    (logged > LOG_LIMIT).then(|| {
        Check::warned("stderr", "log on stderr")
            .detail(format!("{} for a few calls", format_size(logged)))
            .fix("haft keeps only the last 1MB (`haft plugin log`). Log less, so that important lines stay.")
    })
}
