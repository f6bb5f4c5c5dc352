//! `haft why`: explains whether a call would be allowed, and by which rule. Nothing runs,
//! and the user is not asked.

mod network;

use super::call::arguments::{self, Arguments};
use crate::args::{Shared, Why};
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{confinement, output, text};
use haft::ops::text::decode::visible;
use haft::{Approve, Call, DecidedBy, Effect, Explained, JudgedPart, Refused, Subject, Verdict};
use haft_config::{Settings, permissions};
use serde_json::{Value, json};

/// Prints the decision and its reasons.
pub(crate) fn run(shared: &Shared, args: &Why) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    if args.tool == haft::NETWORK {
        return match given(&args.arguments)? {
            Ok(arguments) => about_network(&settings, &arguments, args.json),
            Err(exit) => Ok(exit),
        };
    }
    if args.tool == "unsandboxed" {
        return Err(Failure::usage("`unsandboxed` is not a tool, and no rule can allow it")
            .hint("the model can request it for a command, and you then allow it once (Access beyond the sandbox in docs/policy.md)"));
    }
    let runtime = session::build(&settings, Offer::Every)?;
    // A plugin's tools are known only after it has started.
    if runtime.tools().get(&args.tool).is_none() {
        signals::block_on(async {
            session::ready(&runtime, settings.quiet).await;
            session::close(&runtime).await;
            Ok(Exit::Done)
        })?;
    }
    if runtime.tools().get(&args.tool).is_none() {
        return Err(session::unknown_tool(&runtime, &args.tool));
    }
    let given = match given(&args.arguments)? {
        Ok(arguments) => arguments,
        Err(exit) => return Ok(exit),
    };
    let explained = runtime
        .explain(&Call::new(&args.tool, given))
        .map_err(|error| Failure::usage(error.to_string()))?;
    if args.json {
        output::json(&as_json(&args.tool, &settings, &explained))?;
    } else {
        output::text(&as_text(&args.tool, &settings, &explained))?;
    }
    Ok(Exit::Done)
}

/// Explains a connection of a command.
fn about_network(settings: &Settings, arguments: &Value, json: bool) -> Result<Exit, Failure> {
    let explained = network::explain(settings, arguments)?;
    match json {
        true => output::json(&explained.as_json(settings))?,
        false => output::text(&explained.as_text(settings))?,
    }
    Ok(Exit::Done)
}

/// Returns the arguments, or how the program ends if a signal comes first.
fn given(written: &[String]) -> Result<Result<Value, Exit>, Failure> {
    match arguments::parse(written)? {
        Arguments::Given(arguments) => Ok(Ok(arguments)),
        Arguments::Stdin => signals::block_on(async {
            let mut signals = Signals::listen()?;
            tokio::select! {
                arguments = arguments::from_stdin() => arguments.map(Ok),
                exit = signals.next() => Ok(Err(exit)),
            }
        }),
    }
}

fn as_text(tool: &str, settings: &Settings, explained: &Explained) -> String {
    let verdict = explained.verdict();
    let mut out = format!("{verdict}\n\n");
    let mut rows = Vec::new();
    for (path, real) in &explained.paths {
        let (decision, why) = match real {
            Ok(real) => ("allow", format!("the scope: {}", real.display())),
            Err(Refused { what, .. }) => ("deny", format!("the scope: {what}")),
        };
        rows.push([on_a_line(path), decision.to_owned(), on_a_line(&why)].to_vec());
    }
    if let Some(Refused { what, .. }) = &explained.refusal {
        let tool = format!("tool {tool}");
        rows.push(vec![tool, "deny".to_owned(), on_a_line(what)]);
    }
    for part in &explained.judgement.parts {
        let subject = on_a_line(&subject(part));
        let by = on_a_line(&part.by.to_string());
        rows.push(vec![subject, part.verdict.to_string(), by]);
    }
    out.push_str(&text::table(&rows, None));
    for part in &explained.judgement.parts {
        if let Subject::Line(_, why) = &part.subject {
            out.push_str(&format!("\nnot only commands: {why}\n"));
        }
    }
    let is_unreadable = |part: &JudgedPart| matches!(part.by, DecidedBy::Unreadable { .. });
    if explained.judgement.parts.iter().any(is_unreadable) {
        out.push_str(
            "\nwrite each command with literal words, or change the rule that cannot be checked\n",
        );
    }
    let name = permissions::approve_name(settings.approve);
    let outcome = outcome(settings.approve, explained);
    out.push_str(&format!("\napprove {name}: {outcome}\n"));
    let mut remedies: Vec<&str> = refused(explained)
        .filter_map(|one| one.remedy.as_deref())
        .collect();
    remedies.dedup();
    for remedy in remedies {
        out.push_str(&format!("refused: {}\n", on_a_line(remedy)));
    }
    if let Some(suggestion) = &explained.suggestion {
        out.push_str("to always allow it, add this at the top of `policy` in your own settings:\n");
        for rule in suggestion.rules() {
            out.push_str(&format!("  - {}\n", on_a_line(&rule.to_string())));
        }
    }
    for line in confinement_lines(settings, explained) {
        out.push_str(&format!("{line}\n"));
    }
    out
}

/// Describes the sandbox, and for a command how it is enforced.
fn confinement_lines(settings: &Settings, explained: &Explained) -> Vec<String> {
    let mut lines = confinement::rules(settings);
    if explained.effect == Effect::Execute {
        lines.extend(confinement::enforcement(settings));
        let hidden = confinement::hidden_paths(settings, &explained.hidden);
        lines.extend(hidden.map(|line| on_a_line(&line)));
    }
    lines
}

/// Returns what is refused before any rule is consulted.
fn refused(explained: &Explained) -> impl Iterator<Item = &Refused> {
    let paths = explained.paths.iter();
    let paths = paths.filter_map(|(_, real)| real.as_ref().err());
    paths.chain(&explained.refusal)
}

/// Describes what happens to the call.
fn outcome(approve: Approve, explained: &Explained) -> &'static str {
    match (explained.verdict(), approve) {
        (Verdict::Allow, _) => "runs without asking",
        (Verdict::Deny, _) if refused(explained).next().is_some() => {
            "always refused; neither a rule nor approval can allow it"
        }
        (Verdict::Deny, _) => "always refused; approval cannot override this rule",
        (Verdict::Review, Approve::Ask) if is_by_default(explained) => {
            "runs without network, and the user is asked if it loses something; if no user can be asked, it just runs and can be undone"
        }
        (Verdict::Review, Approve::Auto) if is_by_default(explained) => "runs without asking",
        (Verdict::Review, Approve::Ask) => {
            "runs without network; the user keeps or reverts what it changed, and it is reverted if no user can be asked"
        }
        (Verdict::Review, Approve::Auto) => "runs without network; what it changes is kept",
        (Verdict::Review, Approve::Never) => "runs without network; what it changes is reverted",
        (Verdict::Ask, Approve::Ask) => "asks the user; refused if no user can be asked",
        (Verdict::Ask, Approve::Auto) => "runs as if the user had approved it",
        (Verdict::Ask, Approve::Never) => "refused as if the user had rejected it",
    }
}

/// Whether no rule put the call under review, but the kind of its commands.
fn is_by_default(explained: &Explained) -> bool {
    let mut decisive = explained.judgement.decisive();
    decisive.all(|part| matches!(part.by, DecidedBy::Danger(_)))
}

/// Names the subject; what a line does beside its commands is printed separately.
fn subject(part: &JudgedPart) -> String {
    match &part.subject {
        Subject::Line(line, _) => format!("line {line}"),
        other => other.to_string(),
    }
}

/// Keeps a text in its row.
fn on_a_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn as_json(tool: &str, settings: &Settings, explained: &Explained) -> Value {
    let verdict = explained.verdict();
    let parts: Vec<Value> = explained.judgement.parts.iter().map(part_json).collect();
    let paths: Vec<Value> = explained
        .paths
        .iter()
        .map(|(given, real)| match real {
            Ok(real) => {
                json!({ "path": given, "decision": "allow", "real": real.to_string_lossy() })
            }
            Err(Refused { what, remedy, .. }) => {
                json!({ "path": given, "decision": "deny", "why": what, "remedy": remedy })
            }
        })
        .collect();
    json!({
        "decision": verdict.name(),
        "tool": tool,
        "arguments": explained.arguments,
        "effect": explained.effect.name(),
        "scope": paths,
        "refused_by_tool": explained.refusal.as_ref().map(|refused| {
            json!({ "why": refused.what, "remedy": refused.remedy })
        }),
        "rules": parts,
        "approve": permissions::approve_name(settings.approve),
        "outcome": outcome(settings.approve, explained),
        "suggestion": explained.suggestion.as_ref().map(ToString::to_string),
        "sandbox": settings.mode,
        "where": confinement_lines(settings, explained),
    })
}

fn part_json(part: &JudgedPart) -> Value {
    let (kind, what, why) = match &part.subject {
        Subject::Command(words) => ("command", json!(words), None),
        Subject::Line(line, why) => ("line", json!(line), Some(why)),
        Subject::Path(path, _) => ("path", json!(path), None),
        Subject::Host(host) => ("host", json!(host), None),
        _ => ("call", Value::Null, None),
    };
    let (rule, place) = match &part.by {
        DecidedBy::Rule(rule, place) | DecidedBy::Unreadable { rule, place, .. } => {
            (Some(rule), Some(place.to_string()))
        }
        DecidedBy::NotAnalysed(place) | DecidedBy::Inner(place) => (None, Some(place.to_string())),
        _ => (None, None),
    };
    let reason = match &part.by {
        DecidedBy::Session(reason) | DecidedBy::Unreadable { why: reason, .. } => {
            Some(reason.clone())
        }
        DecidedBy::Danger(danger) => Some(danger.to_string()),
        _ => None,
    };
    json!({
        "kind": kind,
        "what": what,
        "decision": part.verdict.name(),
        "rule": rule,
        "place": place,
        "not_analysed": why,
        "reason": reason,
    })
}
