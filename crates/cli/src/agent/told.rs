//! What a model is told before anything else.

use crate::config::{Settings, model};
use crate::output;
use crate::trust::{Item, Pin, Trust};
use haft::Runtime;
use haft_agent::{Prompt, SkillFolder, Skills, instructions, system_prompt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where a project keeps skills.
const PROJECT_SKILLS: &str = ".agents/skills";

/// What it is told.
pub(super) struct Told {
    /// The system prompt.
    pub(super) system: String,
    /// The part of it that sub-agents are told too.
    pub(super) surroundings: String,
}

/// Gathers it, and gives the session the tool that skills need.
pub(super) async fn told(settings: &Settings, model: &model::Model, runtime: &Runtime) -> Told {
    let (skills, warnings) = Skills::load(&folders(settings, model)).await;
    note(settings, &warnings);
    if let Err(error) = skills.add_to(runtime) {
        note(settings, &[error.to_string()]);
    }
    let config = settings.folders.config.as_deref();
    let wanted = instructions(&settings.work_dir, config).await;
    note(settings, &wanted.warnings);
    let now = haft::ops::text::moment::to_seconds(SystemTime::now());
    let date = now.split('T').next().unwrap_or_default();
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let guidance = runtime.guidance();
    let section = skills.section();
    let prompt = Prompt {
        own: model.system_prompt.as_deref(),
        work_dir: &settings.work_dir,
        platform: &platform,
        date,
        guidance: &guidance,
        skills: &section,
        instructions: &wanted.text,
    };
    Told {
        system: system_prompt(&prompt),
        surroundings: system_prompt(&Prompt {
            own: Some(""),
            guidance: "",
            skills: "",
            ..prompt
        }),
    }
}

fn note(settings: &Settings, warnings: &[String]) {
    if !settings.quiet {
        for warning in warnings {
            output::note(&format!("warning: {warning}"));
        }
    }
}

/// The folders of skills: those that are named, the person's own, and the project's
/// once it is trusted.
fn folders(settings: &Settings, model: &model::Model) -> Vec<SkillFolder> {
    let mut folders: Vec<_> = model.skills.iter().map(SkillFolder::named).collect();
    if let Some(config) = &settings.folders.config {
        folders.push(SkillFolder::usual(config.join("skills")));
    }
    if let Some(item) = skills_of_project(&settings.started) {
        let state = settings.folders.state.as_deref();
        if Trust::load(state, &settings.started, settings.trust).allows(&item) {
            folders.push(SkillFolder::within(&settings.started, PROJECT_SKILLS));
        } else if !settings.quiet {
            output::note(&format!(
                "warning: {PROJECT_SKILLS} is not used before it is trusted; `haft trust` shows it"
            ));
        }
    }
    folders
}

/// The skills of a project, to be looked at by the person: what they tell a model.
pub(crate) fn skills_of_project(folder: &Path) -> Option<Item> {
    let root = folder.join(PROJECT_SKILLS);
    let mut files = Vec::new();
    gather(&root, 0, &mut files);
    files.sort();
    (!files.is_empty()).then(|| Item {
        kind: "skills",
        name: PROJECT_SKILLS.to_owned(),
        shown: format!("{} files that tell a model how to work", files.len()),
        pin: Pin {
            written: PROJECT_SKILLS.to_owned(),
            files,
        },
        remarks: Vec::new(),
    })
}

/// Files below a folder, as deep and as many as skills have.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be trusted is looked at before there is a scope"
)]
fn gather(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if files.len() >= 2_000 || depth > 6 {
            return;
        }
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            gather(&entry.path(), depth + 1, files);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
}
