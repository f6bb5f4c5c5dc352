//! Connects to a server, shows its tools, and reports tools that changed since they were
//! accepted.

use super::{describe, sign_in};
use crate::args::Shared;
use crate::args::mcp_servers::Test;
use crate::exit::{Exit, Failure};
use crate::output::Paint;
use crate::session::{self, Offer};
use crate::signals::{self, Signals};
use crate::{ask, output, text};
use haft::Runtime;
use haft::ops::text::decode::visible;
use haft::ops::text::spelling;
use haft_config::Settings;
use haft_config::external::servers::{self, Server};
use haft_config::mcp::label;
use haft_mcp::client::{RemoteServer, Report, ReportError, SeenTool};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Runs `haft mcp test`.
pub(super) fn run(shared: &Shared, args: &Test) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let mut server = find(&settings, &args.name)?;
    let how = describe(&server, &settings);
    if let Some(item) = &server.waits {
        return Err(Failure::failed(format!(
            "{} belongs to this folder, which is not trusted",
            item.name
        ))
        .hint("review it with `haft trust`"));
    }
    let is_program = server.configured.connection.program().is_some();
    server.remote.progress = session::progress(&settings);
    let remote = RemoteServer::new(server.remote).map_err(|error| {
        Failure::usage(format!("MCP server {}: {error}", server.configured.name))
    })?;
    if !args.json {
        output::text(&format!("{}: {how}\n", args.name))?;
    }
    let runtime = session::build(&settings, Offer::Preset)?;
    signals::block_on(async {
        let mut signals = Signals::listen()?;
        let exit = tokio::select! {
            result = connect(&runtime, &remote, is_program, args) => result,
            exit = signals.next() => Ok(exit),
        };
        let stopped = session::close_unless(&runtime, &mut signals).await;
        stopped.map_or(exit, Ok)
    })
}

fn find(settings: &Settings, name: &str) -> Result<Server, Failure> {
    let all = servers::all(settings);
    let names: Vec<String> = all
        .iter()
        .map(|server| server.configured.name.clone())
        .collect();
    let found = all
        .into_iter()
        .find(|server| server.configured.name == name);
    found.ok_or_else(|| {
        let near = spelling::hint(name, &names);
        let hint = match names.is_empty() {
            true => "no MCP servers are configured".to_owned(),
            false => format!("configured servers: {}", names.join(", ")),
        };
        Failure::usage(format!("unknown MCP server \"{name}\"{near}")).hint(hint)
    })
}

async fn connect(
    runtime: &Runtime,
    remote: &Arc<RemoteServer>,
    is_program: bool,
    args: &Test,
) -> Result<Exit, Failure> {
    let timeout = args.timeout.map(Duration::from_secs);
    let mut found = remote.report(runtime.programs(), timeout).await;
    if let Err(ReportError::SignIn { challenge }) = &found {
        sign_in::run(remote, challenge.clone()).await?;
        found = remote.report(runtime.programs(), timeout).await;
    }
    let report = match found {
        Ok(report) => report,
        Err(unreached) => return failed(&unreached.to_string(), is_program, args),
    };
    if args.json {
        output::json(&as_json(&report))?;
    } else {
        output::raw(&as_text(&report, Paint::for_stdout()))?;
    }
    if report.changed.is_empty() {
        remote.accept(&report);
        return Ok(verdict(&report));
    }
    if args.yes || (output::can_ask() && ask::confirm("\nAccept the changed tools? [y/N] ")?) {
        remote.accept(&report);
        if !args.json {
            output::text("Accepted.\n")?;
        }
        return Ok(verdict(&report));
    }
    if !output::can_ask() {
        output::note("hint: pass `--yes` to accept the changed tools");
    }
    Ok(Exit::Failed)
}

fn failed(words: &str, is_program: bool, args: &Test) -> Result<Exit, Failure> {
    if args.json {
        output::json(&json!({ "good": false, "problem": words }))?;
        return Ok(Exit::Failed);
    }
    let failure = Failure::failed(words);
    Err(match is_program {
        true => failure.hint(format!(
            "its stderr is in `haft plugin log mcp-{}`",
            label(&args.name)
        )),
        false => failure,
    })
}

fn verdict(report: &Report) -> Exit {
    if report.tools.is_empty() {
        Exit::Failed
    } else {
        Exit::Done
    }
}

fn on_a_line(text: &str) -> String {
    text::on_one_line(&visible(text))
}

fn as_text(report: &Report, style: Paint) -> String {
    let mut out = String::new();
    let name = match &report.server {
        Some((name, version)) => format!("{} {}", on_a_line(name), on_a_line(version)),
        None => "unnamed server".to_owned(),
    };
    out.push_str(&format!(
        "  {name}, protocol {}; answered after {} ms, listed its tools in {} ms\n",
        on_a_line(&report.protocol),
        report.started.as_millis(),
        report.listed.as_millis(),
    ));
    let rows = report.tools.iter().map(|(_, tool)| {
        let about = text::first_sentence(&tool.description);
        vec![format!("  {}", on_a_line(&tool.name)), on_a_line(&about)]
    });
    out.push_str(&text::table(&rows.collect::<Vec<_>>(), output::width()));
    if !out.ends_with('\n') {
        out.push('\n');
    }
    for problem in &report.problems {
        out.push_str(&format!(
            "  the server {}\n",
            style.yellow(&on_a_line(problem))
        ));
    }
    for (name, was, is) in &report.changed {
        out.push_str(&change(name, was, is, style));
    }
    let many = report.tools.len();
    let plural = if many == 1 { "tool" } else { "tools" };
    out.push_str(&match (many, report.changed.is_empty()) {
        (0, _) => format!("{}: the server has no usable tools\n", style.red("bad")),
        (_, true) => format!("{}: {many} {plural}\n", style.green("good")),
        (_, false) => format!(
            "{}: {} of {many} {plural} changed since you accepted it and will not be offered\n",
            style.red("changed"),
            report.changed.len(),
        ),
    });
    out
}

/// Shows the old and new definition line by line and in full, because the model reads all
/// of it.
fn change(name: &str, was: &SeenTool, is: &SeenTool, style: Paint) -> String {
    let mut out = format!("  {} has changed\n", style.bold(&on_a_line(name)));
    let mut part = |what: &str, was: &str, is: &str| {
        if was == is {
            return;
        }
        out.push_str(&format!("    {what}\n"));
        for line in was.lines() {
            out.push_str(&format!(
                "      {}\n",
                style.red(&format!("- {}", on_a_line(line)))
            ));
        }
        for line in is.lines() {
            out.push_str(&format!(
                "      {}\n",
                style.green(&format!("+ {}", on_a_line(line)))
            ));
        }
    };
    part("description", &was.description, &is.description);
    let pretty = |schema: &Value| format!("{schema:#}");
    part(
        "parameters",
        &pretty(&was.parameters),
        &pretty(&is.parameters),
    );
    out
}

fn as_json(report: &Report) -> Value {
    let tools = report.tools.iter().map(|(own, tool)| {
        json!({ "name": tool.name, "own_name": own, "description": tool.description, "parameters": tool.parameters })
    });
    let changed = report
        .changed
        .iter()
        .map(|(name, was, is)| json!({ "own_name": name, "was": was, "is": is }));
    json!({
        "good": !report.tools.is_empty() && report.changed.is_empty(),
        "server": report.server.as_ref().map(|(name, version)| json!({ "name": name, "version": version })),
        "protocol": report.protocol,
        "tools": tools.collect::<Vec<_>>(),
        "changed": changed.collect::<Vec<_>>(),
        "problems": report.problems,
        "started_ms": u64::try_from(report.started.as_millis()).unwrap_or(u64::MAX),
        "listed_ms": u64::try_from(report.listed.as_millis()).unwrap_or(u64::MAX),
    })
}
