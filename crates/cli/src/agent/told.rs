//! What a model is told before anything else.

use crate::config::{FILE, Settings, model};
use crate::output;
use crate::trust::{Item, Pin, Trust};
use haft::Runtime;
use haft::ops::beneath;
use haft::ops::text::decode::visible;
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
    let memory = haft_agent::memory(runtime, &model.memory).await;
    note(settings, &memory.warnings);
    let instructions = [wanted.text.as_str(), &memory.text].map(str::trim);
    let instructions = instructions.join("\n\n");
    let now = haft::ops::text::moment::to_seconds(SystemTime::now());
    let date = now.split('T').next().unwrap_or_default();
    let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    let guidance = runtime.guidance();
    let section = skills.section();
    let work_dir = runtime.work_dir();
    let prompt = Prompt {
        own: model.system_prompt.as_deref(),
        work_dir: &work_dir,
        platform: &platform,
        date,
        guidance: &guidance,
        skills: &section,
        instructions: instructions.trim(),
    };
    Told {
        system: system_prompt(&prompt),
        surroundings: system_prompt(&Prompt {
            own: Some(""),
            guidance: "",
            skills: "",
            // Memory is the agent's own.
            instructions: &wanted.text,
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
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.started, settings.trust);
    for (path, written) in named_by_project(settings) {
        match skills_in(&settings.started, &path, &written) {
            Some(item) if trust.allows(&item) => {
                folders.push(SkillFolder::within(&settings.started, path));
            }
            Some(_) => {
                let written = visible(&written);
                note(
                    settings,
                    &[format!(
                        "{written} is not used before it is trusted; `haft trust` shows it"
                    )],
                );
            }
            None if written == PROJECT_SKILLS => {}
            None => {
                let written = visible(&written);
                note(
                    settings,
                    &[format!(
                        "{FILE}: skills {written} is not used: there are no files in it, or it \
                         leads out of this folder; name a folder outside in your own file"
                    )],
                );
            }
        }
    }
    folders
}

/// The skills of a project, to be looked at by the person: what they tell a model.
pub(crate) fn skills_of_project(settings: &Settings) -> Vec<Item> {
    let named = named_by_project(settings).into_iter();
    named
        .filter_map(|(path, written)| skills_in(&settings.started, &path, &written))
        .collect()
}

/// Where the project has skills: the folders that its file names and the usual one, each
/// once, and how each is written.
fn named_by_project(settings: &Settings) -> Vec<(PathBuf, String)> {
    let usual = settings.started.join(PROJECT_SKILLS);
    let mut all = vec![(usual, PROJECT_SKILLS.to_owned())];
    let named = settings
        .model
        .as_ref()
        .map(|model| &model.skills_of_project);
    for (path, written) in named.into_iter().flatten() {
        // `a/./b` is `a/b`.
        let path: PathBuf = path.components().collect();
        if !all.iter().any(|(known, _)| *known == path) {
            all.push((path, written.clone()));
        }
    }
    all
}

/// The skills in one folder of a project; none if nothing is there, or it is elsewhere.
fn skills_in(project: &Path, folder: &Path, written: &str) -> Option<Item> {
    let mut files = Vec::new();
    gather(project, folder, 0, &mut files);
    files.sort();
    (!files.is_empty()).then(|| Item {
        kind: "skills",
        name: written.to_owned(),
        shown: format!("{} files that tell a model how to work", files.len()),
        pin: Pin {
            written: written.to_owned(),
            files,
        },
        remarks: Vec::new(),
    })
}

/// Files below a folder, as deep and as many as skills have. Links count as what they
/// lead to, as they do for who reads the skills; none leads out of the project.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be trusted is looked at before there is a scope"
)]
fn gather(root: &Path, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    if beneath::real_within(root, folder).is_err() {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if files.len() >= 2_000 || depth > 6 {
            return;
        }
        let path = entry.path();
        let Ok(kind) = std::fs::metadata(&path) else {
            continue;
        };
        if kind.is_dir() {
            gather(root, &path, depth + 1, files);
        } else if kind.is_file() && beneath::real_within(root, &path).is_ok() {
            files.push(path);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_among_the_skills_count_as_what_they_lead_to() {
        let bed = tempfile::tempdir().unwrap();
        let project = bed.path().join("project");
        let skills = project.join(PROJECT_SKILLS);
        for folder in [&skills.join("a"), &project.join("docs")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(skills.join("a/SKILL.md"), "a").unwrap();
        std::fs::write(project.join("docs/SKILL.md"), "b").unwrap();
        std::fs::write(bed.path().join("secret"), "s").unwrap();
        let hash = || {
            skills_in(&project, &skills, PROJECT_SKILLS)
                .unwrap()
                .pin
                .hash()
                .unwrap()
        };
        let before = hash();
        symlink("../../docs", skills.join("linked")).unwrap();
        let linked = hash();
        assert_ne!(before, linked);
        std::fs::write(project.join("docs/SKILL.md"), "changed").unwrap();
        assert_ne!(linked, hash());
        symlink(bed.path().join("secret"), skills.join("a/secret.md")).unwrap();
        let files = skills_in(&project, &skills, PROJECT_SKILLS)
            .unwrap()
            .pin
            .files;
        assert!(!files.iter().any(|file| file.ends_with("secret.md")));
    }
}
