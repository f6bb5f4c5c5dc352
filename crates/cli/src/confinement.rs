//! Describes how calls are confined: what the sandbox mode allows, and what this machine
//! enforces for commands.

use haft::Reach;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::{self, Enforcement, Network};
use haft::ops::scope::{Reading, Writing};
use haft_config::Settings;
use haft_config::commands::Executor;

/// Returns what the sandbox mode allows, one sentence per rule.
pub(crate) fn rules(settings: &Settings) -> Vec<String> {
    let reading = match settings.rules.reading {
        Reading::Anywhere => "can read what the operating system allows",
        Reading::NotSecret => "can read everything except secret places",
        Reading::RootsAndSystem => {
            "can read the work folder, tools.roots, the private /tmp and system folders"
        }
        Reading::Roots => "can read the work folder, tools.roots and the private /tmp",
    };
    let writing = match settings.rules.writing {
        Writing::Anywhere => "can write what the operating system allows, except protected places",
        Writing::Roots => {
            "can write the work folder, tools.roots and the private /tmp, except protected places"
        }
        Writing::Nothing => "can write only the private /tmp",
    };
    let network = match settings.commands.network {
        _ if is_off(settings) || settings.commands.executor != Executor::Local => {
            "does not confine commands"
        }
        Network::On => "commands have network access",
        Network::Session if settings.policy.opens_hosts() => {
            "commands share a network that leads only to the hosts you opened"
        }
        Network::Session => "commands share a network that nothing leaves",
        Network::Off => "commands have no network access",
    };
    let mut rules = [reading, writing, network]
        .map(|rule| format!("sandbox {}: {rule}", settings.mode))
        .to_vec();
    let reach = haft::toolsets::by_name(&settings.toolset).map(|toolset| toolset.reach);
    if reach == Some(Reach::Roots) {
        rules.push(format!(
            "toolset {}: its file tools stay in the work folder and tools.roots in every mode",
            settings.toolset
        ));
    }
    rules
}

/// Returns the rules as one line, for an approval prompt.
pub(crate) fn summary(settings: &Settings) -> String {
    let own = format!("sandbox {}: ", settings.mode);
    let rules = rules(settings);
    let rules = rules
        .iter()
        .map(|rule| rule.strip_prefix(&own).unwrap_or(rule));
    let rules: Vec<_> = rules.collect();
    format!("{}: {}", settings.mode, rules.join("; "))
}

/// What becomes of hosts that the user opened on a machine without namespaces.
pub(crate) const CLOSED: &str = "commands have no network: hosts cannot be opened one by one on this machine, because it has no namespaces; `--network on` opens all of it";

/// Whether the user opened hosts one by one.
pub(crate) fn opens_hosts(settings: &Settings) -> bool {
    settings.commands.network == Network::Session && settings.policy.opens_hosts()
}

/// Returns how those rules are enforced for commands.
pub(crate) fn enforcement(settings: &Settings) -> Vec<String> {
    match &settings.commands.executor {
        Executor::Ssh(host) => {
            vec![format!(
                "commands run on {host} over ssh without a sandbox; file tools work on this machine"
            )]
        }
        Executor::Local if is_off(settings) => vec!["commands are not confined".to_owned()],
        Executor::Local => {
            let enforcement = probe();
            let is_partial = matches!(enforcement, Enforcement::Partial { .. });
            let network = (is_partial && opens_hosts(settings)).then(|| CLOSED.to_owned());
            std::iter::once(enforcement.to_string())
                .chain(network)
                .collect()
        }
    }
}

/// Finds out what this machine can enforce, by trying it.
pub(crate) fn probe() -> Enforcement {
    sandbox::probe(&Itself::new().helper())
}

/// Whether the sandbox is off, so that only the operating system limits calls.
pub(crate) fn is_off(settings: &Settings) -> bool {
    settings.rules.reading == Reading::Anywhere && settings.rules.writing == Writing::Anywhere
}

/// Returns why commands need approval even if the rules allow them.
pub(crate) fn approval_reason(settings: &Settings) -> Option<String> {
    if is_off(settings) {
        return None;
    }
    match &settings.commands.executor {
        Executor::Ssh(host) => Some(format!("commands run on {host} without a sandbox")),
        // Probed last, because it starts a process.
        Executor::Local => {
            let reason = if settings.paths.protects {
                "tools.protect cannot be enforced for commands on this machine (`haft doctor`)"
            } else if hides_paths(settings) {
                "paths that rules deny cannot be hidden from commands on this machine (`haft doctor`)"
            } else {
                return None;
            };
            let is_partial = matches!(probe(), Enforcement::Partial { .. });
            is_partial.then(|| reason.to_owned())
        }
    }
}

/// Whether rules hide paths from commands.
fn hides_paths(settings: &Settings) -> bool {
    let toolset = haft::toolsets::by_name(&settings.toolset);
    // A name that the toolset does not have is a program the user added.
    settings.policy.hides_from_commands(|name| {
        let tools = toolset.iter().flat_map(|toolset| &toolset.tools);
        let mut named = tools.filter(|tool| tool.definition().name == name);
        named
            .next()
            .is_none_or(|tool| tool.effect() == haft::Effect::Execute)
    })
}

/// Describes which denied paths commands cannot read, or can read for lack of a sandbox.
pub(crate) fn hidden_paths(
    settings: &Settings,
    paths: &[(String, haft::RuleLocation)],
) -> Option<String> {
    let paths: Vec<String> = paths
        .iter()
        .map(|(glob, place)| format!("{glob} ({place})"))
        .collect();
    if paths.is_empty() {
        return None;
    }
    let paths = paths.join(", ");
    let is_confined = settings.commands.executor == Executor::Local && !is_off(settings);
    Some(if !is_confined {
        format!("commands run without a sandbox and can read denied paths: {paths}")
    } else if matches!(probe(), Enforcement::Partial { .. }) {
        format!("commands can read denied paths in the work folder (see `haft doctor`): {paths}")
    } else {
        format!("commands cannot read: {paths}")
    })
}
