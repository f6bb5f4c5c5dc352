//! Folders with skills, and which of a project's the user trusts.

use crate::model::Model;
use crate::trust::{Item, Pin, Trust};
use crate::{FILE, Settings};
use haft::ops::beneath;
use haft::ops::text::decode::visible;
use haft_agent::SkillFolder;
use std::path::{Path, PathBuf};

/// Default folder of a project's skills.
const PROJECT_SKILLS: &str = ".agents/skills";

/// Maximum number of files in a skill folder of a project; each one is part of what the
/// user trusts.
const MAX_FILES: usize = 2_000;

/// Maximum nesting of folders in a skill folder.
const MAX_DEPTH: usize = 6;

/// Returns the skill folders: those in the configuration, the user's own, and the
/// project's if it is trusted. Also returns warnings about those that are not used.
pub fn folders(settings: &Settings, model: &Model) -> (Vec<SkillFolder>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut folders: Vec<_> = model.skills.iter().map(SkillFolder::named).collect();
    if let Some(config) = &settings.folders.config {
        folders.push(SkillFolder::usual(config.join("skills")));
    }
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.paths.started, settings.trust);
    for (path, written) in named_by_project(settings) {
        let shown = visible(&written);
        let problem = match skills_in(&settings.paths.started, &path, &written) {
            SkillFolderContent::Skills(item) if trust.allows(&item) => {
                folders.push(SkillFolder::within(&settings.paths.started, path));
                continue;
            }
            SkillFolderContent::Skills(_) => {
                format!("ignored {shown}: not trusted yet; review it with `haft trust`")
            }
            SkillFolderContent::TooMany => format!(
                "ignored {shown}: more than {MAX_FILES} files, or folders nested more than \
                 {MAX_DEPTH} deep, which is too much to check for changes"
            ),
            SkillFolderContent::Nothing if written == PROJECT_SKILLS => continue,
            SkillFolderContent::Nothing => format!(
                "{FILE}: ignored skills {shown}: the folder has no files or leads out of this \
                 folder; name an outside folder in your own {FILE}"
            ),
        };
        warnings.push(problem);
    }
    (folders, warnings)
}

/// Returns the project's skill folders for `haft trust`, since they instruct the model.
pub(crate) fn of_project(settings: &Settings) -> Vec<Item> {
    let named = named_by_project(settings).into_iter();
    named
        .filter_map(
            |(path, written)| match skills_in(&settings.paths.started, &path, &written) {
                SkillFolderContent::Skills(item) => Some(*item),
                SkillFolderContent::TooMany | SkillFolderContent::Nothing => None,
            },
        )
        .collect()
}

/// Returns the project's skill folders without duplicates, each with the text that names
/// it: the default one and those in the project's file.
fn named_by_project(settings: &Settings) -> Vec<(PathBuf, String)> {
    let usual = settings.paths.started.join(PROJECT_SKILLS);
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

/// Content of a skill folder in a project.
enum SkillFolderContent {
    Skills(Box<Item>),
    /// Too many files or too deep to check each one; a file that was skipped would be
    /// used unseen.
    TooMany,
    /// No files, or the folder is outside the project.
    Nothing,
}

/// Returns the item to trust for one skill folder.
fn skills_in(project: &Path, folder: &Path, written: &str) -> SkillFolderContent {
    let mut files = Vec::new();
    if !gather(project, folder, 0, &mut files) {
        return SkillFolderContent::TooMany;
    }
    if files.is_empty() {
        return SkillFolderContent::Nothing;
    }
    files.sort();
    SkillFolderContent::Skills(Box::new(Item {
        kind: "skills",
        name: written.to_owned(),
        shown: format!("{} files with instructions for the model", files.len()),
        pin: Pin {
            written: written.to_owned(),
            files,
        },
        remarks: Vec::new(),
    }))
}

/// Collects the files below a folder; returns false if there are too many. Links are
/// followed, as they are when skills are read, but not out of the project.
#[expect(
    clippy::disallowed_methods,
    reason = "the files are checked for trust before a scope exists"
)]
fn gather(root: &Path, folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> bool {
    if beneath::real_within(root, folder).is_err() {
        return true;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return true;
    };
    for entry in entries.flatten() {
        if files.len() >= MAX_FILES || depth > MAX_DEPTH {
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
    fn a_linked_skill_is_hashed_by_its_target() {
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
            SkillFolderContent::Skills(item) => item.pin,
            SkillFolderContent::TooMany | SkillFolderContent::Nothing => panic!("no skills"),
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
    fn a_folder_with_too_many_skills_is_ignored() {
        let bed = tempfile::tempdir().unwrap();
        let skills = bed.path().join(PROJECT_SKILLS);
        std::fs::create_dir_all(skills.join("a")).unwrap();
        for number in 0..MAX_FILES {
            std::fs::write(skills.join(format!("a/{number}")), "").unwrap();
        }
        let found = || skills_in(bed.path(), &skills, PROJECT_SKILLS);
        assert!(matches!(found(), SkillFolderContent::Skills(_)));
        std::fs::write(skills.join("SKILL.md"), "one too many").unwrap();
        assert!(matches!(found(), SkillFolderContent::TooMany));
        std::fs::remove_dir_all(skills.join("a")).unwrap();
        assert!(matches!(found(), SkillFolderContent::Skills(_)));
        let deep = skills.join("1/2/3/4/5/6/7");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("SKILL.md"), "too deep").unwrap();
        assert!(matches!(found(), SkillFolderContent::TooMany));
    }
}
