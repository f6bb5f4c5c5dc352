//! What `/plan` does: it begins plan mode, and in plan mode shows, edits or carries out the
//! plan.

use crate::NextSession;
use crate::driver::Driver;
use std::path::PathBuf;

/// The next step after `/plan`.
pub(crate) enum PlanStep {
    Show(String),
    /// Let the user edit the file.
    Edit(PathBuf),
    Switch(NextSession),
}

/// Decides what `/plan` with the rest of the line does.
pub(crate) async fn plan_step(driver: &dyn Driver, rest: &str) -> Result<PlanStep, String> {
    let next = NextSession {
        id: driver.session_id(),
        ..NextSession::default()
    };
    let Some(file) = driver.plan_file() else {
        return Ok(PlanStep::Switch(NextSession {
            is_planning: true,
            prompt: Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
            ..next
        }));
    };
    match rest {
        "" => Ok(PlanStep::Show(driver.plan().await?)),
        // Fails if there is none yet.
        "edit" => driver.plan().await.map(|_| PlanStep::Edit(file)),
        "go" => {
            let plan = driver.plan().await?;
            Ok(PlanStep::Switch(NextSession {
                prompt: Some(format!("Carry out this plan.\n\n{plan}")),
                ..next
            }))
        }
        "off" => Ok(PlanStep::Switch(next)),
        _ => Err(
            "the session is in plan mode: /plan shows the plan, /plan edit edits it, /plan go \
             carries it out, /plan off ends plan mode"
                .to_owned(),
        ),
    }
}

/// What to show of a prompt that the user did not type: the first line, if it is long.
pub(crate) fn shown(prompt: &str) -> String {
    let mut lines = prompt.lines();
    let first = lines.next().unwrap_or_default();
    match lines.filter(|line| !line.trim().is_empty()).count() {
        0 => first.to_owned(),
        1 => format!("{first} [1 more line]"),
        more => format!("{first} [{more} more lines]"),
    }
}
