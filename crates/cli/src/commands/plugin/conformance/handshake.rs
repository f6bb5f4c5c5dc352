//! Judges the handshake: which protocol the plugin uses, and whether a model could use its
//! tools.

use super::advice;
use super::calls::{Stop, Trial};
use super::observed::Facts;
use super::program;
use super::report::{Check, Level, counted};
use super::screen::shortened;
use haft::Protocol;
use serde_json::{Map, Value};
use std::time::Duration;

/// Time after which haft tries another protocol.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// Time to check that the plugin keeps running.
const SETTLE_TIME: Duration = Duration::from_millis(300);

/// Maximum number of tools that haft uses.
const MAX_TOOLS: usize = 256;

/// Lets the session load the plugin, and checks the definitions.
pub(super) async fn run(trial: &mut Trial, shown: &str, chosen: Protocol) -> Result<(), Stop> {
    trial.section("Handshake");
    trial.runtime.ready().await;
    trial
        .observed
        .until(SETTLE_TIME, |facts| !facts.is_running())
        .await;
    let facts = trial.observed.facts();
    let definition = facts.definition.clone().unwrap_or_default();
    let (took, tools) = (facts.took, facts.tools.clone());
    let (protocol, exit) = (facts.protocol, facts.exited_by_itself());
    let failure = failure(&facts, shown, chosen);
    drop(facts);
    let Some((protocol, is_second)) = protocol else {
        trial.found(failure);
        return Err(Stop);
    };
    (trial.report.protocol, trial.report.is_second) = (Some(protocol), is_second);
    let start = Check::passed("start", "starts and keeps running");
    if let Some(how) = exit {
        let detail = format!("answered, then {how}");
        trial.found(start.level(Level::Failed).detail(detail).fix(advice::ENDED));
        return Err(Stop);
    }
    trial.found(start);
    let version = if is_second { ", version 2" } else { "" };
    let check = Check::passed("describe", "handshake")
        .detail(format!("protocol {protocol}{version}"))
        .took(took);
    trial.found(match took > FIRST_TIMEOUT {
        true => check.level(Level::Warned).fix(advice::SLOW),
        false => check,
    });
    check_tools(trial, definition, tools);
    if trial.tools.is_empty() {
        trial.report.given_up = Some("the plugin has no usable tool".to_owned());
        return Err(Stop);
    }
    Ok(())
}

/// Explains a missing definition.
fn failure(facts: &Facts, shown: &str, chosen: Protocol) -> Check {
    if let Some((refusal, detail)) = &facts.not_started {
        return program::not_started(shown, *refusal, detail);
    }
    // If a flag chose the protocol, the plugin may use another one.
    let fix = |advice: &str| match chosen {
        Protocol::Auto => advice.to_owned(),
        _ => format!("{} {advice}", advice::ONE_PROTOCOL),
    };
    let at_init = |otherwise, at_init| match chosen {
        Protocol::Init => at_init,
        _ => otherwise,
    };
    let check = Check::failed("describe", "handshake");
    if let Some(how) = facts.exited_by_itself() {
        let check = Check::failed("start", "starts and keeps running");
        return check.detail(how).fix(fix(advice::ENDED));
    }
    let mut others = facts.others.iter();
    if let Some(message) = others.find(|other| other.contains("\"type\":\"invalid\"")) {
        let detail = format!("the plugin reports that it cannot be used: {message}");
        return check.detail(detail).fix(advice::INVALID);
    }
    if let Some(other) = facts.others.first().filter(|_| !facts.is_flushed_late) {
        let advice = at_init(advice::DEFINITION, advice::DEFINITION_AT_INIT);
        return check
            .detail(format!("not a definition: {other}"))
            .fix(fix(advice));
    }
    let remark = match facts.output.noise {
        0 => "",
        _ => ", only output that is not a message",
    };
    let advice = match (facts.output.is_unended, facts.is_flushed_late) {
        (true, _) => advice::NEWLINE,
        (false, true) => advice::FLUSH,
        (false, false) => at_init(advice::SILENT, advice::SILENT_AT_INIT),
    };
    check
        .detail(format!("no definition within 10.0 s{remark}"))
        .fix(fix(advice))
}

/// Checks every described tool, and keeps those that can be called. `used` says for each
/// whether haft uses it.
fn check_tools(
    trial: &mut Trial,
    mut definition: Map<String, Value>,
    used: Vec<Result<haft::Definition, String>>,
) {
    let described = match definition.get_mut("tools").map(Value::take) {
        Some(Value::Array(tools)) => tools,
        _ => vec![Value::Object(definition)],
    };
    let failed = |title: String, detail: String, fix: &str| {
        Check::failed("definition", title).detail(detail).fix(fix)
    };
    if described.is_empty() {
        let (title, detail) = ("has tools".to_owned(), "the list is empty".to_owned());
        trial.found(failed(title, detail, advice::DEFINITION));
    }
    if described.len() > MAX_TOOLS {
        trial.found(failed(
            format!("at most {MAX_TOOLS} tools"),
            format!(
                "it has {}, and haft uses only the first ones",
                described.len()
            ),
            "A model cannot choose among so many: split it into several plugins.",
        ));
    }
    for (at, (raw, used)) in described.iter().zip(used).enumerate() {
        let Some(name) = raw.get("name").and_then(Value::as_str) else {
            trial.found(failed(
                format!("definition of tool {}", at + 1),
                "the name is missing or not a string".to_owned(),
                advice::DEFINITION,
            ));
            continue;
        };
        let title = format!("definition of {}", shortened(name.as_bytes(), 70));
        match used {
            Err(reason) => trial.found(failed(title, format!("it {reason}"), advice::DEFINITION)),
            Ok(used) if trial.report.tools.contains(&used.name) => trial.found(failed(
                title,
                "another tool has the same name".to_owned(),
                "Give each tool a unique name.",
            )),
            Ok(used) => {
                let (level, detail, fix) = judged(raw, &used.parameters);
                let check = Check::passed("definition", title);
                trial.found(check.level(level).detail(detail).fix(fix));
                trial.report.tools.push(used.name.clone());
                trial.tools.push(used);
            }
        }
    }
}

/// Judges a definition that can be used.
fn judged(raw: &Value, parameters: &Value) -> (Level, String, &'static str) {
    let has_text = |value: &Value| {
        let text = value.get("description").and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty())
    };
    if !has_text(raw) {
        let detail = "no description, or it is not a string".to_owned();
        return (Level::Failed, detail, advice::DESCRIPTION);
    }
    let names = ["parameters", "input_schema", "inputSchema"];
    let has_schema = |name: &&str| raw.get(name).is_some_and(|schema| !schema.is_null());
    if !names.iter().any(has_schema) {
        let detail = "no parameters, so arguments are passed on unchecked".to_owned();
        return (Level::Warned, detail, advice::PARAMETERS);
    }
    if let Some(kind) = parameters.get("type").filter(|kind| *kind != "object") {
        let detail = format!("the type of parameters is {kind}, not \"object\"");
        return (Level::Failed, detail, advice::DEFINITION);
    }
    let properties = parameters.get("properties").and_then(Value::as_object);
    let properties = properties.cloned().unwrap_or_default();
    let required = parameters.get("required").and_then(Value::as_array);
    let required = required.map(Vec::as_slice).unwrap_or_default();
    let is_closed = parameters.get("additionalProperties") == Some(&Value::Bool(false));
    let mut names = required.iter().filter_map(Value::as_str);
    let missing = names.find(|name| !properties.contains_key(*name));
    if let Some(name) = missing.filter(|_| is_closed) {
        let detail = format!("\"{name}\" is required, but not among the properties");
        return (Level::Failed, detail, advice::REQUIRED);
    }
    let unclear = properties.iter().filter(|(_, schema)| !has_text(schema));
    let unclear: Vec<&str> = unclear.map(|(name, _)| name.as_str()).collect();
    if !unclear.is_empty() {
        let detail = format!("no description of {}", unclear.join(", "));
        return (Level::Warned, detail, advice::UNCLEAR);
    }
    let count = counted(properties.len(), "parameter");
    let detail = format!("{count}, {} required", required.len());
    (Level::Passed, detail, "")
}
