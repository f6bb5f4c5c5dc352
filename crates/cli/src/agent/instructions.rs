//! System prompt of an agent: instructions, skills and memory, read from the user's and
//! the project's files.

use crate::output;
use haft::Runtime;
use haft_agent::{Prompt, Skills, instructions, system_prompt};
use haft_config::{Settings, model};
use std::path::PathBuf;
use std::time::SystemTime;

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

fn note(settings: &Settings, warnings: &[String]) {
    if !settings.quiet {
        for warning in warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
}
