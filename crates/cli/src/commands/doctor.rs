//! `haft doctor`: checks the sandbox, the models and the tools on this machine.

mod caches;
mod environment;
mod web;

use crate::args::{Doctor, Shared};
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::{confinement, effects, haft_sandbox, output, signals};
use haft::Runtime;
use haft::commands::limits;
use haft::ops::effects::Usage;
use haft::ops::exec::{self, Exec};
use haft::ops::executor::sandbox::{self, Enforcement, Network};
use haft::ops::executor::{Exit as Ended, Input, Itself, Keep, Program, Prompts, Streams};
use haft_config::Settings;
use haft_config::commands::Executor;
use haft_config::external;
use haft_config::files::{Execution, has_virtual_paths};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

struct Findings {
    /// Line about what confines commands.
    sandbox: String,
    remarks: Vec<String>,
    level: &'static str,
    processes: String,
    mode: String,
    network: String,
    commands: String,
    has_commands: bool,
    /// How code runs, if not as commands.
    code: Option<String>,
    /// Time that a command took, or why it could not run.
    works: Result<Duration, String>,
    effects: Kept,
    caches: caches::Caches,
    environment: environment::Environment,
    web: web::Web,
}

/// Runs the command.
pub(crate) fn run(shared: &Shared, args: &Doctor) -> Result<Exit, Failure> {
    let mut settings = session::settings(shared)?;
    let code = code(&settings);
    if matches!(settings.files.execution, Execution::Sandbox(_))
        && haft_sandbox::find(&settings).is_none()
    {
        // Reported as a finding; the session starts without it.
        settings.files.execution = Execution::None;
    }
    let runtime = session::build(&settings, Offer::Every)?;
    let mut findings = signals::block_on(async {
        let findings = examine(&settings, &runtime).await;
        session::close(&runtime).await;
        findings
    })?;
    findings.code = code;
    if args.json {
        output::json(&as_json(&settings, &findings))?;
    } else {
        output::text(&as_text(&settings, &findings))?;
    }
    Ok(Exit::Done)
}

/// Returns what the command prints, about a session that is running.
pub(crate) async fn report(settings: &Settings, runtime: &Runtime) -> Result<String, Failure> {
    let mut findings = examine(settings, runtime).await?;
    findings.code = code(settings);
    Ok(as_text(settings, &findings))
}

/// Describes how code runs, if not with `execute`.
fn code(settings: &Settings) -> Option<String> {
    if !has_virtual_paths(&settings.toolset) {
        return None;
    }
    match &settings.files.execution {
        Execution::Local | Execution::None => None,
        Execution::Sandbox(_) => Some(match haft_sandbox::find(settings) {
            Some(program) => format!(
                "code: runs in {}, isolated from this machine",
                program.display()
            ),
            None => format!("code: cannot run; {}", haft_sandbox::missing()),
        }),
        Execution::Server(_) => {
            Some("code: runs in the MCP server set in `execution`; see `haft mcp list`".to_owned())
        }
    }
}

/// Findings about the store of changes.
struct Kept {
    is_on: bool,
    usage: Result<Usage, String>,
}

impl Kept {
    fn examine(settings: &Settings) -> Self {
        let usage = match effects::store(settings) {
            Some(store) => store.size().map_err(|error| error.to_string()),
            None => Err("no state folder: set HOME".to_owned()),
        };
        Self {
            is_on: settings.effects.record,
            usage,
        }
    }

    fn line(&self) -> String {
        let is_on = if self.is_on {
            "recorded"
        } else {
            "not recorded"
        };
        match &self.usage {
            Ok(usage) if usage.sets == 0 => format!("changes: {is_on}; nothing is kept"),
            Ok(usage) => format!(
                "changes: {is_on}; kept: {} (`haft clean` removes it)",
                super::clean::described(usage)
            ),
            Err(why) => format!("changes: {is_on}; what is kept cannot be read: {why}"),
        }
    }

    fn json(&self) -> Value {
        let usage = self.usage.as_ref().ok();
        json!({
            "record": self.is_on,
            "sessions": usage.map(|usage| usage.sessions),
            "calls": usage.map(|usage| usage.sets),
            "bytes": usage.map(|usage| usage.bytes),
            "reason": self.usage.as_ref().err(),
        })
    }
}

async fn examine(settings: &Settings, runtime: &Runtime) -> Result<Findings, Failure> {
    // Regardless of the mode: this reports what the machine can do.
    let enforcement = confinement::probe();
    let processes = sandbox::processes(&Itself::new().helper(), &enforcement, limits());
    let (commands, mut remarks) = match &settings.commands.executor {
        _ if runtime.exec_context().is_none() => ("disabled by `execution`".to_owned(), Vec::new()),
        Executor::Local => ("on this machine".to_owned(), Vec::new()),
        Executor::Ssh(host) => (
            format!("on {host}, over ssh"),
            vec![
                "commands run on another machine without a sandbox".to_owned(),
                "file tools stay on this machine".to_owned(),
            ],
        ),
    };
    remarks.extend(enforcement.remarks());
    let is_confined = settings.mode != "off" && !matches!(enforcement, Enforcement::None { .. });
    let closed = external::untrusted_folders(settings);
    if is_confined && !closed.is_empty() {
        remarks.push(format!(
            "your own plugins, MCP servers and tools cannot start programs in {}, because it is \
             not trusted; `haft trust` allows it if you run it there",
            closed.join(" and in ")
        ));
    }
    let is_partial = matches!(enforcement, Enforcement::Partial { .. });
    if is_partial && crate::confinement::opens_hosts(settings) {
        remarks.push(crate::confinement::CLOSED.to_owned());
    }
    Ok(Findings {
        level: match enforcement {
            Enforcement::Full { .. } => "full",
            Enforcement::Partial { .. } => "partial",
            Enforcement::None { .. } => "none",
        },
        sandbox: enforcement.to_string(),
        remarks,
        processes: processes.to_string(),
        mode: settings.mode.clone(),
        network: match settings.commands.network {
            Network::Session if !settings.policy.network().hosts.is_empty() => {
                settings.policy.network().entries().join(", ")
            }
            Network::Off | Network::Session => "off".to_owned(),
            Network::On => "on".to_owned(),
        },
        commands,
        has_commands: runtime.exec_context().is_some(),
        code: None,
        works: attempt(runtime).await,
        caches: caches::examine(settings, runtime),
        effects: Kept::examine(settings),
        environment: environment::examine(settings).await,
        web: web::examine(settings).await?,
    })
}

/// Runs a command as the tools would, and returns how long it took.
async fn attempt(runtime: &Runtime) -> Result<Duration, String> {
    let exec_context = runtime.exec_context().ok_or("commands are disabled")?;
    let request = Exec {
        program: Program::Shell {
            shell: "bash".into(),
            arguments: vec!["-c".to_owned()],
            script: "exit 7".to_owned(),
        },
        dir: runtime.scope().work_dir().to_owned(),
        streams: Streams::Merged,
        limit: Some(Duration::from_secs(20)),
        keep: Keep {
            head: 0,
            tail: 4 << 10,
            disk: None,
        },
        prompts: Prompts::Wait,
        input: Input::Nothing,
    };
    let begun = Instant::now();
    let done = exec::run(exec_context, request, &|_, _| {}, &CancellationToken::new())
        .await
        .map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    if done.finished.status == Ended::Code(7) {
        Ok(took)
    } else {
        let output = String::from_utf8_lossy(&done.finished.output.tail).into_owned();
        Err(format!("the test command ended unexpectedly: {output}"))
    }
}

fn work_dir(settings: &Settings) -> String {
    match settings.as_written("tools.work_dir") {
        Some(written) => written.to_owned(),
        None => settings.paths.work_dir.to_string_lossy().into_owned(),
    }
}

fn as_text(settings: &Settings, findings: &Findings) -> String {
    let mut lines = vec![
        format!(
            "haft {} on {}",
            env!("CARGO_PKG_VERSION"),
            crate::env::system()
        ),
        String::new(),
        findings.sandbox.clone(),
    ];
    lines.extend(findings.remarks.iter().map(|remark| format!("  {remark}")));
    lines.push(findings.processes.clone());
    lines.push(String::new());
    lines.extend(confinement::rules(settings));
    lines.push(format!("work folder: {}", work_dir(settings)));
    lines.push(format!("commands: {}", findings.commands));
    match &findings.works {
        Ok(took) => lines.push(format!("  bash works ({:.1} ms)", took.as_secs_f64() * 1e3)),
        Err(_) if !findings.has_commands => {}
        Err(reason) => lines.push(format!("  bash does not work: {reason}")),
    }
    lines.extend(findings.code.clone());
    lines.push(findings.effects.line());
    lines.extend(findings.caches.lines());
    lines.push(String::new());
    lines.extend(findings.environment.lines());
    lines.extend(findings.web.lines());
    lines.join("\n")
}

fn as_json(settings: &Settings, findings: &Findings) -> Value {
    let mut all = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "system": crate::env::system(),
        "sandbox": {
            "level": findings.level,
            "line": findings.sandbox,
            "remarks": findings.remarks,
        },
        "processes": findings.processes,
        "effects": findings.effects.json(),
        "caches": findings.caches.json(),
        "mode": findings.mode,
        "network": findings.network,
        "work_dir": work_dir(settings),
        "commands": {
            "where": findings.commands,
            "works": findings.works.is_ok(),
            "reason": findings.works.as_ref().err(),
        },
        "code": findings.code,
    });
    if let (Some(all), Value::Object(more)) = (all.as_object_mut(), findings.environment.json()) {
        all.extend(more);
        all.insert("web".to_owned(), findings.web.json());
    }
    all
}
