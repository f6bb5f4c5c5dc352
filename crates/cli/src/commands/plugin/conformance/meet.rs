//! How the program introduces itself: which protocol it speaks, and whether a model
//! could use what it describes.

use super::advice;
use super::report::{Check, Level, counted, duration};
use super::screen::shortened;
use super::shape::kind;
use super::talk::Next;
use super::trial::{Stop, Trial, ended, line};
use haft::plugin_protocol::{self as protocol, Introduction};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How long it has to introduce itself, as with the host.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the first question stands alone, as with the host.
const FIRST: Duration = Duration::from_secs(1);

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
    let is_init = introduction.is_init;
    trial.report.protocol = Some(if is_init { "init" } else { "describe" });
    trial.report.is_second = introduction.is_second;
    tools(trial, &message, introduction);
    if trial.tools.is_empty() {
        trial.report.given_up = Some("there is no tool to call".to_owned());
        return Err(Stop);
    }
    Ok(())
}

fn question(is_init: bool) -> Value {
    if is_init {
        json!({ "type": "init", "tools": [] })
    } else {
        json!({ "type": "describe", "protocol": 2 })
    }
}

/// Its definition, from a program that was asked for it in one way only.
async fn introduced(trial: &mut Trial) -> Result<(Map<String, Value>, Introduction), Stop> {
    trial.introduction = question(false);
    let first = first(trial, true).await?;
    let (mut message, mut introduction, mut took, asked_twice) = first;
    if asked_twice {
        // As the host does: no stray answer is left then.
        trial.introduction = question(introduction.is_init);
        trial
            .screen
            .remark("it was asked in two ways: once more, in the one it answers");
        (message, introduction, took, _) = self::first(trial, false).await?;
    }
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
    let spoken = match (introduction.is_init, introduction.is_second) {
        (true, false) => "the protocol init",
        (true, true) => "the protocol init, version 2",
        (false, false) => "the protocol describe",
        (false, true) => "the protocol describe, version 2",
    };
    let check = Check::passed("describe", "it introduces itself")
        .detail(spoken)
        .took(took);
    trial.found(if is_slow {
        check.level(Level::Warned).fix(
            "After one second haft asks in the other protocol too, and has to start it twice. \
             Answer first, and load what is slow at the first call.",
        )
    } else {
        check
    });
    Ok((message, introduction))
}

/// Starts it, asks, and hears its definition; and whether both questions were asked.
async fn first(
    trial: &mut Trial,
    may_ask_twice: bool,
) -> Result<(Map<String, Value>, Introduction, Duration, bool), Stop> {
    trial.start()?;
    let begun = trial
        .talk
        .as_ref()
        .map_or_else(Instant::now, |talk| talk.begun);
    let asked = line(&trial.introduction.clone());
    trial.say(&asked).await;
    let mut asked_twice = false;
    let mut others = Vec::new();
    loop {
        let stands_alone = may_ask_twice && !asked_twice;
        let until = begun + if stands_alone { FIRST } else { PATIENCE };
        match trial.next(until).await {
            Next::Message(message) => {
                if let Some(introduction) = protocol::introduction(&message) {
                    return Ok((message, introduction, begun.elapsed(), asked_twice));
                }
                if message.get("type").is_some_and(|kind| kind == "invalid") {
                    return Err(refused(trial, &message));
                }
                // A banner is none either, but no answer.
                let is_answer = protocol::outcome(&message).is_some();
                if others.len() < OTHERS {
                    others.push(message);
                }
                if !is_answer {
                    continue;
                }
            }
            Next::Silence if stands_alone => {}
            Next::Silence => return Err(silent(trial, &others).await),
            Next::Gone => {
                let how = trial.end().await;
                let check = Check::failed("start", "it starts and stays").detail(how);
                trial.found(check.fix(advice::ENDED));
                return Err(Stop);
            }
        }
        if stands_alone {
            asked_twice = true;
            trial.say(&line(&question(true))).await;
        }
    }
}

/// It says itself that it cannot be used.
fn refused(trial: &mut Trial, message: &Map<String, Value>) -> Stop {
    let words = message
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let check = Check::failed("describe", "it introduces itself")
        .detail(format!("it says that it cannot be used: {words}"))
        .fix("It is the plugin itself that says so, by {\"type\":\"invalid\"}.");
    trial.found(check);
    Stop
}

/// There is no definition. Why not shows when stdin ends.
async fn silent(trial: &mut Trial, others: &[Map<String, Value>]) -> Stop {
    let title = "it introduces itself";
    if let Some(other) = others.first() {
        let text = Value::Object(other.clone()).to_string();
        let check = Check::failed("describe", title)
            .detail(format!(
                "what it answered is no definition: {}",
                shortened(text.as_bytes(), 120)
            ))
            .fix(advice::DEFINITION);
        trial.found(check);
        return Stop;
    }
    let mut fix = advice::SILENT;
    let (unended, noise) = {
        let tally = trial.tallies.lock();
        (tally.unended > 0, tally.noise > 0)
    };
    if unended {
        fix = advice::NEWLINE;
    } else {
        trial
            .screen
            .remark("its stdin is closed, to see whether it says more then");
        if let Some(talk) = &mut trial.talk {
            talk.close();
        }
        if let Next::Message(_) = trial.next(Instant::now() + Duration::from_secs(2)).await {
            fix = advice::FLUSH;
        }
    }
    let said = if noise {
        ", only what is no message"
    } else {
        ""
    };
    let check = Check::failed("describe", title)
        .detail(format!("no definition within {}{said}", duration(PATIENCE)))
        .fix(fix);
    trial.found(check);
    trial.talk = None;
    Stop
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
