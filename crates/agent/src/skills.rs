//! Skills: folders with a `SKILL.md` that describes how to do some kind of work. The prompt
//! lists their names and descriptions; the model reads the rest when it needs it.
//!
//! Skills are untrusted text: their size is limited, control characters are made visible, and
//! no files outside the folder of the skill can be read through it.

mod front_matter;
mod tool;

pub use tool::SKILL;

use haft::ops::backend::{Kind, Local, Through};
use haft::ops::text::decode::{decode, visible};
use haft::ops::text::sniff;
use haft::ops::{Access, Backend, Error, FilePath, Scope, read};
use haft::{Duplicate, PromptFiles, Runtime};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// Maximum size of that file in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Maximum number of skills.
const MAX_SKILLS: usize = 200;

/// A folder that contains skills or is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFolder {
    root: PathBuf,
    below: PathBuf,
    is_named: bool,
}

impl SkillFolder {
    /// A folder from the configuration. If it is missing, there is a warning.
    pub fn named(path: impl AsRef<Path>) -> Self {
        Self {
            root: path.as_ref().to_owned(),
            below: PathBuf::new(),
            is_named: true,
        }
    }

    /// A default folder, which may be missing.
    pub fn usual(path: impl AsRef<Path>) -> Self {
        Self {
            is_named: false,
            ..Self::named(path)
        }
    }

    /// A default folder below `root`. Links must not lead out of `root`.
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

/// A Markdown file with instructions that the model can load.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Skill {
    /// Name, of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Purpose, on one line.
    pub description: String,
    /// Real path of the folder.
    pub folder: PathBuf,
    /// The folder as a checked path.
    at: FilePath,
    scope: Scope,
}

impl Skill {
    /// Resolves a path relative to the folder.
    fn resolve(&self, file: &str) -> Result<FilePath, Error> {
        let full = self.at.real().join(file);
        let path = self.scope.resolve_as(file, &full, Access::Read)?;
        // The scope also allows links to other skills.
        if path.real().starts_with(self.at.real()) {
            return Ok(path);
        }
        Err(Error::NotAllowed {
            path: file.to_owned(),
            remedy: "only files in the folder of the skill can be read with it".to_owned(),
        })
    }
}

/// A list of skills, in a stable order.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    skills: Arc<Vec<Skill>>,
}

impl Skills {
    /// Loads the skills in folders. If two have the same name, the first one is used. Returns
    /// warnings about invalid skills, which are left out. Files that the session's rules
    /// close to the model are left out too.
    pub async fn load(runtime: &Runtime, folders: &[SkillFolder]) -> (Self, Vec<String>) {
        let mut loader = SkillLoader {
            runtime,
            skills: Vec::new(),
            warnings: Vec::new(),
        };
        for folder in folders {
            loader.load_folder(folder).await;
        }
        let skills = Self {
            skills: Arc::new(loader.skills),
        };
        (skills, loader.warnings)
    }

    /// Whether there are no skills.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns all skills.
    #[must_use]
    pub fn list(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the section of the system prompt that lists the skills; empty without skills.
    #[must_use]
    pub fn section(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = format!(
            "## Skills\nInstructions for certain kinds of work. If one fits the task, read it with \
             the tool {SKILL} before you start."
        );
        for skill in self.skills.iter() {
            text.push_str(&format!("\n- {}: {}", skill.name, skill.description));
        }
        text
    }

    /// Adds the tool that reads skills, if there are any.
    ///
    /// # Errors
    /// When a tool with the same name exists.
    pub fn add_to(&self, runtime: &Runtime) -> Result<(), Duplicate> {
        if self.is_empty() {
            return Ok(());
        }
        runtime
            .tools()
            .add_any(Arc::new(tool::SkillTool::new(self)))
    }

    fn find(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }
}

/// Collects skills and warnings while folders are read.
struct SkillLoader<'a> {
    runtime: &'a Runtime,
    skills: Vec<Skill>,
    warnings: Vec<String>,
}

impl SkillLoader<'_> {
    fn warn(&mut self, path: &Path, why: impl std::fmt::Display) {
        let path = visible(&path.to_string_lossy());
        self.warnings.push(format!("{path}: {why}"));
    }

    async fn load_folder(&mut self, folder: &SkillFolder) {
        let files = match self.runtime.prompt_files(&folder.root) {
            Ok(files) => files,
            Err(error) => {
                if folder.is_named {
                    self.warn(&folder.root, format!("cannot load skills: {}", why(&error)));
                }
                return;
            }
        };
        // The root exists, since it was opened.
        let is_root = folder.below.as_os_str().is_empty();
        let below = match is_root {
            true => Path::new("."),
            false => &folder.below,
        };
        let top = match files.resolve(below) {
            Ok(top) if is_root || top.is_there() => top,
            Ok(_) => return,
            Err(error) => return self.warn(&folder.path(), left_out(&error)),
        };
        if self.load_skill(&files, &top).await {
            return;
        }
        let entries = match Local::new().list(&top).await {
            Ok(entries) => entries,
            Err(error) => return self.warn(&folder.path(), left_out(&error)),
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
                Ok(found) => drop(self.load_skill(&files, &found).await),
                Err(error) => self.warn(&path, left_out(&error)),
            }
            if self.skills.len() >= MAX_SKILLS {
                return self.warn(
                    &folder.path(),
                    format!("more than {MAX_SKILLS} skills; the others are left out"),
                );
            }
        }
    }

    /// Loads the skill in a folder. Returns whether the folder has a `SKILL.md`, even if that is
    /// not valid.
    async fn load_skill(&mut self, files: &PromptFiles, folder: &FilePath) -> bool {
        let file = folder.real().join(FILE);
        let path = match files.resolve(&file) {
            Ok(path) if !path.is_there() => return false,
            Ok(path) if path.exclusion().is_none() => path,
            Ok(_) => {
                self.warn(
                    &file,
                    "left out: a rule closes it to the model; see the rules in haft.yaml",
                );
                return true;
            }
            Err(error) => {
                self.warn(&file, left_out(&error));
                return true;
            }
        };
        let named = folder.real().file_name();
        let named = named.map(|name| name.to_string_lossy().into_owned());
        match read_front_matter(&path, named.as_deref().unwrap_or_default()).await {
            Err(why) => self.warn(&file, why),
            Ok(front) => match self.skills.iter().find(|other| other.name == front.name) {
                Some(first) => {
                    let first = visible(&first.folder.to_string_lossy());
                    let why = format!("left out: the skill {} is also in {first}", front.name);
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

async fn read_front_matter(
    path: &FilePath,
    folder: &str,
) -> Result<front_matter::FrontMatter, String> {
    let bytes = read::whole(&Local::new(), path, MAX_FILE)
        .await
        .map_err(|error| left_out(&error))?;
    if sniff::is_binary(&bytes) {
        return Err("left out: not a text file".to_owned());
    }
    front_matter::read(&decode(&bytes), folder).map_err(|why| format!("left out: {why}"))
}

fn left_out(error: &Error) -> String {
    format!("left out: {}", why(error))
}

fn why(error: &Error) -> String {
    match error {
        Error::NotAllowed { .. } => "a link leads out of the folder or to a secret path".to_owned(),
        Error::NotRegular { kind, .. } => format!("is a {kind}, not a file"),
        Error::TooLarge { size, limit, .. } => {
            format!("has {size} bytes, but at most {limit} are read")
        }
        Error::NotFound { .. } => "not found".to_owned(),
        error => visible(&error.to_string()),
    }
}
