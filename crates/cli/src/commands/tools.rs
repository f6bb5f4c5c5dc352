//! `haft tools`: shows the tools that a model gets.

mod page;

use crate::args::{Shared, Tools};
use crate::exit::{Exit, Failure};
use crate::session::{self, Offer};
use crate::{output, signals, text};
use haft::{Definition, Runtime};
use serde_json::Value;

/// Lists the tools of the preset, or shows one tool of the toolset.
pub(crate) fn run(shared: &Shared, args: &Tools) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let offer = match &args.name {
        Some(_) => Offer::Every,
        None => Offer::Preset,
    };
    let runtime = session::build(&settings, offer)?;
    signals::block_on(async {
        session::ready(&runtime, settings.quiet).await;
        session::close(&runtime).await;
        Ok(Exit::Done)
    })?;
    let mut definitions = runtime.definitions();
    let runtime = match &args.name {
        Some(name) => keep_only(runtime, name)?,
        None => runtime,
    };
    if let Some(name) = &args.name {
        definitions.retain(|definition| definition.name == *name);
    }
    if args.json {
        let shown: Vec<Value> = definitions.iter().map(shown).collect();
        output::json(&shown.into())?;
    } else if args.prompt {
        output::text(&runtime.prompt_section())?;
    } else if args.cost {
        output::text(&cost(&definitions))?;
    } else if let (Some(name), [definition]) = (&args.name, &*definitions) {
        let effect = runtime
            .effect_of(name)
            .ok_or_else(|| session::unknown_tool(&runtime, name))?;
        output::text(&page::page(definition, effect))?;
    } else {
        output::text(&table(&definitions))?;
    }
    if definitions.is_empty() && !settings.quiet {
        output::note("This preset has no tools.");
    }
    Ok(Exit::Done)
}

/// Removes all other tools from the session.
fn keep_only(runtime: Runtime, name: &str) -> Result<Runtime, Failure> {
    if runtime.tools().get(name).is_none() {
        return Err(session::unknown_tool(&runtime, name));
    }
    for other in runtime.tools().names() {
        if other != name {
            runtime.tools().remove(&other);
        }
    }
    Ok(runtime)
}

/// Returns a definition as sent to the provider.
fn shown(definition: &Definition) -> Value {
    serde_json::to_value(definition).unwrap_or_default()
}

fn table(definitions: &[Definition]) -> String {
    let rows: Vec<Vec<String>> = definitions
        .iter()
        .map(|definition| {
            vec![
                definition.name.clone(),
                text::first_sentence(&definition.description),
            ]
        })
        .collect();
    // One line per tool for programs, wrapped columns for people.
    text::table(&rows, output::is_terminal().then_some(text::WIDTH))
}

/// Estimates the tokens of each definition: about four characters of JSON per token, for
/// any model.
fn cost(definitions: &[Definition]) -> String {
    let tokens = |each: &Definition| shown(each).to_string().len().div_ceil(4);
    let mut rows: Vec<(String, usize)> = definitions
        .iter()
        .map(|definition| (definition.name.clone(), tokens(definition)))
        .collect();
    rows.push((
        "total".to_owned(),
        rows.iter().map(|(_, tokens)| tokens).sum(),
    ));
    let width = rows
        .iter()
        .map(|(_, tokens)| tokens.to_string().len())
        .max()
        .unwrap_or_default();
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, tokens)| vec![name, format!("{tokens:>width$} tokens")])
        .collect();
    text::table(&rows, None)
}
