//! Prices and limits of commercial models.

use super::Provider;
use crate::Price;

/// One model per line; the header of the file explains the columns.
const MODELS: &str = include_str!("models.txt");

/// Facts about a model.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelFacts {
    pub(super) price: Option<Price>,
    /// Context window in tokens.
    pub(super) context: Option<u64>,
    /// Maximum number of tokens in an answer.
    pub(super) max_output: Option<u64>,
    /// Whether the model cannot read pictures.
    pub(super) is_text_only: bool,
    /// Whether its thinking is bound to the tools and system prompt it was produced with.
    pub(super) binds_thinking: bool,
}

/// Looks up a model. Local models are not listed, since their limits depend on the machine.
pub(super) fn known(provider: Provider, model: &str) -> Option<ModelFacts> {
    let vendor = match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "openai",
        Provider::Google => "google",
        Provider::Ollama => return None,
    };
    let listed = |model: &str| MODELS.lines().find_map(|line| read(line, vendor, model));
    // A dated snapshot, `claude-sonnet-4-5-20250929`, is listed by its name.
    listed(model).or_else(|| listed(model.split_once("-20")?.0))
}

/// Returns the names of a provider's known models.
pub(super) fn names(provider: Provider) -> Vec<&'static str> {
    let vendor = match provider {
        Provider::Anthropic => "anthropic",
        Provider::OpenaiResponses | Provider::OpenaiCompletions => "openai",
        Provider::Google => "google",
        Provider::Ollama => return Vec::new(),
    };
    let lines = MODELS.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut fields = line.split(' ');
            (fields.next() == Some(vendor)).then(|| fields.next())?
        })
        .collect()
}

fn read(line: &str, vendor: &str, model: &str) -> Option<ModelFacts> {
    let mut fields = line.split(' ');
    if (fields.next(), fields.next()) != (Some(vendor), Some(model)) {
        return None;
    }
    let mut price = || fields.next()?.parse::<f64>().ok();
    let (input, output, cache_read, cache_write) = (price(), price(), price(), price());
    let mut count = || fields.next()?.parse::<u64>().ok();
    let (context, max_output) = (count(), count());
    let flags = fields.next().unwrap_or_default();
    Some(ModelFacts {
        price: input.zip(output).map(|(input, output)| Price {
            input,
            output,
            cache_read: cache_read.unwrap_or(input),
            cache_write: cache_write.unwrap_or(input),
        }),
        context,
        max_output,
        is_text_only: flags == "text-only",
        binds_thinking: flags == "binds-thinking",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_and_windows_are_known_of_models_that_are_sold() {
        let price = |provider, model| known(provider, model).and_then(|known| known.price);
        let sonnet = price(Provider::Anthropic, "claude-sonnet-4-5").unwrap();
        assert!((sonnet.input, sonnet.output) == (3.0, 15.0), "{sonnet:?}");
        let dated = price(Provider::Anthropic, "claude-sonnet-4-5-20250929");
        assert_eq!(dated, Some(sonnet));
        assert!(price(Provider::OpenaiCompletions, "gpt-5-2025-08-07").is_some());
        assert!(price(Provider::Google, "gemini-2.5-flash").is_some());
        assert_eq!(price(Provider::Anthropic, "unknown-model"), None);
        assert_eq!(price(Provider::Anthropic, "gpt-5"), None);
        assert!(known(Provider::Ollama, "qwen3").is_none());
    }

    #[test]
    fn every_line_is_complete() {
        let lines = MODELS.lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let fields: Vec<&str> = line.split(' ').collect();
            let known = read(line, fields[0], fields[1]).unwrap();
            let context = fields[6].parse().ok();
            assert!(fields.len() == 9 && known.context == context, "{line}");
            assert_eq!(known.price.is_some(), fields[2] != "-", "{line}");
        }
    }
}
