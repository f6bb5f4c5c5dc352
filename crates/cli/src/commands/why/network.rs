//! `haft why network`: explains whether commands may connect to a host.

use crate::exit::Failure;
use crate::{confinement, text};
use haft::ops::executor::sandbox::Enforcement;
use haft::{Approve, ConnectionJudgement, DecidedBy, NETWORK, NetworkHost, Verdict};
use haft_config::commands::Executor;
use haft_config::{Settings, permissions};
use serde_json::{Value, json};

/// The port that is meant if none is named.
const USUAL_PORT: u16 = 443;

/// The decision about a connection, and what it means here.
pub(super) struct Explained {
    judged: ConnectionJudgement,
    command: Option<String>,
    outcome: String,
    suggestion: Option<String>,
}

/// Decides about the connection that the arguments describe.
pub(super) fn explain(settings: &Settings, arguments: &Value) -> Result<Explained, Failure> {
    let wrong = |what: &str| {
        Failure::usage(format!("why network: {what}")).hint(
            "use `haft why network host=api.example.com`, with `port=8443` or `command='cargo build'` if they matter",
        )
    };
    let Value::Object(fields) = arguments else {
        return Err(wrong("the arguments must be an object"));
    };
    if let Some(other) = fields
        .keys()
        .find(|name| !["host", "port", "command"].contains(&name.as_str()))
    {
        return Err(wrong(&format!("unknown argument \"{other}\"")));
    }
    let Some(host) = fields.get("host").and_then(Value::as_str) else {
        return Err(wrong("host is missing"));
    };
    let port = match fields.get("port") {
        None => None,
        Some(port) => {
            let text = port
                .as_str()
                .map_or_else(|| port.to_string(), str::to_owned);
            let port = text.parse::<u16>().ok().filter(|port| *port != 0);
            Some(port.ok_or_else(|| wrong("port must be a number from 1 to 65535"))?)
        }
    };
    let command = match fields.get("command") {
        None => None,
        Some(Value::String(command)) => Some(command.clone()),
        Some(_) => return Err(wrong("command must be text")),
    };
    let written = match port {
        Some(port) if NetworkHost::parse(host).map_or(true, |host| host.port().is_none()) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            haft::host_and_port(bare, port)
        }
        _ => host.to_owned(),
    };
    let parsed = NetworkHost::parse(&written).map_err(|problem| wrong(&problem))?;
    if !parsed.is_exact() {
        return Err(wrong("name one host, without a star"));
    }
    let port = parsed.port().or(port).unwrap_or(USUAL_PORT);
    let judged = settings
        .policy
        .explain_connection(parsed.name(), port, command.as_deref());
    let judged = effective(settings, judged);
    let suggestion = (judged.verdict != Verdict::Allow && parsed.loopback_port().is_none())
        .then(|| format!("{{ allow: {NETWORK}, host: {} }}", quoted(parsed.name())));
    Ok(Explained {
        outcome: outcome(settings, &judged),
        judged,
        command,
        suggestion: suggestion.filter(|_| !is_unjudged(settings)),
    })
}

/// Whether connections of commands are not judged one by one.
fn is_unjudged(settings: &Settings) -> bool {
    settings.policy.network().is_whole
        || confinement::is_off(settings)
        || settings.commands.executor != Executor::Local
}

/// Returns the decision with everything that stands above the rules.
fn effective(settings: &Settings, mut judged: ConnectionJudgement) -> ConnectionJudgement {
    let access = settings.policy.network();
    let (verdict, why) = if settings.commands.executor != Executor::Local {
        (Verdict::Allow, "commands run on another machine".to_owned())
    } else if confinement::is_off(settings) {
        (Verdict::Allow, "the sandbox is off".to_owned())
    } else if access.is_whole {
        (Verdict::Allow, format!("{}: network: on", access.from))
    } else if judged.verdict != Verdict::Deny
        && !matches!(confinement::probe(), Enforcement::Full { .. })
    {
        let why = "hosts cannot be opened one by one on this machine (`haft doctor`)";
        (Verdict::Deny, why.to_owned())
    } else {
        return judged;
    };
    judged.verdict = verdict;
    judged.by = DecidedBy::Session(why);
    judged
}

fn outcome(settings: &Settings, judged: &ConnectionJudgement) -> String {
    let address = match judged.may_be_private {
        true => "whatever its address",
        false => "if it has a public address",
    };
    match (judged.verdict, settings.approve) {
        (Verdict::Allow, _) if is_unjudged(settings) => "connects; haft does not look at it".into(),
        (Verdict::Allow | Verdict::Review, _) => format!("connects through haft, {address}"),
        (Verdict::Deny, _) => "refused; its name is not looked up".to_owned(),
        (Verdict::Ask, Approve::Ask) => {
            "asks the user while the connection waits; refused if no user can be asked".to_owned()
        }
        (Verdict::Ask, Approve::Auto) => {
            format!("connects as if the user had approved it, {address}")
        }
        (Verdict::Ask, Approve::Never) => "refused as if the user had rejected it".to_owned(),
    }
}

fn quoted(name: &str) -> String {
    match name.contains(':') {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    }
}

impl Explained {
    pub(super) fn as_text(&self, settings: &Settings) -> String {
        let judged = &self.judged;
        let row = vec![
            format!("host {}", judged.to),
            judged.verdict.to_string(),
            super::on_a_line(&judged.by.to_string()),
        ];
        let mut out = format!("{}\n\n{}", judged.verdict, text::table(&[row], None));
        let name = permissions::approve_name(settings.approve);
        out.push_str(&format!("\napprove {name}: {}\n", self.outcome));
        if let Some(rule) = &self.suggestion {
            out.push_str("to allow it, add this at the top of `policy` in your own settings:\n");
            out.push_str(&format!("  - {rule}\n"));
        }
        for line in confinement::rules(settings) {
            out.push_str(&format!("{line}\n"));
        }
        out
    }

    pub(super) fn as_json(&self, settings: &Settings) -> Value {
        let judged = &self.judged;
        let parts: Vec<Value> = judged
            .as_judgement()
            .parts
            .iter()
            .map(super::part_json)
            .collect();
        json!({
            "decision": judged.verdict.name(),
            "tool": NETWORK,
            "host": judged.to,
            "command": self.command,
            "rules": parts,
            "may_be_private": judged.may_be_private,
            "approve": permissions::approve_name(settings.approve),
            "outcome": self.outcome,
            "suggestion": self.suggestion,
            "sandbox": settings.mode,
            "where": confinement::rules(settings),
        })
    }
}
