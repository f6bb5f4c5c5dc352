//! Markdown page of an executable: front matter with its definition, followed by
//! guidance.

use haft::ops::text::front_matter::{self, Unclosed};
use serde_json::Value;
use std::time::Duration;

/// Maximum time limit: one day.
const MAX_SECONDS: f64 = 86_400.0;

/// Content of a page.
pub(crate) struct Page {
    pub(crate) description: String,
    pub(crate) parameters: Option<Value>,
    pub(crate) guidance: Option<String>,
    /// Time limit of a call.
    pub(crate) timeout: Option<Duration>,
}

/// Reads a page. Without front matter its first line is the description.
pub(crate) fn read(text: &str) -> Result<Page, String> {
    let text = text.replace("\r\n", "\n");
    let (written, body) = front_matter::split(text.trim_start_matches('\u{feff}'))
        .map_err(|Unclosed| "the front matter has no end: a line with `---` is missing")?;
    let front: Value = match written {
        None => Value::Null,
        Some(written) => front_matter::read(written, |text| serde_saphyr::from_str::<Value>(text))
            .map_err(|error| {
                format!(
                    "the front matter is not valid YAML: {}",
                    first_line(&error.to_string())
                )
            })?,
    };
    let body = body.trim();
    let described = front["description"]
        .as_str()
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let first = body
        .lines()
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty());
    let description = described.or(first).unwrap_or_default().to_owned();
    let parameters = match &front["parameters"] {
        Value::Null => None,
        Value::Object(_) => Some(front["parameters"].clone()),
        _ => return Err("parameters must be a JSON Schema".to_owned()),
    };
    let timeout = match &front["timeout"] {
        Value::Null => None,
        other => limit(other)
            .ok_or("timeout must be a number of seconds up to a day (0 for the default limit)")?,
    };
    Ok(Page {
        timeout,
        description,
        parameters,
        guidance: (!body.is_empty() && described.is_some()).then(|| body.to_owned()),
    })
}

/// Reads a time limit in seconds. The outer `None` means an invalid value, the inner one
/// no limit (0).
pub(crate) fn limit(value: &Value) -> Option<Option<Duration>> {
    let seconds = value
        .as_f64()
        .filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds))?;
    Some(haft::time_limit(seconds))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_front_matter_or_starts_with_its_description() {
        let page = read(
            "---\ndescription: Deploy it\nparameters: {type: object}\n---\n\nOnly after tests.\n",
        )
        .unwrap();
        assert_eq!(page.description, "Deploy it");
        assert_eq!(page.guidance.as_deref(), Some("Only after tests."));
        assert!(page.parameters.is_some());
        let plain = read("# Deploy\n\nDeploys it.\n").unwrap();
        assert_eq!(
            (plain.description.as_str(), plain.guidance),
            ("Deploy", None)
        );
        assert!(read("---\n: : [\n---\n").is_err());
        let colon =
            read("---\ndescription: Deploys: to prod\ntimeout: 2.5\n---\nRun it.\n").unwrap();
        assert_eq!(colon.description, "Deploys: to prod");
        assert_eq!(colon.timeout, Some(Duration::from_millis(2500)));
        for words in ["Issue #5: fix", "[beta] Deploys it", "*bold* words"] {
            let page = read(&format!("---\ndescription: {words}\n---\nRun it.\n"));
            assert_eq!(page.unwrap().description, words);
        }
        let nested = "---\ndescription: x\nparameters:\n  properties:\n    a:\n      description: what: ever\n      type: string\n---\n";
        let parameters = read(nested).unwrap().parameters.unwrap();
        let a = &parameters["properties"]["a"];
        assert_eq!(a["description"], "what: ever");
        assert_eq!(a["type"], "string");
        // CommandLine numbers count from the start of the file.
        let error = read("---\ndescription: x\ntitle: \"a\" b\n---\n")
            .err()
            .unwrap();
        assert!(error.contains("line 3"), "{error}");
        for odd in ["soon", "-1", "[1]", "86401"] {
            let page = read(&format!("---\ndescription: x\ntimeout: {odd}\n---\n"));
            assert!(page.is_err_and(|why| why.contains("timeout")), "{odd}");
        }
        assert_eq!(
            read("---\ntimeout: 0\n---\nRun it.\n").unwrap().timeout,
            None
        );
        assert_eq!(read("").unwrap().description, "");
        let bare = read("--- \r\n---\r\nDeploys it.\n").unwrap();
        assert_eq!(bare.description, "Deploys it.");
        for open in ["---\ndescription: Deploy it\n\nRun.\n", "---\n", "---"] {
            assert!(read(open).is_err(), "{open:?}");
        }
    }
}
