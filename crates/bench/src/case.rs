//! One call of an edit tool, and what should come of it. Cases are stored as JSON; see
//! `bench/edits/README.md` for the format.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Content of a file: text, or base64 if it is not UTF-8.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    Text(String),
    Base64(String),
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(base64::engine::general_purpose::STANDARD.encode(bytes)),
        }
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::Text(text) => Ok(text.clone().into_bytes()),
            Self::Base64(text) => base64::engine::general_purpose::STANDARD
                .decode(text)
                .context("content is not base64"),
        }
    }
}

/// Spelling of the arguments.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Form {
    /// As the mapping says.
    #[default]
    Plain,
    /// With these additional arguments.
    Extra { arguments: Map<String, Value> },
    /// With other names for path, old and new text.
    Named {
        path: String,
        old: String,
        new: String,
    },
    /// One edit in an array called `edits`.
    Edits { old: String, new: String },
    /// The array of edits as JSON in a string.
    EditsText { old: String, new: String },
    /// All arguments inside one object of this name.
    Wrapped { name: String },
}

/// Spelling of the path.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PathForm {
    /// As the mapping says.
    #[default]
    Usual,
    /// With `@` in front of a relative path.
    At,
    /// Relative to the work folder.
    Relative,
    /// With `./` in front.
    Dot,
    /// The absolute path on this machine.
    Host,
}

/// One call, the files it is made in, and what should come of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Case {
    /// Name of the task, such as `orders.py/3`.
    pub(crate) task: String,
    /// Name of the mistake, such as `line numbers, tab`.
    pub(crate) mistake: String,
    /// Files by path, before the call.
    pub(crate) files: BTreeMap<String, Content>,
    /// Path to edit.
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) path_form: PathForm,
    /// Text to find.
    pub(crate) old: String,
    /// Text to put in its place.
    pub(crate) new: String,
    #[serde(default)]
    pub(crate) form: Form,
    /// The file after a correct edit; none if the only correct answer is a refusal.
    pub(crate) after: Option<Content>,
    /// The file after replacing all matches, which is right for a tool that promises it.
    #[serde(default)]
    pub(crate) after_all: Option<Content>,
    /// First and last line that a helpful refusal names.
    pub(crate) place: (usize, usize),
    /// Words of which one in a refusal is help, too.
    #[serde(default)]
    pub(crate) help: Vec<String>,
}

/// Loads every case in a folder: each `*.json` file holds one case or an array of them.
pub(crate) fn load(folder: &Path) -> Result<Vec<Case>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .collect::<std::io::Result<Vec<_>>>()?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    names.sort();
    let mut cases = Vec::new();
    for name in names {
        let text = std::fs::read_to_string(&name)?;
        let value: Value =
            serde_json::from_str(&text).with_context(|| format!("{}", name.display()))?;
        match value {
            Value::Array(list) => {
                for one in list {
                    cases.push(
                        serde_json::from_value(one)
                            .with_context(|| format!("{}", name.display()))?,
                    );
                }
            }
            one => cases
                .push(serde_json::from_value(one).with_context(|| format!("{}", name.display()))?),
        }
    }
    if cases.is_empty() {
        bail!("no cases in {}", folder.display());
    }
    Ok(cases)
}

/// Saves cases, one file for each task.
pub(crate) fn save(cases: &[Case], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut tasks: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        tasks.entry(&case.task).or_default().push(case);
    }
    for (task, cases) in tasks {
        let name = format!("{}.json", task.replace(['/', ' '], "-"));
        std::fs::write(folder.join(name), serde_json::to_string_pretty(&cases)?)?;
    }
    Ok(())
}
