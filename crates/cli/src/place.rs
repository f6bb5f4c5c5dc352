//! Where calls run: what the sandbox lets them touch, and what enforces it.

use crate::config::Settings;
use crate::config::commands::Executor;
use haft::Reach;
use haft::ops::executor::Itself;
use haft::ops::executor::sandbox::{self, Enforcement, Network};
use haft::ops::scope::{Reading, Writing};

/// What the mode allows, a sentence each.
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

/// The same on a line.
pub(crate) fn on_a_line(settings: &Settings) -> String {
    let own = format!("sandbox {}: ", settings.mode);
    let rules = rules(settings);
    let rules = rules
        .iter()
        .map(|rule| rule.strip_prefix(&own).unwrap_or(rule));
    let rules: Vec<_> = rules.collect();
    format!("{}: {}", settings.mode, rules.join("; "))
}

/// What holds commands to that.
pub(crate) fn enforcement(settings: &Settings) -> Vec<String> {
    match &settings.commands.executor {
        Executor::Ssh(host) => {
            vec![format!(
                "commands run on {host} over ssh without a sandbox; file tools work on this machine"
            )]
        }
        Executor::Local if is_off(settings) => vec!["commands are not confined".to_owned()],
        Executor::Local => vec![found().to_string()],
    }
}

/// What this machine enforces.
pub(crate) fn found() -> Enforcement {
    sandbox::probe(&Itself::new().helper())
}

/// Whether everything is left to the operating system.
pub(crate) fn is_off(settings: &Settings) -> bool {
    settings.rules.reading == Reading::Anywhere && settings.rules.writing == Writing::Anywhere
}

/// Why a person has to say yes to commands, whatever the rules allow.
pub(crate) fn needs_a_person(settings: &Settings) -> Option<String> {
    if is_off(settings) {
        return None;
    }
    match &settings.commands.executor {
        Executor::Ssh(host) => Some(format!("commands run on {host} without a sandbox")),
        // Asked only where it matters: to find out takes a while.
        Executor::Local => {
            let reason = if settings.protects {
                "tools.protect cannot be enforced for commands on this machine (`haft doctor`)"
            } else if hides_paths(settings) {
                "paths that rules deny cannot be hidden from commands on this machine (`haft doctor`)"
            } else {
                return None;
            };
            let is_partial = matches!(found(), Enforcement::Partial { .. });
            is_partial.then(|| reason.to_owned())
        }
    }
}

/// Whether rules hide paths from commands.
fn hides_paths(settings: &Settings) -> bool {
    let toolset = haft::toolsets::by_name(&settings.toolset);
    // What no toolset has is a program that somebody added.
    settings.policy.hides_from_commands(|name| {
        let tools = toolset.iter().flat_map(|toolset| &toolset.tools);
        let mut named = tools.filter(|tool| tool.definition().name == name);
        named
            .next()
            .is_none_or(|tool| tool.effect() == haft::Effect::Execute)
    })
}

/// What is hidden from commands, or would be if something confined them: a sentence.
pub(crate) fn hidden(settings: &Settings, paths: &[(String, haft::Place)]) -> Option<String> {
    let paths: Vec<String> = paths
        .iter()
        .map(|(glob, place)| format!("{glob} ({place})"))
        .collect();
    if paths.is_empty() {
        return None;
    }
    let paths = paths.join(", ");
    let is_held = settings.commands.executor == Executor::Local && !is_off(settings);
    Some(if !is_held {
        format!("commands run without a sandbox and can read denied paths: {paths}")
    } else if matches!(found(), Enforcement::Partial { .. }) {
        format!("commands can read denied paths in the work folder (see `haft doctor`): {paths}")
    } else {
        format!("commands cannot read: {paths}")
    })
}
