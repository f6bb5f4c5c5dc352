//! System prompt of an agent: instructions, skills and memory, read from the user's and
//! the project's files.

use crate::output;
use haft::Runtime;
use haft::ops::Access;
use haft::ops::backend::{Backend, Expect, Local};
use haft::ops::blocking::on_a_thread;
use haft_agent::{Prompt, Skills, instructions, system_prompt};
use haft_config::{Settings, model};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::SystemTime;

/// File with the project's instructions.
const FILE: &str = "AGENTS.md";

/// Files that are longer are not instructions.
const MAX_BYTES: u64 = 1 << 20;

/// Parts of the system prompt.
pub(super) struct PromptParts {
    own: Option<String>,
    work_dir: PathBuf,
    platform: String,
    date: String,
    skills: String,
    instructions: String,
    /// Only for the main agent; sub-agents do not get it.
    memory: String,
}

impl PromptParts {
    /// Returns the system prompt, with the tools that the session has now.
    pub(super) fn system_prompt(&self, runtime: &Runtime) -> String {
        let instructions = [&self.instructions, &self.memory].map(|text| text.trim());
        system_prompt(&Prompt {
            tools: &runtime.prompt_section(),
            instructions: instructions.join("\n\n").trim(),
            ..self.prompt()
        })
    }

    /// Returns the part that sub-agents get too.
    pub(super) fn surroundings(&self) -> String {
        system_prompt(&Prompt {
            own: Some(""),
            skills: "",
            ..self.prompt()
        })
    }

    fn prompt(&self) -> Prompt<'_> {
        Prompt {
            own: self.own.as_deref(),
            work_dir: &self.work_dir,
            platform: &self.platform,
            date: &self.date,
            tools: "",
            skills: &self.skills,
            instructions: &self.instructions,
        }
    }
}

/// Reads all parts, and adds the tool that loads skills.
pub(super) async fn collect(
    settings: &Settings,
    model: &model::Model,
    runtime: &Runtime,
) -> PromptParts {
    let (folders, warnings) = haft_config::skills::folders(settings, model);
    note(settings, &warnings);
    let (skills, warnings) = Skills::load(runtime, &folders).await;
    note(settings, &warnings);
    if let Err(error) = skills.add_to(runtime) {
        note(settings, &[error.to_string()]);
    }
    let config = settings.folders.config.as_deref();
    let project = instructions(runtime, &settings.paths.work_dir, config).await;
    note(settings, &project.warnings);
    let memory = haft_agent::memory(runtime, &model.memory).await;
    note(settings, &memory.warnings);
    let now = haft::ops::text::moment::to_seconds(SystemTime::now());
    PromptParts {
        own: model.system_prompt.clone(),
        work_dir: runtime.work_dir(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        date: now.split('T').next().unwrap_or_default().to_owned(),
        skills: skills.section(),
        instructions: project.text,
        memory: memory.text,
    }
}

/// Adds a line to the `AGENTS.md` of the work folder, as the user: rules about the model's
/// calls do not apply. A link must not lead out of the folder.
pub(super) async fn add_instruction(runtime: &Runtime, line: &str) -> Result<String, String> {
    let failed = |error: haft::ops::Error| format!("cannot add to {FILE}: {error}");
    let scope = runtime.scope();
    let path = scope.resolve(FILE, Access::Write).map_err(failed)?;
    let backend = Local::new();
    let text = match path.is_there() {
        true => {
            let content = backend.read(&path).await.map_err(failed)?;
            let mut text = String::new();
            let mut reader = content.reader.take(MAX_BYTES);
            let read = on_a_thread(move || reader.read_to_string(&mut text).map(|_| text)).await?;
            read.map_err(|error| format!("cannot add to {FILE}: {error}"))?
        }
        false => String::new(),
    };
    if text.len() as u64 >= MAX_BYTES {
        return Err(format!("{FILE} is too long to add to"));
    }
    let text = with_line(&text, line);
    let written = backend.write(&path, text.into_bytes(), Expect::Anything);
    written.await.map_err(failed)?;
    Ok(format!("added to {FILE}: {line}"))
}

/// Adds a line to the end of the text as an item of a list.
fn with_line(text: &str, line: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let gap = match last {
        None => "",
        Some(last) if last.trim_start().starts_with(['-', '*']) => "",
        Some(_) => end,
    };
    let ending = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        end
    };
    format!("{text}{ending}{gap}- {line}{end}")
}

fn note(settings: &Settings, warnings: &[String]) {
    if !settings.quiet {
        for warning in warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_line;

    #[test]
    fn a_line_is_added_as_an_item_of_a_list() {
        for (before, after) in [
            ("", "- New\n"),
            ("# Rules\n\n- Old\n", "# Rules\n\n- Old\n- New\n"),
            ("Use tabs.", "Use tabs.\n\n- New\n"),
            ("- Old\r\n", "- Old\r\n- New\r\n"),
        ] {
            assert_eq!(with_line(before, "New"), after);
        }
    }
}
