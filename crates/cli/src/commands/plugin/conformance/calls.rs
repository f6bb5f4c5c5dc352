//! Checks calls: with valid arguments, with difficult texts, and messages that haft never
//! sends.

use super::advice;
use super::arguments::{self, Which, valid, with_text, wrong};
use super::report::{Check, Level};
use super::trial::{Answer, Stop, Trial, is_success, lenient, line};
use haft::plugin_protocol::accepts;
use serde_json::{Value, json};
use std::time::Duration;

/// Text with characters that are often mishandled.
const UNICODE: &str = "Grüße, \"quoted\" \\ 'x' $HOME `y` %s\nзавтра 日本語 العربية 🎉";

/// Length of a text that exceeds a pipe's buffer.
const LONG: usize = 100_000;

/// A call that was answered, used later to check that answers still match requests.
pub(super) struct Probe {
    tool: String,
    pub(super) arguments: Value,
    took: Duration,
}

/// Calls from `--call`: tool and arguments.
pub(super) type Given = Vec<(String, Value)>;

/// Calls each tool as a model would. Returns the answered calls, fastest first.
pub(super) async fn valid_arguments(trial: &mut Trial, given: &Given) -> Result<Vec<Probe>, Stop> {
    trial.screen.section("Calls");
    let mut probes = Vec::new();
    for definition in trial.tools.clone() {
        let name = definition.name.clone();
        let mut planned: Vec<(String, Value)> = given
            .iter()
            .filter(|(tool, _)| *tool == name)
            .map(|(_, arguments)| ("with your arguments".to_owned(), arguments.clone()))
            .collect();
        if planned.is_empty() {
            let (required, all) = (
                valid(&definition, Which::Required),
                valid(&definition, Which::All),
            );
            let is_all = required == all;
            let title = match required.as_object().map(serde_json::Map::len) {
                Some(0) => "without arguments",
                _ => "with required arguments",
            };
            planned.push((title.to_owned(), required));
            if !is_all {
                planned.push(("with all parameters".to_owned(), all));
            }
        }
        for (title, arguments) in planned {
            if let Err(reason) = accepts(&definition, &arguments) {
                let reason = reason.replace('\n', "; ");
                trial
                    .screen
                    .remark(&format!("haft would refuse the next call: {reason}"));
            }
            let answer = trial.ask(&name, &arguments).await?;
            let check = trial.judge("call", format!("{name}, {title}"), &answer);
            trial.found(check);
            if let Answer::Given { took, .. } = answer {
                probes.push(Probe {
                    tool: name.clone(),
                    arguments,
                    took,
                });
            }
        }
    }
    probes.sort_by_key(|probe| probe.took);
    Ok(probes)
}

/// Calls each tool with wrong arguments.
pub(super) async fn wrong_arguments(trial: &mut Trial, given: &Given) -> Result<(), Stop> {
    trial.screen.section("Wrong arguments");
    for definition in trial.tools.clone() {
        let name = &definition.name;
        let right = given.iter().find(|(tool, _)| tool == name).map_or_else(
            || valid(&definition, Which::Required),
            |(_, arguments)| arguments.clone(),
        );
        for arguments::WrongArguments {
            id,
            description,
            arguments,
            is_acceptable,
        } in wrong(&definition, &right)
        {
            let answer = trial.ask(name, &arguments).await?;
            let check = trial.judge(id, format!("{name}, {description}"), &answer);
            let check = match is_acceptable {
                true if is_success(&answer) => check.if_passed("answered, which is fine"),
                true => check,
                false => lenient(check, &answer),
            };
            trial.found(check);
        }
    }
    Ok(())
}

/// Sends unusual lines. None may end the plugin or shift its answers.
pub(super) async fn odd_lines(trial: &mut Trial, probe: &Probe) -> Result<(), Stop> {
    trial.screen.section("Odd lines");
    for (id, title, odd) in [
        (
            "unknown_type",
            "a message of an unknown type",
            &b"{\"type\":\"haft_test\"}\n"[..],
        ),
        ("blank", "an empty line", b"\n"),
        (
            "malformed",
            "a line that is not JSON",
            b"{\"type\":\"call\",oops\n",
        ),
    ] {
        let before = trial.odd_strays.len();
        let reply = trial.send_optional(odd).await?;
        let answer = trial.ask(&probe.tool, &probe.arguments).await?;
        let mut check = trial.judge(id, title.to_owned(), &answer);
        if let Answer::Given { .. } = answer {
            check = check.if_passed(match reply {
                Some(_) => "answered; the next call is answered too",
                None => "ignored; the next call is answered",
            });
        }
        if trial.odd_strays.len() > before {
            check = out_of_step(check);
        }
        trial.found(check);
    }
    let (id, call) = trial.call(&probe.tool, &probe.arguments);
    let crlf = format!("{call}\r\n");
    let answer = trial.exchange(&id, crlf.as_bytes()).await?;
    let check = trial.judge("crlf", "a line that ends in CRLF".to_owned(), &answer);
    trial.found(check);
    let answer = trial.ask("haft_no_such_tool", &probe.arguments).await?;
    let check = trial.judge(
        "unknown_tool",
        "a call of an unknown tool".to_owned(),
        &answer,
    );
    let check = match is_success(&answer) {
        // A plugin with one tool need not check the name.
        true if trial.tools.len() == 1 => {
            check.if_passed("answered by its only tool, which is fine")
        }
        true => check
            .level(Level::Warned)
            .detail("answered as if the tool existed")
            .fix("Check \"name\" in the call, and answer an unknown one with \"error\":true."),
        false => check,
    };
    trial.found(check);
    Ok(())
}

/// Sends difficult texts.
pub(super) async fn texts(trial: &mut Trial, probe: &Probe) -> Result<(), Stop> {
    trial.screen.section("Texts");
    // Prefer a tool that accepts texts.
    let definitions = trial.tools.clone();
    let takes_text = |definition: &&haft::Definition| {
        let right = valid(definition, Which::Required);
        with_text(definition, &right, UNICODE).1 != "haft_text"
    };
    let Some(definition) = definitions.iter().find(takes_text).or_else(|| {
        definitions
            .iter()
            .find(|definition| definition.name == probe.tool)
    }) else {
        return Ok(());
    };
    let right = if definition.name == probe.tool {
        probe.arguments.clone()
    } else {
        valid(definition, Which::Required)
    };
    for (id, title, text) in [
        (
            "unicode",
            "quotes, newlines and several scripts",
            UNICODE.to_owned(),
        ),
        ("long", "a text of 100 KB", "haft ".repeat(LONG / 5)),
    ] {
        let (arguments, _) = with_text(definition, &right, &text);
        let answer = trial.ask(&definition.name, &arguments).await?;
        let check = trial.judge(id, title.to_owned(), &answer);
        let check = match (&answer, id) {
            (Answer::Silence | Answer::Gone(_), "long") => {
                check.level(Level::Warned).fix(advice::LONG)
            }
            (Answer::Silence, _) => check.fix(advice::TEXT),
            _ => check,
        };
        trial.found(check);
    }
    Ok(())
}

/// Checks simultaneous and cancelled calls, for plugins that declare protocol 2.
pub(super) async fn protocol_2(trial: &mut Trial, probe: &Probe, slow: &Probe) -> Result<(), Stop> {
    trial.screen.section("Protocol 2");
    trial.ready().await?;
    trial.sweep();
    let (one, first) = trial.call(&probe.tool, &probe.arguments);
    let (other, second) = trial.call(&probe.tool, &probe.arguments);
    let both = [line(&first), line(&second)];
    let begun = tokio::time::Instant::now();
    for call in &both {
        trial.send(call).await;
    }
    let (answered, gone) = collect(trial, &[one, other], begun + trial.timeout).await;
    let check = match (answered.len(), gone) {
        (2, _) => Check::passed("concurrent", "two calls at once")
            .detail("each answered with its call_id")
            .took(begun.elapsed()),
        (_, Some(how)) => Check::failed("concurrent", "two calls at once")
            .detail(how)
            .fix(advice::CRASHED),
        (count, None) => Check::failed("concurrent", "two calls at once")
            .detail(format!("{count} of 2 answered with its call_id"))
            .fix(advice::CALL_ID),
    };
    trial.found(check);
    if answered.len() < 2 {
        trial.connection = None;
    }
    cancelled(trial, slow).await
}

/// Cancels a call right after sending it.
async fn cancelled(trial: &mut Trial, probe: &Probe) -> Result<(), Stop> {
    trial.ready().await?;
    trial.sweep();
    let (id, call) = trial.call(&probe.tool, &probe.arguments);
    let cancel = line(&json!({ "type": "cancel", "call_id": id }));
    let begun = tokio::time::Instant::now();
    trial.send(&line(&call)).await;
    trial.send(&cancel).await;
    let (answered, gone) = collect(trial, &[id], begun + Duration::from_secs(2)).await;
    let check = match (answered.len(), gone) {
        (1, _) => Check::passed("cancel", "a cancelled call")
            .detail("answered")
            .took(begun.elapsed()),
        (_, Some(how)) => Check::failed("cancel", "a cancelled call")
            .detail(how)
            .fix(advice::CRASHED),
        (_, None) => Check::warned("cancel", "a cancelled call")
            .detail("not answered within 2 seconds")
            .fix(advice::CANCEL),
    };
    trial.found(check);
    if answered.is_empty() {
        trial.connection = None;
        return Ok(());
    }
    let answer = trial.ask(&probe.tool, &probe.arguments).await?;
    let check = trial.judge("after_cancel", "the call after it".to_owned(), &answer);
    trial.found(check);
    Ok(())
}

/// Collects answers to several calls by id, and how the plugin ended, if it did.
async fn collect(
    trial: &mut Trial,
    ids: &[String],
    until: tokio::time::Instant,
) -> (Vec<String>, Option<String>) {
    use super::connection::Next;
    use haft::plugin_protocol as protocol;
    let mut answered = Vec::new();
    while answered.len() < ids.len() {
        match trial.next(until).await {
            Next::Message(message) => {
                let id = protocol::call_id(&message).filter(|id| ids.contains(id));
                if let (Some(id), Some(_)) = (id, protocol::outcome(&message))
                    && !answered.contains(&id)
                {
                    trial.marked += 1;
                    answered.push(id);
                }
            }
            Next::Silence => return (answered, None),
            Next::Gone => return (answered, Some(trial.end().await)),
        }
    }
    (answered, None)
}

fn out_of_step(check: Check) -> Check {
    check
        .level(Level::Failed)
        .detail("an answer belongs to another request")
        .fix(advice::STEP)
}
