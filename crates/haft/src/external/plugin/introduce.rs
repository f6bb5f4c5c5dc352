//! How a plugin is met: which protocol it speaks, and what it says of itself.
//!
//! It is asked to describe itself. When that brings no definition within a second it
//! is asked in the other protocol too; and as it was then asked twice, it is started
//! anew with the one it answered, so that no stray answer is left.

use super::desk::Over;
use super::message::{self, Introduction};
use super::process::Process;
use super::{Host, Protocol, Recheck};
use crate::Error;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

/// How long a plugin has to introduce itself, in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the first question stands alone.
const FIRST: Duration = Duration::from_secs(1);

/// A plugin that has introduced itself.
pub(super) struct Met {
    pub(super) process: Process,
    pub(super) protocol: Protocol,
    pub(super) introduction: Introduction,
}

/// Starts it and hears what it says of itself.
pub(super) async fn meet(host: &Host, protocol: Protocol) -> Result<Met, Error> {
    let deadline = Instant::now() + PATIENCE;
    if protocol != Protocol::Auto {
        return ask(host, protocol, deadline).await;
    }
    let (process, mut introduced, recheck) = begin(host).await?;
    process.say(&question(Protocol::Describe)).await;
    let until = Instant::now() + FIRST;
    let first = loop {
        match hear(&mut introduced, until).await {
            Heard::Banner => {}
            heard => break heard,
        }
    };
    if let Heard::Definition(introduction) = first {
        return met(host, process, Protocol::Describe, introduction, recheck).await;
    }
    if matches!(first, Heard::Invalid(_)) {
        return Err(silent(host, &process, &first).await);
    }
    process.say(&question(Protocol::Init)).await;
    let second = loop {
        match hear(&mut introduced, deadline).await {
            // The refusal of the other question.
            Heard::Other | Heard::Banner => {}
            heard => break heard,
        }
    };
    let Heard::Definition(introduction) = second else {
        return Err(silent(host, &process, &second).await);
    };
    process.end().await;
    let protocol = if introduction.is_init {
        Protocol::Init
    } else {
        Protocol::Describe
    };
    ask(host, protocol, deadline).await
}

/// Starts it and asks in one protocol.
async fn ask(host: &Host, protocol: Protocol, deadline: Instant) -> Result<Met, Error> {
    let (process, mut introduced, recheck) = begin(host).await?;
    process.say(&question(protocol)).await;
    loop {
        match hear(&mut introduced, deadline).await {
            Heard::Definition(introduction) => {
                return met(host, process, protocol, introduction, recheck).await;
            }
            Heard::Other | Heard::Banner => {}
            heard => return Err(silent(host, &process, &heard).await),
        }
    }
}

/// It has introduced itself, so it has loaded what it is: if that is still what was
/// checked, it may be called.
async fn met(
    host: &Host,
    process: Process,
    protocol: Protocol,
    introduction: Introduction,
    recheck: Option<Recheck>,
) -> Result<Met, Error> {
    if let Some(Err(reason)) = recheck.map(|recheck| recheck()) {
        process.end().await;
        return Err(host.failed(format!("was ended before it got a call: {reason}")));
    }
    process.introduced(introduction.is_second);
    Ok(Met {
        process,
        protocol,
        introduction,
    })
}

type Begun = (Process, Receiver<Map<String, Value>>, Option<Recheck>);

async fn begin(host: &Host) -> Result<Begun, Error> {
    let (talk, recheck) = host
        .start()
        .await
        .map_err(|error| host.failed(format!("did not start: {error}")))?;
    let (process, introduced) = Process::new(talk);
    if let Some(line) = &host.plugin.first_line
        && let Ok(line) = serde_json::from_str(line)
    {
        process.say(&line).await;
    }
    Ok((process, introduced, recheck))
}

fn question(protocol: Protocol) -> Value {
    match protocol {
        Protocol::Init => json!({ "type": "init", "tools": [] }),
        Protocol::Auto | Protocol::Describe => json!({ "type": "describe", "protocol": 2 }),
    }
}

enum Heard {
    Definition(Introduction),
    /// It says itself that it cannot be used.
    Invalid(String),
    /// An answer that is no definition.
    Other,
    /// Something that is no answer either.
    Banner,
    Silence,
    Over,
}

async fn hear(introduced: &mut Receiver<Map<String, Value>>, until: Instant) -> Heard {
    let message = match timeout_at(until, introduced.recv()).await {
        Err(_) => return Heard::Silence,
        Ok(None) => return Heard::Over,
        Ok(Some(message)) => message,
    };
    if message.get("type").is_some_and(|kind| kind == "invalid") {
        let words = message.get("message").and_then(Value::as_str);
        return Heard::Invalid(words.unwrap_or_default().to_owned());
    }
    match message::introduction(&message) {
        Some(introduction) => Heard::Definition(introduction),
        None if message::outcome(&message).is_some() => Heard::Other,
        None => {
            tracing::info!("a plugin wrote a message that is no definition");
            Heard::Banner
        }
    }
}

/// Why there is no introduction.
async fn silent(host: &Host, process: &Process, heard: &Heard) -> Error {
    if let Heard::Invalid(words) = heard {
        process.end().await;
        return host.failed(format!("cannot be used: {words}"));
    }
    let over = process.over();
    let (status, words) = process.last_words(over).await;
    let how = match (over, status) {
        (Some(Over::Babbling), _) => "wrote no message, but a great deal else".to_owned(),
        (Some(Over::Ended), Some(haft_ops::executor::Exit::Code(code))) => {
            format!("exited at its start (code {code})")
        }
        (Some(Over::Ended), Some(haft_ops::executor::Exit::Signal(signal))) => {
            format!("exited at its start (signal {signal})")
        }
        (Some(Over::Ended | Over::Left | Over::Unnamed), _) => {
            "closed its output at its start".to_owned()
        }
        (None, _) => format!(
            "did not say within {} seconds which tools it has",
            PATIENCE.as_secs()
        ),
    };
    let said = if words.is_empty() {
        String::new()
    } else {
        format!("; its last words:\n{words}")
    };
    host.failed(format!("{how}{said}"))
}
