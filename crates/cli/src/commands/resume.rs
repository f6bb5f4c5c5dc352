//! `haft resume`: resumes a session, and answers its pending approvals.

use super::chat;
use super::sessions::failure;
use crate::agent::{self, DeferApprovals, OutputMode, Past, Task, work};
use crate::args::Shared;
use crate::args::agent::Resume;
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{ask, effects, output, session};
use haft::ApprovalAnswer as Answer;
use haft::ops::effects::SetState;
use haft_agent::{Agent, PendingApproval, Resumed};
use haft_config::{FolderChoice, Settings};
use haft_store::sessions::{Error, Sessions};
use serde_json::Value;
use std::sync::Arc;

/// Resumes in a chat if there is a terminal and no task, otherwise non-interactively.
pub(crate) fn run(shared: &Shared, args: &Resume) -> Result<Exit, Failure> {
    let is_task = args.prompt.is_some()
        || args.json
        || !args.answer.is_empty()
        || args.response_format.is_some();
    if !is_task && output::can_chat() && !is_only_prompt(shared, args)? {
        return chat::run(shared, chat::StartSession::Existing(args.session.clone()));
    }
    run_task(shared, args)
}

/// Whether the only argument is a prompt for the newest session.
fn is_only_prompt(shared: &Shared, args: &Resume) -> Result<bool, Failure> {
    let Some(text) = &args.session else {
        return Ok(false);
    };
    let settings = session::settings_of_chat(shared)?;
    Ok(agent::sessions(&settings)?.is_some_and(|sessions| is_prompt(&sessions, text)))
}

/// Whether a text in the place of a session is a prompt: it has several words, or is a word
/// that is not the id of a session. A word with a digit is taken for a mistyped id.
fn is_prompt(sessions: &Sessions, text: &str) -> bool {
    let is_word = !text.is_empty() && !text.contains(|char: char| char.is_ascii_digit());
    let is_unknown = || {
        matches!(
            sessions.find(text),
            Err(Error::Unknown { .. } | Error::TooShort { .. })
        )
    };
    text.contains(char::is_whitespace) || (is_word && is_unknown())
}

/// Resumes a session non-interactively.
pub(crate) fn run_task(shared: &Shared, args: &Resume) -> Result<Exit, Failure> {
    let settings = session::settings_of_agent(shared)?;
    let answers = args.answer.iter().map(|text| answer(text));
    let answers: Vec<_> = answers.collect::<Result<_, _>>()?;
    let sessions = agent::sessions(&settings)?
        .ok_or_else(|| Failure::usage("sessions need a state folder: set HOME"))?;
    let found = session_and_prompt(&sessions, &settings, args);
    let (id, prompt) = found.inspect_err(|_| session::note_model(&settings))?;
    let stored = sessions.load(&id).map_err(failure)?;
    let settings = in_its_folder(shared, settings, &stored.info.work_dir)?;
    settings.paths.open_to_tools()?;
    let format = agent::response_format(&settings, args.response_format.as_deref())?;
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let taken = sessions.resume(&id).map_err(failure)?;
    let mode = OutputMode {
        json: args.json,
        quiet: settings.quiet,
        is_recorded: true,
    };
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let approver = ask::terminal_approver(&settings);
        let approver = approver.unwrap_or_else(|| Arc::new(DeferApprovals));
        let past = Past::Session(Box::new(taken));
        let wait = agent::ToolsWait::All;
        let agent = agent::agent(&settings, model, past, Some(&sessions), approver, wait).await?;
        let agent = agent.response_format(format).waits_for_background(true);
        let checked = check_kinds(&agent, &args.answer)
            .and_then(|()| check_undone(&settings, &id, &agent, &answers));
        let open = match checked.and_then(|()| unanswered(&agent, &answers)) {
            Ok(open) => open,
            Err(wrong) => {
                agent::close(&agent, &mut signals).await;
                return Err(wrong);
            }
        };
        if let (Some(_), Some(first)) = (&prompt, open.first()) {
            agent::close(&agent, &mut signals).await;
            return Err(Failure::usage(format!(
                "pending calls must be answered before a new prompt: {}",
                open.join(", ")
            ))
            .hint(format!(
                "add --answer {} (or reject, reject:REASON, or JSON with changed arguments)",
                crate::text::shell_word(&format!("{first}=approve"))
            )));
        }
        if prompt.is_none() && !agent.has_work() && !settings.quiet {
            output::note(&format!(
                "session {id} has no pending work; its last answer follows. To give it a new task: haft resume {id} \"PROMPT\""
            ));
        }
        let resumed = Resumed {
            answers,
            prompt: prompt.map(Into::into),
        };
        let exit = work(&agent, Task::Resume(resumed), mode, &mut signals).await;
        let stopped = agent::close(&agent, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// Returns the session to resume and the prompt for it.
pub(crate) fn session_and_prompt(
    sessions: &Sessions,
    settings: &Settings,
    args: &Resume,
) -> Result<(String, Option<String>), Failure> {
    let newest = || {
        sessions
            .newest(&settings.paths.work_dir)
            .map_err(failure)?
            .ok_or_else(|| {
                Failure::usage("no session found for this folder")
                    .hint("`haft sessions list --all` lists the sessions of all folders")
            })
    };
    match (&args.session, &args.prompt) {
        (None, prompt) => Ok((newest()?, prompt.clone())),
        (Some(text), None) if is_prompt(sessions, text) => Ok((newest()?, Some(text.clone()))),
        (Some(id), prompt) => Ok((sessions.find(id).map_err(failure)?, prompt.clone())),
    }
}

/// Returns the settings for the session's own folder, unless `--dir` names another.
pub(crate) fn in_its_folder(
    shared: &Shared,
    settings: Settings,
    folder: &std::path::Path,
) -> Result<Settings, Failure> {
    if settings.paths.work_dir == folder || shared.dir.is_some() {
        return Ok(settings);
    }
    let shared = Shared {
        dir: Some(folder.to_owned()),
        ..shared.clone()
    };
    let mut settings = haft_config::load(&shared.flags(), crate::env::read())?;
    // The folder comes from the record; the user did not choose it now.
    settings.paths.folder_choice = FolderChoice::Default;
    session::note_warnings(&settings);
    Ok(settings)
}

/// `CALL_ID=approve|approve:session|approve:always|reject|reject:REASON|JSON`, or `CALL_ID=keep|revert|revert:REASON` for
/// the changes of a call that has run.
fn answer(text: &str) -> Result<(String, Answer), Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--answer must be CALL_ID=approve, CALL_ID=approve:session, CALL_ID=approve:always, CALL_ID=reject, CALL_ID=reject:REASON or CALL_ID=JSON, or for changes CALL_ID=keep, CALL_ID=revert or CALL_ID=revert:REASON, got \"{text}\""
        ))
    };
    // Providers choose the ids, which may contain `=`.
    let splits = text.match_indices('=').map(|(at, _)| text.split_at(at));
    let mut answers = splits.filter_map(|(id, rest)| {
        let answer = match rest.strip_prefix('=')?.trim() {
            "approve" | "keep" => Answer::Approve,
            "approve:session" => Answer::ForSession,
            "approve:always" => Answer::Always,
            "reject" | "revert" => Answer::Reject { reason: None },
            other => match (reason(other), serde_json::from_str(other)) {
                (Some(reason), _) => Answer::Reject {
                    reason: Some(reason.trim().to_owned()),
                },
                (None, Ok(arguments @ Value::Object(_))) => Answer::ApproveWith { arguments },
                _ => return None,
            },
        };
        (!id.trim().is_empty()).then(|| (id.to_owned(), answer))
    });
    answers.next().ok_or_else(wrong)
}

/// Returns the reason of a rejection.
fn reason(answer: &str) -> Option<&str> {
    answer
        .strip_prefix("reject:")
        .or_else(|| answer.strip_prefix("revert:"))
}

/// Fails if an answer is of the wrong kind: the changes of a call that has run are kept or
/// reverted, other calls are approved or rejected.
fn check_kinds(agent: &Agent, given: &[String]) -> Result<(), Failure> {
    for text in given {
        let Ok((id, _)) = answer(text) else {
            continue;
        };
        let Some(question) = agent.question(&id) else {
            continue;
        };
        let word = text.get(id.len() + 1..).unwrap_or_default().trim();
        let keeps = word == "keep" || word == "revert" || word.starts_with("revert:");
        if keeps != question.is_review {
            let hint = match question.is_review {
                true => "it has run: use keep, revert or revert:REASON",
                false => "it has not run yet: use approve, reject, reject:REASON or JSON",
            };
            let message = format!("call {id} cannot be answered with \"{word}\"");
            return Err(Failure::usage(message).hint(hint));
        }
    }
    Ok(())
}

/// Fails if the user wants to keep changes that they have undone since.
fn check_undone(
    settings: &Settings,
    session: &str,
    agent: &Agent,
    answers: &[(String, Answer)],
) -> Result<(), Failure> {
    for (id, answer) in answers {
        let is_review = agent
            .question(id)
            .is_some_and(|question| question.is_review);
        if !is_review || *answer != Answer::Approve {
            continue;
        }
        let found = effects::store(settings).map(|store| store.find(session));
        let Some(recorded) = found.transpose().map_err(effects::unreadable)?.flatten() else {
            continue;
        };
        let sets = recorded.summaries().map_err(effects::unreadable)?;
        let set = sets.iter().rev().find(|set| set.call_id == *id);
        if set.is_some_and(|set| set.state == SetState::Undone) {
            return Err(Failure::failed(format!(
                "call {id} cannot be kept: its changes were undone"
            ))
            .hint(format!(
                "`haft redo` brings them back; --answer {} leaves them undone",
                crate::text::shell_word(&format!("{id}=revert"))
            )));
        }
    }
    Ok(())
}

/// Returns the calls that stay pending. Fails if an answer matches no call, or two
/// answers match the same one.
fn unanswered(agent: &Agent, answers: &[(String, Answer)]) -> Result<Vec<String>, Failure> {
    let waiting = agent.pending_approvals();
    let names =
        |open: &[PendingApproval]| open.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let mut open = waiting.clone();
    for (id, _) in answers {
        // An id of the main agent's call answers all pending calls of the sub-agent it
        // started.
        let matches = |one: &PendingApproval| one.own == *id || one.is_named(id);
        if !waiting.iter().any(matches) {
            let same_id = waiting.iter().filter(|one| one.call_id == *id).count();
            let hint = match (waiting.is_empty(), same_id) {
                (true, _) => "this session has no pending calls".to_owned(),
                (_, 0) => format!("pending calls: {}", names(&waiting).join(", ")),
                _ => format!(
                    "several pending calls have this id; use one of: {}",
                    names(&waiting).join(", ")
                ),
            };
            return Err(Failure::usage(format!("no pending call {id}")).hint(hint));
        }
        if !open.iter().any(matches) {
            return Err(Failure::usage(format!("call {id} has two answers")));
        }
        open.retain(|one| !matches(one));
    }
    Ok(names(&open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_may_contain_equals_signs() {
        for (text, id, expected) in [
            ("c=approve", "c", Answer::Approve),
            ("sig==approve", "sig=", Answer::Approve),
            ("a=b=reject", "a=b", Answer::Reject { reason: None }),
        ] {
            let read = answer(text).ok().unwrap();
            assert_eq!(read, (id.to_owned(), expected), "{text}");
        }
        for (text, id, expected) in [
            ("c=reject:not today", "c", "not today"),
            ("c=reject: a=approve", "c", "a=approve"),
            ("a=b=reject:no: really", "a=b", "no: really"),
        ] {
            let reason = Some(expected.to_owned());
            let read = answer(text).ok().unwrap();
            assert_eq!(read, (id.to_owned(), Answer::Reject { reason }), "{text}");
        }
        let (id, changed) = answer(r#"c={"a":"x=approve"}"#).ok().unwrap();
        let arguments = serde_json::json!({ "a": "x=approve" });
        assert_eq!(id, "c");
        assert_eq!(changed, Answer::ApproveWith { arguments });
        for wrong in [
            "c=perhaps",
            "approve",
            "=approve",
            " =reject",
            "c=rejected",
            "c=reject why",
        ] {
            assert!(answer(wrong).is_err(), "{wrong}");
        }
    }
}
