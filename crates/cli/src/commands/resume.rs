//! `haft resume`: go on with a session, and answer what waits in it.

use super::chat;
use super::sessions::told;
use crate::agent::{self, Away, Manner, Past, Task, work};
use crate::args::Shared;
use crate::args::agent::Resume;
use crate::config::{Chosen, Settings};
use crate::exit::{Exit, Failure};
use crate::signals::{self, Signals};
use crate::{ask, output, session};
use haft::Answer;
use haft_agent::{Agent, Resumed, Waits};
use haft_store::sessions::Sessions;
use serde_json::Value;
use std::sync::Arc;

/// Goes on, as the command line says.
pub(crate) fn run(shared: &Shared, args: &Resume) -> Result<Exit, Failure> {
    let is_task = args.prompt.is_some()
        || args.json
        || !args.answer.is_empty()
        || args.response_format.is_some();
    let several_words = |text: &String| text.contains(char::is_whitespace);
    if !is_task && output::can_chat() && !args.session.as_ref().is_some_and(several_words) {
        return chat::run(shared, chat::Begin::Session(args.session.clone()));
    }
    go_on(shared, args)
}

/// Goes on with nobody there.
pub(crate) fn go_on(shared: &Shared, args: &Resume) -> Result<Exit, Failure> {
    let settings = session::settings_of_agent(shared)?;
    let answers = args.answer.iter().map(|text| answer(text));
    let answers: Vec<_> = answers.collect::<Result<_, _>>()?;
    let sessions = agent::sessions(&settings)?
        .ok_or_else(|| Failure::usage("there is no state folder, so no sessions: set HOME"))?;
    let found = which(&sessions, &settings, args);
    let (id, prompt) = found.inspect_err(|_| session::note_model(&settings))?;
    let looked = sessions.look(&id).map_err(told)?;
    let settings = in_its_folder(shared, settings, &looked.info.work_dir)?;
    settings.open_to_tools()?;
    let format = agent::response_format(&settings, args.response_format.as_deref())?;
    let model = agent::model(&settings)?.ok_or_else(agent::no_model)?;
    let taken = sessions.take(&id).map_err(told)?;
    let manner = Manner {
        json: args.json,
        quiet: settings.quiet,
        is_recorded: true,
    };
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let approver = ask::here(&settings).unwrap_or_else(|| Arc::new(Away));
        let past = Past::Session(Box::new(taken));
        let agent = agent::agent(&settings, model, past, Some(&sessions), approver).await?;
        let agent = agent.response_format(format).waits_for_background(true);
        let open = match unanswered(&agent, &answers) {
            Ok(open) => open,
            Err(wrong) => {
                agent::close(&agent, &mut signals).await;
                return Err(wrong);
            }
        };
        if let (Some(_), Some(first)) = (&prompt, open.first()) {
            agent::close(&agent, &mut signals).await;
            return Err(Failure::usage(format!(
                "calls wait for an answer before something new can be said: {}",
                open.join(", ")
            ))
            .hint(format!(
                "--answer {} (or reject, reject:REASON, or JSON with changed arguments)",
                crate::text::shell_word(&format!("{first}=approve"))
            )));
        }
        if prompt.is_none() && !agent.has_work() && !settings.quiet {
            output::note(&format!(
                "session {id} waits for nothing; its last answer follows. Say what to do next: haft resume {id} \"Go on with …\""
            ));
        }
        let resumed = Resumed { answers, prompt };
        let exit = work(&agent, Task::Resume(resumed), manner, &mut signals).await;
        let stopped = agent::close(&agent, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

/// Which session, and what to do in it.
pub(crate) fn which(
    sessions: &Sessions,
    settings: &Settings,
    args: &Resume,
) -> Result<(String, Option<String>), Failure> {
    let newest = || {
        sessions
            .newest(&settings.work_dir)
            .map_err(told)?
            .ok_or_else(|| {
                Failure::usage("there is no session of this folder yet")
                    .hint("`haft sessions list --all` lists those of others")
            })
    };
    match (&args.session, &args.prompt) {
        (None, prompt) => Ok((newest()?, prompt.clone())),
        // One word may be a session; several are something to do.
        (Some(text), None) if text.contains(char::is_whitespace) => {
            Ok((newest()?, Some(text.clone())))
        }
        (Some(id), prompt) => Ok((sessions.find(id).map_err(told)?, prompt.clone())),
    }
}

/// A session is of its folder, wherever one is.
pub(crate) fn in_its_folder(
    shared: &Shared,
    settings: Settings,
    folder: &std::path::Path,
) -> Result<Settings, Failure> {
    if settings.work_dir == folder || shared.dir.is_some() {
        return Ok(settings);
    }
    let shared = Shared {
        dir: Some(folder.to_owned()),
        ..shared.clone()
    };
    let mut settings = crate::config::load(&shared)?;
    // By the record, which is not a person's word.
    settings.chosen = Chosen::ByNobody;
    session::note_warnings(&settings);
    Ok(settings)
}

/// `CALL_ID=approve|reject|reject:REASON|JSON`
fn answer(text: &str) -> Result<(String, Answer), Failure> {
    let wrong = || {
        Failure::usage(format!(
            "--answer must be CALL_ID=approve, CALL_ID=reject, CALL_ID=reject:REASON or CALL_ID=JSON, got \"{text}\""
        ))
    };
    // Ids are the provider's: one may have such a sign in it.
    let ends = text.match_indices('=').map(|(at, _)| text.split_at(at));
    let mut read = ends.filter_map(|(id, rest)| {
        let answer = match rest.strip_prefix('=')?.trim() {
            "approve" => Answer::Approve,
            "reject" => Answer::Reject { reason: None },
            other => match (other.strip_prefix("reject:"), serde_json::from_str(other)) {
                (Some(reason), _) => Answer::Reject {
                    reason: Some(reason.trim().to_owned()),
                },
                (None, Ok(arguments @ Value::Object(_))) => Answer::ApproveWith { arguments },
                _ => return None,
            },
        };
        (!id.trim().is_empty()).then(|| (id.to_owned(), answer))
    });
    read.next().ok_or_else(wrong)
}

/// The calls that would still wait. An answer to nothing is a mistake, and so are two.
fn unanswered(agent: &Agent, answers: &[(String, Answer)]) -> Result<Vec<String>, Failure> {
    let waiting = agent.questions();
    let names = |open: &[Waits]| open.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let mut open = waiting.clone();
    for (id, _) in answers {
        // The call of the agent that waits for a sub-agent stands for all of that one's.
        let is_meant = |one: &Waits| one.own == *id || one.is_called(id);
        if !waiting.iter().any(is_meant) {
            let is_one_of = waiting.iter().filter(|one| one.call_id == *id).count();
            let there = match (waiting.is_empty(), is_one_of) {
                (true, _) => "no call waits in this session".to_owned(),
                (_, 0) => format!("calls that wait: {}", names(&waiting).join(", ")),
                _ => format!(
                    "several have that id; calls that wait: {}",
                    names(&waiting).join(", ")
                ),
            };
            return Err(Failure::usage(format!("no call {id} waits for an answer")).hint(there));
        }
        if !open.iter().any(is_meant) {
            return Err(Failure::usage(format!("call {id} is answered twice")));
        }
        open.retain(|one| !is_meant(one));
    }
    Ok(names(&open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_may_have_the_sign_that_ends_them() {
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
