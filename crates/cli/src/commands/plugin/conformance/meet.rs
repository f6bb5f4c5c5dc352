//! How the program introduces itself: which protocol it speaks, and whether a model
//! could use what it describes.

use super::advice;
use super::report::{Check, Level, counted, duration};
use super::screen::shortened;
use super::shape::kind;
use super::talk::{Next, Talk};
use super::trial::{Stop, Trial, ended, line};
use haft::plugin_protocol::{self as protocol, Introduction, Question};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;

/// How long it has to introduce itself, as with the host.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the first question stands alone, as with the host.
const FIRST: Duration = Duration::from_secs(1);

/// How much longer than the first time it may take to introduce itself again.
const SLACK: Duration = Duration::from_secs(2);

/// How long it is watched whether it stays.
const WATCHED: Duration = Duration::from_millis(100);

/// How many messages are kept that are no definition.
const OTHERS: usize = 10;

/// How many tools a plugin may have, as with the host.
const MOST_TOOLS: usize = 256;

/// Meets it, and looks at its definition.
pub(super) async fn meet(trial: &mut Trial) -> Result<(), Stop> {
    trial.screen.section("Introduction");
    let (message, introduction) = introduced(trial).await?;
    trial.report.protocol = Some(trial.question.protocol());
    trial.report.is_second = introduction.is_second;
    tools(trial, &message, introduction);
    if trial.tools.is_empty() {
        trial.report.given_up = Some("there is no tool to call".to_owned());
        return Err(Stop);
    }
    Ok(())
}

/// Its definition, from a program that was asked for it in one way only.
async fn introduced(trial: &mut Trial) -> Result<(Map<String, Value>, Introduction), Stop> {
    let Introduced {
        message,
        introduction,
        took,
    } = asked(trial).await?;
    let is_slow = took > FIRST;
    let status = match &mut trial.talk {
        Some(talk) => talk.ended(WATCHED).await,
        None => None,
    };
    if let Some(status) = status {
        let check = Check::failed("start", "it starts and stays")
            .detail(format!("it answered, then {}", ended(status)))
            .fix(advice::ENDED);
        trial.found(check);
        trial.talk = None;
        return Err(Stop);
    }
    trial.found(Check::passed("start", "it starts and stays"));
    let version = match introduction.is_second {
        true => ", version 2",
        false => "",
    };
    let spoken = format!("the protocol {}{version}", trial.question.protocol());
    let check = Check::passed("describe", "it introduces itself")
        .detail(spoken)
        .took(took);
    trial.found(if is_slow {
        check.level(Level::Warned).fix(
            "After one second haft asks in the other protocol too, and has to start it twice. \
             Answer first, and load what is slow at the first call; or set `protocol` in its \
             entry in haft.yaml, and `start_timeout` if it needs more than 10 seconds.",
        )
    } else {
        check
    });
    Ok((message, introduction))
}

/// Its definition.
struct Introduced {
    message: Map<String, Value>,
    introduction: Introduction,
    took: Duration,
}

/// What came of asking a program that was just started.
enum Asked {
    Introduced(Introduced, Vec<Question>),
    /// It exited after it had read what it was asked, or is to be asked in another way.
    Gone(Check),
    /// It gave no definition, and there is a check that says so.
    Stopped,
}

/// Asks as the host does: one question after the other, then the one that was answered
/// alone, so that no stray answer is left.
async fn asked(trial: &mut Trial) -> Result<Introduced, Stop> {
    let questions = trial.questions.clone();
    let mut again = PATIENCE;
    let (alone, failure) = match ask(trial, &questions, None).await? {
        Asked::Stopped => return Err(Stop),
        Asked::Introduced(introduced, asked) => {
            if let [only] = asked.as_slice() {
                trial.question = *only;
                return Ok(introduced);
            }
            trial
                .screen
                .remark("it was asked in several ways: once more, in the one it answers");
            again = PATIENCE.min(introduced.took * 2 + SLACK);
            (introduced.introduction.answers(&asked), None)
        }
        Asked::Gone(check) => {
            let others = questions.get(1..).unwrap_or_default().to_vec();
            if !others.is_empty() {
                trial
                    .screen
                    .remark("it exited: it is started again and asked in another way");
            }
            (others, Some(check))
        }
    };
    let mut last = failure;
    for (at, question) in alone.iter().copied().enumerate() {
        let is_last = at + 1 == alone.len();
        match ask(trial, &[question], Some(again).filter(|_| !is_last)).await? {
            Asked::Introduced(introduced, _) => {
                trial.question = question;
                return Ok(introduced);
            }
            Asked::Stopped => return Err(Stop),
            Asked::Gone(check) => last = last.or(Some(check)),
        }
    }
    trial.found(last.unwrap_or_else(|| {
        Check::failed("describe", "it introduces itself")
            .detail("it was asked nothing")
            .fix(advice::DEFINITION)
    }));
    Err(Stop)
}

/// Starts it, asks, and hears its definition. If it may be asked in another way later, it
/// has less time.
async fn ask(
    trial: &mut Trial,
    questions: &[Question],
    less: Option<Duration>,
) -> Result<Asked, Stop> {
    trial.start()?;
    let begun = trial
        .talk
        .as_ref()
        .map_or_else(Instant::now, |talk| talk.begun);
    let mut others = Vec::new();
    for (at, question) in questions.iter().enumerate() {
        trial.say(&line(&question.message())).await;
        let asked = questions.get(..=at).unwrap_or_default();
        let is_last = asked.len() == questions.len();
        let until = match is_last {
            true => begun + less.unwrap_or(PATIENCE),
            false => Instant::now() + FIRST,
        };
        loop {
            let message = match trial.next(until).await {
                Next::Message(message) => message,
                Next::Silence if is_last && less.is_some() => {
                    let check = Check::failed("describe", "it introduces itself");
                    let fix = fix(trial, advice::SILENT);
                    return Ok(Asked::Gone(check.detail("no definition").fix(fix)));
                }
                Next::Silence if is_last => {
                    silent(trial, &others).await;
                    return Ok(Asked::Stopped);
                }
                Next::Silence => break,
                Next::Gone => {
                    let has_read = trial.talk.as_ref().is_some_and(Talk::has_read_all);
                    let how = trial.end().await;
                    let check = Check::failed("start", "it starts and stays").detail(how);
                    let check = check.fix(fix(trial, advice::ENDED));
                    if has_read {
                        return Ok(Asked::Gone(check));
                    }
                    trial.found(check);
                    return Ok(Asked::Stopped);
                }
            };
            if let Some(introduction) = protocol::introduction(&message) {
                let introduced = Introduced {
                    message,
                    introduction,
                    took: begun.elapsed(),
                };
                return Ok(Asked::Introduced(introduced, asked.to_vec()));
            }
            if message.get("type").is_some_and(|kind| kind == "invalid") {
                refused(trial, &message);
                return Ok(Asked::Stopped);
            }
            // A banner is not a definition either, but not an answer.
            let is_answer = protocol::outcome(&message).is_some();
            if others.len() < OTHERS {
                others.push(message);
            }
            if is_answer && !is_last {
                break;
            }
        }
    }
    Ok(Asked::Stopped)
}

/// What to do, in the words of the protocol that it was asked in. If that was chosen by a
/// flag, it may speak another.
fn fix(trial: &Trial, advice: &'static str) -> String {
    let is_of = |protocol: &str| {
        let mut questions = trial.questions.iter();
        questions.all(|question| question.protocol() == protocol)
    };
    let is_init = is_of("init");
    let advice = match advice {
        advice::SILENT if is_init => advice::SILENT_AT_INIT,
        advice::DEFINITION if is_init => advice::DEFINITION_AT_INIT,
        other => other,
    };
    match is_init || is_of("describe") {
        true => format!("{} {advice}", advice::ONE_PROTOCOL),
        false => advice.to_owned(),
    }
}

/// It says itself that it cannot be used.
fn refused(trial: &mut Trial, message: &Map<String, Value>) {
    let words = message
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let check = Check::failed("describe", "it introduces itself")
        .detail(format!("it says that it cannot be used: {words}"))
        .fix("It is the plugin itself that says so, by {\"type\":\"invalid\"}.");
    trial.found(check);
}

/// There is no definition. Why not shows when stdin ends.
async fn silent(trial: &mut Trial, others: &[Map<String, Value>]) {
    let title = "it introduces itself";
    if let Some(other) = others.first() {
        let text = Value::Object(other.clone()).to_string();
        let check = Check::failed("describe", title)
            .detail(format!(
                "what it answered is no definition: {}",
                shortened(text.as_bytes(), 120)
            ))
            .fix(fix(trial, advice::DEFINITION));
        trial.found(check);
        return;
    }
    let mut advice = advice::SILENT;
    let (unended, noise) = {
        let tally = trial.tallies.lock();
        (tally.unended > 0, tally.noise > 0)
    };
    if unended {
        advice = advice::NEWLINE;
    } else {
        trial
            .screen
            .remark("its stdin is closed, to see whether it says more then");
        if let Some(talk) = &mut trial.talk {
            talk.close();
        }
        if let Next::Message(_) = trial.next(Instant::now() + Duration::from_secs(2)).await {
            advice = advice::FLUSH;
        }
    }
    let said = if noise {
        ", only what is no message"
    } else {
        ""
    };
    let check = Check::failed("describe", title)
        .detail(format!("no definition within {}{said}", duration(PATIENCE)))
        .fix(fix(trial, advice));
    trial.found(check);
    trial.talk = None;
}

/// Looks at every tool that it describes, and keeps those that can be called.
fn tools(trial: &mut Trial, message: &Map<String, Value>, introduction: Introduction) {
    let whole = Value::Object(message.clone());
    let raw: Vec<&Value> = match message.get("tools") {
        Some(Value::Array(tools)) => tools.iter().collect(),
        _ => vec![&whole],
    };
    if raw.is_empty() {
        let check = Check::failed("definition", "it has tools")
            .detail("the list is empty")
            .fix(advice::DEFINITION);
        trial.found(check);
    }
    if raw.len() > MOST_TOOLS {
        let check = Check::failed("definition", format!("it has at most {MOST_TOOLS} tools"))
            .detail(format!(
                "it has {}, and haft takes the first ones",
                raw.len()
            ))
            .fix("A model cannot choose among so many: make several plugins of it.");
        trial.found(check);
    }
    let is_named = |tool: &Value| tool.get("name").is_some_and(Value::is_string);
    for (at, _) in raw.iter().enumerate().filter(|(_, tool)| !is_named(tool)) {
        let check = Check::failed("definition", format!("the definition of tool {}", at + 1))
            .detail("it has no name that is a string")
            .fix(advice::DEFINITION);
        trial.found(check);
    }
    let named = raw.into_iter().filter(|tool| is_named(tool));
    for (raw, described) in named.zip(introduction.tools).take(MOST_TOOLS) {
        let name = described.name.clone();
        let title = format!("the definition of {}", shortened(name.as_bytes(), 70));
        if trial.report.tools.contains(&name) {
            let check = Check::failed("definition", title)
                .detail("another tool has the same name")
                .fix("Give each tool a name of its own.");
            trial.found(check);
            continue;
        }
        match protocol::definition(described) {
            Ok(definition) => {
                trial.found(judged(title, raw, &definition.parameters));
                trial.report.tools.push(name);
                trial.tools.push(definition);
            }
            Err(reason) => {
                let check = Check::failed("definition", title)
                    .detail(format!("it {reason}"))
                    .fix(advice::DEFINITION);
                trial.found(check);
            }
        }
    }
}

/// What there is to say about a definition that can be used.
fn judged(title: String, raw: &Value, parameters: &Value) -> Check {
    let failed = |detail: String, fix: &str| {
        Check::failed("definition", title.clone())
            .detail(detail)
            .fix(fix)
    };
    let warned = |detail: String, fix: &str| {
        Check::warned("definition", title.clone())
            .detail(detail)
            .fix(fix)
    };
    match raw.get("description") {
        Some(Value::String(text)) if !text.trim().is_empty() => {}
        Some(other) if !other.is_string() && !other.is_null() => {
            return failed(
                format!("its description is {}", kind(other)),
                advice::DEFINITION,
            );
        }
        _ => {
            return failed(
                "it has no description".to_owned(),
                "The description is all that a model knows of the tool: say what it does, when to \
                 use it, and what it answers.",
            );
        }
    }
    let given = ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|name| raw.get(name).filter(|schema| !schema.is_null()));
    if given.is_none() {
        return warned(
            "it has no parameters, so anything is passed on unchecked".to_owned(),
            "Add \"parameters\":{\"type\":\"object\",\"properties\":{…}}; with empty properties if it \
             takes none.",
        );
    }
    if let Some(other) = parameters.get("type").filter(|kind| *kind != "object") {
        return failed(
            format!("the type of its parameters is {other}, not \"object\""),
            advice::DEFINITION,
        );
    }
    let none = Map::new();
    let properties = match parameters.get("properties") {
        Some(Value::Object(properties)) => properties,
        _ => &none,
    };
    let required: Vec<&str> = parameters
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if parameters.get("additionalProperties") == Some(&Value::Bool(false))
        && let Some(name) = required
            .iter()
            .find(|name| !properties.contains_key(**name))
    {
        return failed(
            format!("\"{name}\" is required, but not among its properties"),
            "haft refuses what the properties do not list, so nobody could ever call it: describe \
             the parameter, or take it from required.",
        );
    }
    let silent: Vec<&str> = properties
        .iter()
        .filter(|(_, schema)| {
            let text = schema.get("description").and_then(Value::as_str);
            text.is_none_or(|text| text.trim().is_empty())
        })
        .map(|(name, _)| name.as_str())
        .collect();
    if !silent.is_empty() {
        return warned(
            format!("no description of {}", silent.join(", ")),
            "A model guesses what a parameter means that nobody described: give each a \
             \"description\", with an example of a value.",
        );
    }
    Check::passed("definition", title).detail(format!(
        "{}, {} required",
        counted(properties.len(), "parameter"),
        required.len()
    ))
}
