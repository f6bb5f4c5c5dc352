//! The lines of the prompt that say what the sandbox allows here, made from the settings in
//! force.

use super::exceptions::PARAMETER;
use super::{Runtime, Session};
use crate::Effect;
use crate::registry::ToolOrigin;
use haft_ops::exec::{ExecContext, Sandbox};
use haft_ops::executor::sandbox::Network;
use haft_ops::scope::{Reading, Writing};

/// Maximum number of hosts that are named.
const MAX_HOSTS: usize = 12;

impl Runtime {
    /// Returns the lines about the sandbox; empty if the model cannot run commands.
    pub(super) fn sandbox_lines(&self) -> Vec<String> {
        let entries = self.session.tools.entries();
        let mut runners = entries.iter().filter(|entry| {
            entry.origin == ToolOrigin::Toolset && entry.tool.effect() == Effect::Execute
        });
        let (Some(runner), Some(exec_context)) = (runners.next(), &self.session.exec_context)
        else {
            return Vec::new();
        };
        let Some(sandbox) = &exec_context.sandbox else {
            return Vec::new();
        };
        let mut lines = vec![
            files(&self.session, exec_context, sandbox),
            network(&self.session, exec_context, sandbox),
        ];
        if self.offers_exceptions(runner, false) {
            lines.push(format!(
                "If the sandbox refuses what the task needs, repeat the command with `{PARAMETER}`; the user decides."
            ));
        }
        lines.iter().map(|line| format!("- {line}")).collect()
    }
}

fn files(session: &Session, exec_context: &ExecContext, sandbox: &Sandbox) -> String {
    let request = sandbox.request();
    let mut writable = vec!["`$TMPDIR`".to_owned()];
    if exec_context.caches.is_some() {
        writable.push("build caches such as `~/.cache`".to_owned());
    }
    if request.rules.writing != Writing::Nothing {
        let roots = request.roots.iter().map(|root| session.shown(root));
        writable.splice(
            0..0,
            std::iter::once("the work folder".to_owned()).chain(roots),
        );
    }
    let reading = match request.rules.reading {
        Reading::Anywhere | Reading::NotSecret => {
            "they can read everything but keys and other secrets"
        }
        Reading::RootsAndSystem | Reading::Roots => "they can read nothing else but system folders",
    };
    format!(
        "Commands run in a sandbox. They can write {}; {reading}.",
        listed(&writable)
    )
}

fn network(session: &Session, exec_context: &ExecContext, sandbox: &Sandbox) -> String {
    let servers = "A server that one command leaves running is reachable from the next one on localhost; later commands cannot signal it.";
    let policy = session.approval.policy();
    match sandbox.request().network {
        Network::On => "They have network access.".to_owned(),
        Network::Off => "They have no network.".to_owned(),
        Network::Session if !sandbox.has_sockets() => "They have no network.".to_owned(),
        Network::Session => {
            let is_open = exec_context.network.gateway().is_some();
            let hosts = if is_open {
                policy.reachable()
            } else {
                Vec::new()
            };
            let more = hosts.len().saturating_sub(MAX_HOSTS);
            let mut named: Vec<String> = hosts.into_iter().take(MAX_HOSTS).collect();
            if more > 0 {
                named.push(format!("{more} more"));
            }
            match named.is_empty() {
                true => format!("They cannot reach other machines. {servers}"),
                false => format!(
                    "Of other machines they can reach only {}, through the proxy in `HTTPS_PROXY`. {servers}",
                    listed(&named)
                ),
            }
        }
    }
}

/// Joins names as in a sentence.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
