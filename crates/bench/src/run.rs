//! Running a corpus against one server.

use crate::case::Case;
use crate::classify::{self, Outcome};
use crate::mapping::Mapping;
use crate::server::Server;
use anyhow::Result;
use serde::Serialize;
use std::path::Path;

/// Result of one case.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CaseResult {
    pub(crate) task: String,
    pub(crate) mistake: String,
    pub(crate) outcome: Outcome,
    pub(crate) reply: String,
    pub(crate) is_error: bool,
    pub(crate) old: String,
    pub(crate) new: String,
    /// The file after a wrong change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) now: Option<String>,
}

/// Results of a corpus.
#[derive(Debug, Clone)]
pub(crate) struct ServerResult {
    pub(crate) name: String,
    pub(crate) cases: Vec<CaseResult>,
    /// Size of the edit tool's definition, and of all definitions, in bytes.
    pub(crate) definition: usize,
    pub(crate) definitions: usize,
}

pub(crate) fn run(mapping: &Mapping, cases: &[Case]) -> Result<ServerResult> {
    let work = tempfile::Builder::new().prefix("haft-bench").tempdir()?;
    let dir = std::fs::canonicalize(work.path())?;
    let mut server = Server::start(&mapping.command(&dir), &dir)?;
    let tools = server.tools()?;
    let size = |tool: &serde_json::Value| tool.to_string().len();
    let definition = tools
        .iter()
        .filter(|tool| tool.get("name").and_then(|name| name.as_str()) == Some(&mapping.tool))
        .map(size)
        .sum();
    let definitions = tools.iter().map(size).sum();
    let mut results = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let folder = format!("c{index}");
        let root = dir.join(&folder);
        results.push(one(mapping, &mut server, case, &folder, &dir)?);
        std::fs::remove_dir_all(root)?;
    }
    Ok(ServerResult {
        name: mapping.name.clone(),
        cases: results,
        definition,
        definitions,
    })
}

fn one(
    mapping: &Mapping,
    server: &mut Server,
    case: &Case,
    folder: &str,
    dir: &Path,
) -> Result<CaseResult> {
    let root = dir.join(folder);
    for (path, content) in &case.files {
        let path = root.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, content.bytes()?)?;
    }
    if let Some((tool, arguments)) = mapping.reading(case, folder, dir) {
        server.call(&tool, &arguments)?;
    }
    let answer = server.call(&mapping.tool, &mapping.arguments(case, folder, dir))?;
    // The edited file, or for a path that does not exist the one that was meant.
    let edited = case
        .files
        .get_key_value(&case.path)
        .or_else(|| case.files.first_key_value());
    let mut touched = false;
    for (path, content) in &case.files {
        if edited.is_none_or(|(edited, _)| edited != path) {
            touched |= std::fs::read(root.join(path)).ok() != Some(content.bytes()?);
        }
    }
    touched |= files(&root)? != case.files.len();
    let before = edited
        .map(|(_, content)| content.bytes())
        .transpose()?
        .unwrap_or_default();
    let now = edited.and_then(|(path, _)| std::fs::read(root.join(path)).ok());
    let outcome = classify::outcome(
        case,
        mapping.matches,
        &before,
        now.as_deref(),
        touched,
        &answer.text,
    )?;
    let wrong = (outcome == Outcome::Wrong)
        .then(|| now.map(|now| String::from_utf8_lossy(&now).into_owned()))
        .flatten();
    Ok(CaseResult {
        task: case.task.clone(),
        mistake: case.mistake.clone(),
        outcome,
        reply: answer.text,
        is_error: answer.is_error,
        old: case.old.clone(),
        new: case.new.clone(),
        now: wrong,
    })
}

/// Counts the files in a folder.
fn files(folder: &Path) -> Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() {
            files(&entry.path())?
        } else {
            1
        };
    }
    Ok(count)
}
