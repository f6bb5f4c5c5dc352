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

/// How many files a folder of skills in a project may have: each is part of what is
/// trusted.
const MOST_FILES: usize = 2_000;

/// How deep its folders may be nested.
const DEEPEST: usize = 6;

/// The parts of the system prompt.
pub(super) struct Told {
    own: Option<String>,
    work_dir: PathBuf,
    platform: String,
    date: String,
    skills: String,
    instructions: String,
    /// The agent's own: sub-agents are not told it.
    memory: String,
}

impl Told {
    /// Returns the system prompt of an agent with the tools that this session has now.
    pub(super) fn system(&self, runtime: &Runtime) -> String {
        let instructions = [&self.instructions, &self.memory].map(|text| text.trim());
        system_prompt(&Prompt {
            tools: &runtime.prompt_section(),
            instructions: instructions.join("\n\n").trim(),
            ..self.prompt()
        })
    }

    /// Returns the part of it that sub-agents are told too.
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

/// Gathers it, and gives the session the tool that skills need.
pub(super) async fn told(settings: &Settings, model: &model::Model, runtime: &Runtime) -> Told {
    let (skills, warnings) = Skills::load(runtime, &folders(settings, model)).await;
    note(settings, &warnings);
    if let Err(error) = skills.add_to(runtime) {
        note(settings, &[error.to_string()]);
    }
    let config = settings.folders.config.as_deref();
    let wanted = instructions(runtime, &settings.work_dir, config).await;
    note(settings, &wanted.warnings);
    let memory = haft_agent::memory(runtime, &model.memory).await;
    note(settings, &memory.warnings);
    let now = haft::ops::text::moment::to_seconds(SystemTime::now());
    Told {
        own: model.system_prompt.clone(),
        work_dir: runtime.work_dir(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        date: now.split('T').next().unwrap_or_default().to_owned(),
        skills: skills.section(),
        instructions: wanted.text,
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
        let shown = visible(&written);
        let problem = match skills_in(&settings.started, &path, &written) {
            Found::Skills(item) if trust.allows(&item) => {
                folders.push(SkillFolder::within(&settings.started, path));
                continue;
            }
            Found::Skills(_) => {
                format!("{shown} is not used before it is trusted; `haft trust` shows it")
            }
            Found::TooMany => format!(
                "{shown} is not used: it has more than {MOST_FILES} files, or folders nested \
                 more than {DEEPEST} deep, which is too much to check for changes"
            ),
            Found::Nothing if written == PROJECT_SKILLS => continue,
            Found::Nothing => format!(
                "{FILE}: skills {shown} is not used: there are no files in it, or it \
                 leads out of this folder; name a folder outside in your own file"
            ),
        };
        note(settings, &[problem]);
    }
    folders
}

/// The skills of a project, to be looked at by the person: what they tell a model.
pub(crate) fn skills_of_project(settings: &Settings) -> Vec<Item> {
    let named = named_by_project(settings).into_iter();
    named
        .filter_map(
            |(path, written)| match skills_in(&settings.started, &path, &written) {
                Found::Skills(item) => Some(*item),
                Found::TooMany | Found::Nothing => None,
            },
        )
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

/// What a folder of skills in a project holds.
enum Found {
    Skills(Box<Item>),
    /// More than can be trusted file by file. What is left out would be used unseen.
    TooMany,
    /// No files, or the folder is elsewhere.
    Nothing,
}

/// The skills in one folder of a project.
fn skills_in(project: &Path, folder: &Path, written: &str) -> Found {
    let mut files = Vec::new();
    if !gather(project, folder, 0, &mut files) {
        return Found::TooMany;
    }
    if files.is_empty() {
        return Found::Nothing;
    }
    files.sort();
    Found::Skills(Box::new(Item {
        kind: "skills",
        name: written.to_owned(),
        shown: format!("{} files that tell a model how to work", files.len()),
        pin: Pin {
            written: written.to_owned(),
            files,
        },
        remarks: Vec::new(),
    }))
}

/// Collects the files below a folder, and says whether these are all. Links count as what
/// they lead to, as they do for who reads the skills; none leads out of the project.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be trusted is looked at before there is a scope"
)]
fn gather(root: &Path, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> bool {
    if beneath::real_within(root, folder).is_err() {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return true;
    };
    for entry in entries.flatten() {
        if files.len() >= MOST_FILES || depth > DEEPEST {
            return false;
        }
        let path = entry.path();
        let Ok(kind) = std::fs::metadata(&path) else {
            continue;
        };
        if kind.is_dir() {
            if !gather(root, &path, depth + 1, files) {
                return false;
            }
        } else if kind.is_file() && beneath::real_within(root, &path).is_ok() {
            files.push(path);
        }
    }
    true
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
        let pin = || match skills_in(&project, &skills, PROJECT_SKILLS) {
            Found::Skills(item) => item.pin,
            Found::TooMany | Found::Nothing => panic!("no skills"),
        };
        let hash = || pin().hash().unwrap();
        let before = hash();
        symlink("../../docs", skills.join("linked")).unwrap();
        let linked = hash();
        assert_ne!(before, linked);
        std::fs::write(project.join("docs/SKILL.md"), "changed").unwrap();
        assert_ne!(linked, hash());
        symlink(bed.path().join("secret"), skills.join("a/secret.md")).unwrap();
        assert!(!pin().files.iter().any(|file| file.ends_with("secret.md")));
    }

    #[test]
    fn skills_that_cannot_all_be_checked_are_not_used() {
        let bed = tempfile::tempdir().unwrap();
        let skills = bed.path().join(PROJECT_SKILLS);
        std::fs::create_dir_all(skills.join("a")).unwrap();
        for number in 0..MOST_FILES {
            std::fs::write(skills.join(format!("a/{number}")), "").unwrap();
        }
        let found = || skills_in(bed.path(), &skills, PROJECT_SKILLS);
        assert!(matches!(found(), Found::Skills(_)));
        std::fs::write(skills.join("SKILL.md"), "one too many").unwrap();
        assert!(matches!(found(), Found::TooMany));
        std::fs::remove_dir_all(skills.join("a")).unwrap();
        assert!(matches!(found(), Found::Skills(_)));
        let deep = skills.join("1/2/3/4/5/6/7");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("SKILL.md"), "too deep").unwrap();
        assert!(matches!(found(), Found::TooMany));
    }
}
