//! What the whole conversation shows, and how the program ends.

use super::advice;
use super::family;
use super::report::{Check, Level, counted};
use super::trial::{Stop, Trial, ended};
use haft::truncate::format_size;
use std::time::Duration;

/// How long it has to end once stdin has.
const END: Duration = Duration::from_secs(2);

/// How long an answer that nobody asked for is waited for.
const LATE: Duration = Duration::from_millis(100);

/// What is kept of its log.
const LOG: u64 = 1 << 20;

/// Closes stdin and watches it end.
pub(super) async fn end(trial: &mut Trial) -> Result<(), Stop> {
    trial.screen.section("End");
    trial.ready().await?;
    tokio::time::sleep(LATE).await;
    trial.sweep();
    trial.screen.remark("its stdin is closed");
    let Some(talk) = &mut trial.talk else {
        return Ok(());
    };
    let begun = tokio::time::Instant::now();
    talk.close();
    let status = talk.ended(END).await;
    let check = match status {
        None => Check::warned("end", "it ends when stdin does")
            .detail("it still runs after 2 seconds, and is ended")
            .fix(advice::END),
        Some(status) => {
            let level = if status.success() {
                Level::Passed
            } else {
                Level::Warned
            };
            let check = Check::passed("end", "it ends when stdin does")
                .level(level)
                .detail(ended(status));
            check.took(begun.elapsed()).fix(advice::END)
        }
    };
    trial.found(check);
    if status.is_some() {
        let left = family::left();
        let names: Vec<String> = left
            .iter()
            .map(|left| format!("{} ({})", left.name, left.pid))
            .collect();
        trial.found(if left.is_empty() {
            Check::passed("left", "nothing of it is left running")
        } else {
            Check::warned("left", "nothing of it is left running")
                .detail(format!("ended by force: {}", names.join(", ")))
                .fix(advice::LEFT)
        });
    }
    // Also what it left behind.
    trial.talk = None;
    Ok(())
}

/// What the conversation as a whole shows.
pub(super) fn look_back(trial: &mut Trial) {
    trial.screen.section("All in all");
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

/// Whether nothing but messages came.
fn stdout(trial: &Trial) -> Option<Check> {
    let tally = trial.tallies.lock();
    let title = "nothing but messages on stdout";
    if tally.is_babbling {
        return Some(
            Check::failed("stdout", title)
                .detail("it wrote without end")
                .fix(advice::STDOUT),
        );
    }
    Some(match tally.samples.first() {
        None => Check::passed("stdout", title),
        Some(sample) => Check::failed("stdout", title)
            .detail(format!(
                "{} that {} no message: {sample}",
                counted(tally.noise, "line"),
                if tally.noise == 1 { "is" } else { "are" }
            ))
            .fix(advice::STDOUT),
    })
}

/// Whether each message was a line of good JSON.
fn lines(trial: &Trial) -> Check {
    let tally = trial.tallies.lock();
    let title = "one line of JSON for each message";
    if tally.lists > 0 {
        Check::warned("lines", title)
            .detail("its tools came as a bare list")
            .fix(advice::LIST)
    } else if tally.pretty > 0 {
        Check::warned("lines", title)
            .detail(format!(
                "{} on several lines",
                counted(tally.pretty, "message")
            ))
            .fix(advice::PRETTY)
    } else if tally.mended > 0 {
        Check::warned("lines", title)
            .detail(format!(
                "{} of JSON that is not quite right",
                counted(tally.mended, "message")
            ))
            .fix(advice::MENDED)
    } else {
        Check::passed("lines", title)
    }
}

/// Whether every answer belonged to a question.
fn step(trial: &Trial) -> Option<Check> {
    let title = "every answer belongs to its question";
    Some(match trial.strays.first() {
        None if trial.marked + trial.unmarked == 0 => return None,
        None => Check::passed("step", title),
        Some(stray) => Check::failed("step", title)
            .detail(format!(
                "{} that nobody asked for: {stray}",
                counted(trial.strays.len(), "answer")
            ))
            .fix(advice::STEP),
    })
}

/// Whether it says which call it answers.
fn ids(trial: &Trial) -> Option<Check> {
    let title = "it repeats call_id";
    Some(match (trial.marked, trial.unmarked) {
        (0, 0) => return None,
        (_, 0) => Check::passed("call_id", title),
        (_, _) if trial.report.is_second => Check::failed("call_id", title)
            .detail(format!("{} without it", counted(trial.unmarked, "answer")))
            .fix(advice::CALL_ID),
        (0, _) => Check::passed("call_id", title).detail("no, and it need not"),
        (_, unmarked) => Check::passed("call_id", title).detail(format!(
            "not in {}, and it need not",
            counted(unmarked, "answer")
        )),
    })
}

fn updates(trial: &Trial) -> Option<Check> {
    let title = "its updates";
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

/// Whether its log is one that somebody could read.
fn log(trial: &Trial) -> Option<Check> {
    let logged = trial.tallies.lock().logged;
    (logged > LOG).then(|| {
        Check::warned("stderr", "its log on stderr")
            .detail(format!("{} for a few calls", format_size(logged)))
            .fix("haft keeps the last 1MB of it (`haft plugin log`). Log less, and what matters stays.")
    })
}
