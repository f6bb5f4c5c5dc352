//! Skills: folders with a `SKILL.md` that says how some work is done. A prompt lists
//! their names and what they are for; the rest is read when it is needed.
//!
//! What is in them is text from files: it is bounded, control characters are made
//! visible, and nothing outside the folder of a skill is read through it.

mod front;
mod tool;

pub use tool::SKILL;

use haft::ops::backend::{Kind, Local, Through};
use haft::ops::text::decode::{decode, visible};
use haft::ops::text::sniff;
use haft::ops::{Access, Backend, Error, FilePath, Scope, read};
use haft::{Duplicate, PromptFiles, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// The largest such file that is read.
const LARGEST: u64 = 256 << 10;

/// How many skills there may be.
const MOST: usize = 200;

/// A folder with skills in it, or with one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    root: PathBuf,
    below: PathBuf,
    is_named: bool,
}

impl SkillFolder {
    /// One that somebody named: it should be there.
    pub fn named(path: impl AsRef<Path>) -> Self {
        Self {
            root: path.as_ref().to_owned(),
            below: PathBuf::new(),
            is_named: true,
        }
    }

    /// One that may be there.
    pub fn usual(path: impl AsRef<Path>) -> Self {
        Self {
            is_named: false,
            ..Self::named(path)
        }
    }

    /// One that may be there, below a folder that no link may lead out of.
    pub fn within(root: impl AsRef<Path>, below: impl AsRef<Path>) -> Self {
        Self {
            root: root.as_ref().to_owned(),
            below: below.as_ref().to_owned(),
            is_named: false,
        }
    }

    fn path(&self) -> PathBuf {
        match self.below.as_os_str().is_empty() {
            true => self.root.clone(),
            false => self.root.join(&self.below),
        }
    }
}

/// What a skill is called, is for, and where it is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Skill {
    /// Its name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is for, on one line.
    pub description: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The folder as it was checked when it was found.
    at: FilePath,
    scope: Scope,
}

impl Skill {
    /// A file of it, by its path from the folder.
    fn resolve(&self, file: &str) -> Result<FilePath, Error> {
        let wanted = self.at.real().join(file);
        let path = self.scope.resolve_as(file, &wanted, Access::Read)?;
        // Links may lead elsewhere among the skills, but not out of this one.
        if path.real().starts_with(self.at.real()) {
            return Ok(path);
        }
        Err(Error::NotAllowed {
            path: file.to_owned(),
            remedy: "only files in the folder of the skill can be read with it".to_owned(),
        })
    }
}

/// Skills, in a stable order.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    skills: Arc<Vec<Skill>>,
}

impl Skills {
    /// Finds the skills in folders. Of two with one name the first counts. What is
    /// wrong with a skill is a warning that names its file, and the others are there.
    /// What the session keeps from models is no skill.
    pub async fn load(runtime: &Runtime, folders: &[SkillFolder]) -> (Self, Vec<String>) {
        let mut finding = Finding {
            runtime,
            skills: Vec::new(),
            warnings: Vec::new(),
        };
        for folder in folders {
            finding.look_in(folder).await;
        }
        let skills = Self {
            skills: Arc::new(finding.skills),
        };
        (skills, finding.warnings)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// All of them.
    #[must_use]
    pub fn list(&self) -> &[Skill] {
        &self.skills
    }

    /// The section of a prompt that says which there are; empty if there are none.
    #[must_use]
    pub fn section(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "## Skills\nHow some work is done. If one fits, read it with the tool {SKILL} before \
             you begin."
        );
        for skill in self.skills.iter() {
            text.push_str(&format!("\n- {}: {}", skill.name, skill.description));
        }
        text
    }

    /// Adds the tool that reads them; none, if there are none.
    ///
    /// # Errors
    /// When there is a tool of its name.
    pub fn add_to(&self, runtime: &Runtime) -> Result<(), Duplicate> {
        if self.is_empty() {
            return Ok(());
        }
        runtime.tools().add_any(Arc::new(tool::Read::new(self)))
    }

    fn find(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// Skills that were found so far.
struct Finding<'a> {
    runtime: &'a Runtime,
    skills: Vec<Skill>,
    warnings: Vec<String>,
}

impl Finding<'_> {
    fn warn(&mut self, path: &Path, why: impl std::fmt::Display) {
        let path = visible(&path.to_string_lossy());
        self.warnings.push(format!("{path}: {why}"));
    }

    async fn look_in(&mut self, folder: &SkillFolder) {
        let files = match self.runtime.prompt_files(&folder.root) {
            Ok(files) => files,
            Err(error) => {
                if folder.is_named {
                    self.warn(
                        &folder.root,
                        format!("no folder of skills: {}", why(&error)),
                    );
                }
                return;
            }
        };
        // The root itself is there: it was opened.
        let is_root = folder.below.as_os_str().is_empty();
        let below = match is_root {
            true => Path::new("."),
            false => &folder.below,
        };
        let top = match files.resolve(below) {
            Ok(top) if is_root || top.is_there() => top,
            Ok(_) => return,
            Err(error) => return self.warn(&folder.path(), said(&error)),
        };
        if self.one(&files, &top).await {
            return;
        }
        let entries = match Local::new().list(&top).await {
            Ok(entries) => entries,
            Err(error) => return self.warn(&folder.path(), said(&error)),
        };
        for entry in entries {
            let is_folder = match &entry.target {
                Some(target) => target.through != Through::To(Kind::File),
                None => entry.stat.kind == Kind::Directory,
            };
            if !is_folder {
                continue;
            }
            let path = top.real().join(&entry.name);
            match files.resolve(&path) {
                Ok(found) => drop(self.one(&files, &found).await),
                Err(error) => self.warn(&path, said(&error)),
            }
            if self.skills.len() >= MOST {
                return self.warn(
                    &folder.path(),
                    format!("more than {MOST} skills; the others are left out"),
                );
            }
        }
    }

    /// Takes in the skill in a folder; whether it is one, be it good or bad.
    async fn one(&mut self, files: &PromptFiles, folder: &FilePath) -> bool {
        let file = folder.real().join(FILE);
        let path = match files.resolve(&file) {
            Ok(path) if !path.is_there() => return false,
            Ok(path) if path.closed().is_none() => path,
            Ok(_) => {
                self.warn(
                    &file,
                    "left out: a rule keeps it from the model; haft.yaml has the rules",
                );
                return true;
            }
            Err(error) => {
                self.warn(&file, said(&error));
                return true;
            }
        };
        let named = folder.real().file_name();
        let named = named.map(|name| name.to_string_lossy().into_owned());
        match front_of(&path, named.as_deref().unwrap_or_default()).await {
            Err(why) => self.warn(&file, why),
            Ok(front) => match self.skills.iter().find(|other| other.name == front.name) {
                Some(first) => {
                    let first = visible(&first.folder.to_string_lossy());
                    let why = format!("left out: the skill {} is in {first} too", front.name);
                    self.warn(&file, why);
                }
                None => self.skills.push(Skill {
                    name: front.name,
                    description: front.description,
                    folder: folder.real().to_owned(),
                    at: folder.clone(),
                    scope: files.scope().clone(),
                }),
            },
        }
        true
    }
}

async fn front_of(path: &FilePath, folder: &str) -> Result<front::Front, String> {
    let bytes = read::whole(&Local::new(), path, LARGEST)
        .await
        .map_err(|error| said(&error))?;
    if sniff::is_binary(&bytes) {
        return Err("left out: it is no text".to_owned());
    }
    front::read(&decode(&bytes), folder).map_err(|why| format!("left out: {why}"))
}

fn said(error: &Error) -> String {
    format!("left out: {}", why(error))
}

fn why(error: &Error) -> String {
    match error {
        Error::NotAllowed { .. } => {
            "a link in it leads out of the folder, or to a secret place".to_owned()
        }
        Error::NotRegular { kind, .. } => format!("it is a {kind}"),
        Error::TooLarge { size, limit, .. } => {
            format!("it has {size} bytes, and at most {limit} are read")
        }
        Error::NotFound { .. } => "it is not there".to_owned(),
        error => visible(&error.to_string()),
    }
}
