//! Checks the handshake: which protocol the plugin uses, and whether a model could use
//! its tools.

use super::advice;
use super::connection::{Connection, Next};
use super::report::{Check, Level, counted, duration};
use super::screen::shortened;
use super::shape::kind;
use super::trial::{Stop, Trial, describe_exit, line};
use haft::plugin_protocol::{self as protocol, Introduction, Question};
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::time::Instant;

/// Time for the handshake, same as in the host.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time before the second protocol is tried, same as in the host.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// Extra time for a repeated handshake.
const SLACK: Duration = Duration::from_secs(2);

/// Time to check that the plugin keeps running.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// Maximum number of other messages that are kept.
const MAX_OTHERS: usize = 10;

/// Maximum number of tools, same as in the host.
const MAX_TOOLS: usize = 256;

/// Performs the handshake and checks the definitions.
pub(super) async fn run(trial: &mut Trial) -> Result<(), Stop> {
    trial.screen.section("Handshake");
    let (message, introduction) = definition(trial).await?;
    trial.report.protocol = Some(trial.question.protocol());
    trial.report.is_second = introduction.is_second;
    tools(trial, &message, introduction);
    if trial.tools.is_empty() {
        trial.report.given_up = Some("the plugin has no usable tool".to_owned());
        return Err(Stop);
    }
    Ok(())
}

/// Gets the definition from a plugin that was asked in one protocol only.
async fn definition(trial: &mut Trial) -> Result<(Map<String, Value>, Introduction), Stop> {
    let Introduced {
        message,
        introduction,
        took,
    } = negotiate(trial).await?;
    let is_slow = took > FIRST_TIMEOUT;
    let status = match &mut trial.connection {
        Some(connection) => connection.exit_status(SETTLE_TIME).await,
        None => None,
    };
    if let Some(status) = status {
        let check = Check::failed("start", "starts and keeps running")
            .detail(format!("answered, then {}", describe_exit(status)))
            .fix(advice::ENDED);
        trial.found(check);
        trial.connection = None;
        return Err(Stop);
    }
    trial.found(Check::passed("start", "starts and keeps running"));
    let version = match introduction.is_second {
        true => ", version 2",
        false => "",
    };
    let protocol = format!("protocol {}{version}", trial.question.protocol());
    let check = Check::passed("describe", "handshake")
        .detail(protocol)
        .took(took);
    trial.found(if is_slow {
        check.level(Level::Warned).fix(
            "After one second haft tries the other protocol too and has to start the plugin twice. \
             Answer first and do slow work on the first call; or set `protocol` in haft.yaml, \
             and `start_timeout` if it needs more than 10 seconds.",
        )
    } else {
        check
    });
    Ok((message, introduction))
}

/// The plugin's definition.
struct Introduced {
    message: Map<String, Value>,
    introduction: Introduction,
    took: Duration,
}

/// Result of asking a plugin that was just started.
enum HandshakeResult {
    Introduced(Introduced, Vec<Question>),
    /// It exited after reading the request, or gave no definition; another protocol may
    /// work.
    Gone(Check),
    /// It gave no definition; the check is already reported.
    Stopped,
}

/// Asks as the host does: one protocol after the other, then again only the one that was
/// answered, so that no unexpected answer remains.
async fn negotiate(trial: &mut Trial) -> Result<Introduced, Stop> {
    let questions = trial.questions.clone();
    let mut again = HANDSHAKE_TIMEOUT;
    let (alone, failure) = match ask(trial, &questions, None).await? {
        HandshakeResult::Stopped => return Err(Stop),
        HandshakeResult::Introduced(introduced, asked) => {
            if let [only] = asked.as_slice() {
                trial.question = *only;
                return Ok(introduced);
            }
            trial
                .screen
                .remark("several protocols were tried: asking again with the one it answered");
            again = HANDSHAKE_TIMEOUT.min(introduced.took * 2 + SLACK);
            (introduced.introduction.answers(&asked), None)
        }
        HandshakeResult::Gone(check) => {
            let others = questions.get(1..).unwrap_or_default().to_vec();
            if !others.is_empty() {
                trial
                    .screen
                    .remark("it exited: restarting it with another protocol");
            }
            (others, Some(check))
        }
    };
    let mut last = failure;
    for (at, question) in alone.iter().copied().enumerate() {
        let is_last = at + 1 == alone.len();
        match ask(trial, &[question], Some(again).filter(|_| !is_last)).await? {
            HandshakeResult::Introduced(introduced, _) => {
                trial.question = question;
                return Ok(introduced);
            }
            HandshakeResult::Stopped => return Err(Stop),
            HandshakeResult::Gone(check) => last = last.or(Some(check)),
        }
    }
    trial.found(last.unwrap_or_else(|| {
        Check::failed("describe", "handshake")
            .detail("no protocol was tried")
            .fix(advice::DEFINITION)
    }));
    Err(Stop)
}

/// Starts the plugin and asks for its definition. `less` is a shorter time limit, used if
/// another protocol can be tried later.
async fn ask(
    trial: &mut Trial,
    questions: &[Question],
    less: Option<Duration>,
) -> Result<HandshakeResult, Stop> {
    trial.start()?;
    let begun = trial
        .connection
        .as_ref()
        .map_or_else(Instant::now, |connection| connection.begun);
    let mut others = Vec::new();
    for (at, question) in questions.iter().enumerate() {
        trial.send(&line(&question.message())).await;
        let asked = questions.get(..=at).unwrap_or_default();
        let is_last = asked.len() == questions.len();
        let until = match is_last {
            true => begun + less.unwrap_or(HANDSHAKE_TIMEOUT),
            false => Instant::now() + FIRST_TIMEOUT,
        };
        loop {
            let message = match trial.next(until).await {
                Next::Message(message) => message,
                Next::Silence if is_last && less.is_some() => {
                    let check = Check::failed("describe", "handshake");
                    let fix = fix(trial, advice::SILENT);
                    return Ok(HandshakeResult::Gone(
                        check.detail("no definition").fix(fix),
                    ));
                }
                Next::Silence if is_last => {
                    report_silence(trial, &others).await;
                    return Ok(HandshakeResult::Stopped);
                }
                Next::Silence => break,
                Next::Gone => {
                    let has_read = trial
                        .connection
                        .as_ref()
                        .is_some_and(Connection::has_read_all);
                    let how = trial.end().await;
                    let check = Check::failed("start", "starts and keeps running").detail(how);
                    let check = check.fix(fix(trial, advice::ENDED));
                    if has_read {
                        return Ok(HandshakeResult::Gone(check));
                    }
                    trial.found(check);
                    return Ok(HandshakeResult::Stopped);
                }
            };
            if let Some(introduction) = protocol::introduction(&message) {
                let introduced = Introduced {
                    message,
                    introduction,
                    took: begun.elapsed(),
                };
                return Ok(HandshakeResult::Introduced(introduced, asked.to_vec()));
            }
            if message.get("type").is_some_and(|kind| kind == "invalid") {
                report_invalid(trial, &message);
                return Ok(HandshakeResult::Stopped);
            }
            // A banner is neither a definition nor an answer.
            let is_answer = protocol::outcome(&message).is_some();
            if others.len() < MAX_OTHERS {
                others.push(message);
            }
            if is_answer && !is_last {
                break;
            }
        }
    }
    Ok(HandshakeResult::Stopped)
}

/// Returns advice for the protocol that was tried. If a flag chose it, the plugin may use
/// another one.
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

/// The plugin itself reports that it cannot be used.
fn report_invalid(trial: &mut Trial, message: &Map<String, Value>) {
    let words = message
        .get("message")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let check = Check::failed("describe", "handshake")
        .detail(format!(
            "the plugin reports that it cannot be used: {words}"
        ))
        .fix("The plugin itself sent {\"type\":\"invalid\"}; its message says why.");
    trial.found(check);
}

/// Reports a missing definition. Closing stdin shows whether the answer was only
/// buffered.
async fn report_silence(trial: &mut Trial, others: &[Map<String, Value>]) {
    let title = "handshake";
    if let Some(other) = others.first() {
        let text = Value::Object(other.clone()).to_string();
        let check = Check::failed("describe", title)
            .detail(format!(
                "not a definition: {}",
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
            .remark("closing its stdin to see whether more output comes");
        if let Some(connection) = &mut trial.connection {
            connection.close();
        }
        if let Next::Message(_) = trial.next(Instant::now() + Duration::from_secs(2)).await {
            advice = advice::FLUSH;
        }
    }
    let remark = if noise {
        ", only output that is not a message"
    } else {
        ""
    };
    let check = Check::failed("describe", title)
        .detail(format!(
            "no definition within {}{remark}",
            duration(HANDSHAKE_TIMEOUT)
        ))
        .fix(fix(trial, advice));
    trial.found(check);
    trial.connection = None;
}

/// Checks every described tool, and keeps those that can be called.
fn tools(trial: &mut Trial, message: &Map<String, Value>, introduction: Introduction) {
    let whole = Value::Object(message.clone());
    let raw: Vec<&Value> = match message.get("tools") {
        Some(Value::Array(tools)) => tools.iter().collect(),
        _ => vec![&whole],
    };
    if raw.is_empty() {
        let check = Check::failed("definition", "has tools")
            .detail("the list is empty")
            .fix(advice::DEFINITION);
        trial.found(check);
    }
    if raw.len() > MAX_TOOLS {
        let check = Check::failed("definition", format!("at most {MAX_TOOLS} tools"))
            .detail(format!(
                "it has {}, and haft uses only the first ones",
                raw.len()
            ))
            .fix("A model cannot choose among so many: split it into several plugins.");
        trial.found(check);
    }
    let is_named = |tool: &Value| tool.get("name").is_some_and(Value::is_string);
    for (at, _) in raw.iter().enumerate().filter(|(_, tool)| !is_named(tool)) {
        let check = Check::failed("definition", format!("definition of tool {}", at + 1))
            .detail("the name is missing or not a string")
            .fix(advice::DEFINITION);
        trial.found(check);
    }
    let named = raw.into_iter().filter(|tool| is_named(tool));
    for (raw, described) in named.zip(introduction.tools).take(MAX_TOOLS) {
        let name = described.name.clone();
        let title = format!("definition of {}", shortened(name.as_bytes(), 70));
        if trial.report.tools.contains(&name) {
            let check = Check::failed("definition", title)
                .detail("another tool has the same name")
                .fix("Give each tool a unique name.");
            trial.found(check);
            continue;
        }
        match protocol::definition(described) {
            Ok(definition) => {
                trial.found(check_definition(title, raw, &definition.parameters));
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

/// Checks a definition that can be used.
fn check_definition(title: String, raw: &Value, parameters: &Value) -> Check {
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
                format!("the description is {}", kind(other)),
                advice::DEFINITION,
            );
        }
        _ => {
            return failed(
                "no description".to_owned(),
                "The description is all that a model knows about the tool: say what it does, when to \
                 use it, and what it returns.",
            );
        }
    }
    let given = ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|name| raw.get(name).filter(|schema| !schema.is_null()));
    if given.is_none() {
        return warned(
            "no parameters, so arguments are passed on unchecked".to_owned(),
            "Add \"parameters\":{\"type\":\"object\",\"properties\":{…}}, with empty properties if there \
             are none.",
        );
    }
    if let Some(other) = parameters.get("type").filter(|kind| *kind != "object") {
        return failed(
            format!("the type of parameters is {other}, not \"object\""),
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
            format!("\"{name}\" is required, but not among the properties"),
            "haft refuses arguments that are not in properties, so the tool can never be called: add \
             the parameter to properties, or remove it from required.",
        );
    }
    let undescribed: Vec<&str> = properties
        .iter()
        .filter(|(_, schema)| {
            let text = schema.get("description").and_then(Value::as_str);
            text.is_none_or(|text| text.trim().is_empty())
        })
        .map(|(name, _)| name.as_str())
        .collect();
    if !undescribed.is_empty() {
        return warned(
            format!("no description of {}", undescribed.join(", ")),
            "A model has to guess what a parameter without a description means: give each a \
             \"description\" with an example value.",
        );
    }
    Check::passed("definition", title).detail(format!(
        "{}, {} required",
        counted(properties.len(), "parameter"),
        required.len()
    ))
}
