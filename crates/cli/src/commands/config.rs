//! `haft config`: shows the effective settings and the schema of the file.

use crate::args::{Config, Shared};
use crate::exit::{Exit, Failure};
use crate::{output, session, text};
use haft_config::{Shown, keys};
use serde_json::{Map, Value, json};

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Config) -> Result<Exit, Failure> {
    match command {
        Config::Show { json } => {
            let settings = session::settings(shared)?;
            if *json {
                output::json(&as_json(&settings.shown))?;
            } else {
                output::text(&as_table(&settings.shown))?;
            }
        }
        Config::Hosts { json } => {
            let groups = haft::HOST_GROUPS.iter();
            if *json {
                let groups = groups.map(|group| (group.name.to_owned(), json!(group.hosts)));
                output::json(&Value::Object(groups.collect()))?;
            } else {
                let rows = groups.map(|group| vec![group.name.to_owned(), group.hosts.join(", ")]);
                output::text(&text::table(&rows.collect::<Vec<_>>(), None))?;
            }
        }
        Config::Schema => {
            // Serialising cannot fail: all keys are strings.
            let schema = serde_json::to_string_pretty(&keys::schema()).unwrap_or_default();
            output::text(&schema)?;
        }
    }
    Ok(Exit::Done)
}

fn as_json(shown: &[Shown]) -> Value {
    let entries: Map<String, Value> = shown
        .iter()
        .map(|shown| {
            let entry = json!({ "value": shown.value, "from": shown.from });
            (shown.key.to_owned(), entry)
        })
        .collect();
    entries.into()
}

fn as_table(shown: &[Shown]) -> String {
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|shown| {
            let value = match &shown.value {
                Value::String(text) => text.clone(),
                // Zero means no limit.
                Value::Number(number)
                    if shown.key == "tools.timeout" && number.as_f64() == Some(0.0) =>
                {
                    "none".to_owned()
                }
                Value::Array(items) if items.is_empty() => "none".to_owned(),
                Value::Array(items) => {
                    let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                    items.join(", ")
                }
                other => other.to_string(),
            };
            vec![shown.key.to_owned(), value, shown.from.clone()]
        })
        .collect();
    text::table(&rows, None)
}
