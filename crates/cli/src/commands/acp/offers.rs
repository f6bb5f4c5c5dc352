//! Values that the user of an editor can choose.

use haft_acp::{Offers, Options};
use haft_agent::Agent;
use haft_agent::provider::{Effort, Provider, model_names};
use haft_config::{MODES, Settings};
use serde_json::Value;

/// Value that leaves the effort to the provider.
pub(super) const DEFAULT_EFFORT: &str = "default";

fn about_sandbox(mode: &str) -> &'static str {
    match mode {
        "workspace" => "Commands write in the work folder only",
        "strict" => "Commands also read little outside the work folder",
        "read-only" => "Nothing is written",
        "off" => "Commands are not confined",
        _ => "",
    }
}

/// Returns what can be chosen in a session.
pub(super) fn of(settings: &Settings, agent: &Agent) -> Offers {
    let id = agent.model().id();
    let mut models: Vec<String> = vec![id.model.clone()];
    if let Ok(provider) = id.provider.parse::<Provider>() {
        let known = model_names(provider).into_iter().map(str::to_owned);
        models.extend(known.filter(|name| *name != id.model));
    }
    let sandboxes = MODES.iter().map(|mode| {
        let about = about_sandbox(mode);
        ((*mode).to_owned(), about.to_owned())
    });
    let network = settings.shown.iter().find(|shown| shown.key == "network");
    let network = network.map(|shown| match &shown.value {
        Value::Array(hosts) => {
            // As the flag takes them.
            let hosts = hosts.iter().filter_map(Value::as_str);
            hosts.collect::<Vec<_>>().join(",")
        }
        Value::String(word) => word.clone(),
        other => other.to_string(),
    });
    let network = network.unwrap_or_else(|| "off".to_owned());
    let mut networks = vec![
        ("off".to_owned(), "Commands reach no network".to_owned()),
        ("on".to_owned(), "Commands reach every network".to_owned()),
    ];
    if networks.iter().all(|(value, _)| *value != network) {
        networks.push((network.clone(), "As configured".to_owned()));
    }
    let effort = settings.model.as_ref().ok().and_then(|model| model.effort);
    let levels = Effort::ALL.map(|level| (level.name().to_owned(), String::new()));
    let default = (
        DEFAULT_EFFORT.to_owned(),
        "As much as the provider decides".to_owned(),
    );
    let has_effort = id.provider.parse::<Provider>().is_ok();
    Offers {
        effort: Options {
            current: effort.map_or(DEFAULT_EFFORT, Effort::name).to_owned(),
            values: match has_effort {
                true => std::iter::once(default).chain(levels).collect(),
                false => Vec::new(),
            },
        },
        model: Options {
            current: id.model,
            values: models
                .into_iter()
                .map(|name| (name, String::new()))
                .collect(),
        },
        sandbox: Options {
            current: settings.mode.clone(),
            values: sandboxes.collect(),
        },
        network: Options {
            current: network,
            values: networks,
        },
    }
}
