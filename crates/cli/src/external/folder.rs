//! A folder of tools: Lua modules, and programs with a page beside them.

use super::page::{self, Page};
use crate::config::Settings;
use crate::env;
use crate::trust::{Item, Pin};
use haft::{Check, Definition, Executable, Plugin, Takes};
use std::path::{Path, PathBuf};

/// How many tools a folder may have.
const MOST: usize = 500;

/// How many files of a folder are looked at.
const MOST_FILES: usize = 20_000;

/// How large a module or a page may be.
const LARGEST: u64 = 4 << 20;

/// Whose folder it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    Person,
    Project,
}

/// A tool that was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) tier: Tier,
    /// Its path for messages.
    pub(crate) shown: String,
    pub(super) path: PathBuf,
    kind: Kind,
    page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lua,
    Program,
}

/// A tool that can be used.
pub(crate) enum Made {
    Lua(Box<Plugin>),
    Program(Box<Executable>),
}

/// What a folder has, sorted by name, and what is wrong with some of it. Nothing is
/// run and nothing but names is looked at.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
pub(crate) fn look(folder: &Path, tier: Tier) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut problems): (Vec<Found>, Vec<String>) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(folder) else {
        return (found, problems);
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .take(MOST_FILES)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let Some((name, kind)) = tool_of(&path) else {
            continue;
        };
        let shown = match tier {
            Tier::Project => format!(
                "tools/{}",
                path.file_name().unwrap_or_default().to_string_lossy()
            ),
            Tier::Person => path.display().to_string(),
        };
        let tool = Found {
            page: page_of(&path),
            name,
            tier,
            shown,
            path,
            kind,
        };
        let is_full = found.len() == MOST;
        match found.iter_mut().find(|other| other.name == tool.name) {
            None if is_full => {
                problems.push(format!(
                    "{} has more than {MOST} tools; those from {} on are left out",
                    folder.display(),
                    tool.shown
                ));
                break;
            }
            None => found.push(tool),
            Some(other) => {
                let (stays, goes) = if other.kind == Kind::Lua {
                    (&*other, &tool)
                } else {
                    (&tool, &*other)
                };
                problems.push(format!(
                    "{} is left out: {} has the same name",
                    goes.shown, stays.shown
                ));
                if other.kind != Kind::Lua {
                    *other = tool;
                }
            }
        }
    }
    (found, problems)
}

/// The tool that a file is, if it is one.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
fn tool_of(path: &Path) -> Option<(String, Kind)> {
    use std::os::unix::fs::PermissionsExt;
    let data = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    if stem.starts_with('.') {
        return None;
    }
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => return None,
        Some("lua") => Kind::Lua,
        _ if data.permissions().mode() & 0o111 != 0 => Kind::Program,
        _ => return None,
    };
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    Some((stem.chars().map(plain).take(64).collect(), kind))
}

/// `deploy.sh.md` or `deploy.md` beside `deploy.sh`.
fn page_of(path: &Path) -> Option<PathBuf> {
    let mut whole = path.as_os_str().to_owned();
    whole.push(".md");
    [PathBuf::from(whole), path.with_extension("md")]
        .into_iter()
        .find(|page| super::is_file(page))
}

impl Found {
    /// What it would run, for who has to say yes.
    pub(crate) fn item(&self) -> Item {
        let files = [Some(self.path.clone()), self.page.clone()];
        let mut files: Vec<PathBuf> = files.into_iter().flatten().collect();
        if let Some(project) = self.path.parent().and_then(Path::parent) {
            super::add_interpreters(&mut files, project);
        }
        Item {
            kind: match self.kind {
                Kind::Lua => "lua",
                Kind::Program => "program",
            },
            name: self.name.clone(),
            shown: self.shown.clone(),
            pin: Pin {
                written: String::new(),
                files,
            },
            remarks: Vec::new(),
        }
    }

    /// The tool, or what is wrong with it.
    pub(crate) fn made(
        &self,
        check: Option<Check>,
        is_trusted: &dyn Fn(&str) -> bool,
        settings: &Settings,
    ) -> Result<Made, String> {
        match self.kind {
            Kind::Lua => {
                let source =
                    text(&self.path).map_err(|error| format!("{}: {error}", self.shown))?;
                if !is_trusted(&source) {
                    return Err(format!(
                        "{}: it has just changed; it is not run",
                        self.shown
                    ));
                }
                Ok(Made::Lua(Box::new(super::lua(
                    self, source, check, settings,
                ))))
            }
            Kind::Program => Ok(Made::Program(Box::new(self.program(check)?))),
        }
    }

    fn program(&self, check: Option<Check>) -> Result<Executable, String> {
        let page = match &self.page {
            Some(file) => {
                let text = text(file).map_err(|error| format!("{}: {error}", file.display()))?;
                page::read(&text).map_err(|error| format!("{}: {error}", file.display()))?
            }
            // It is asked for help when it is needed.
            None => Page {
                description: String::new(),
                parameters: None,
                guidance: None,
            },
        };
        let takes = match page.parameters {
            Some(_) => Takes::Json,
            None => Takes::Words,
        };
        Ok(Executable {
            definition: Definition {
                name: self.name.clone(),
                // One with a page is not asked for help, whatever the page says.
                description: if self.page.is_some() && page.description.is_empty() {
                    format!("Command-line tool: {}", self.name)
                } else {
                    page.description
                },
                parameters: page.parameters.unwrap_or_else(Executable::words),
                guidance: page.guidance,
            },
            program: self.path.clone(),
            takes,
            environment: env::for_programs(&[]),
            check,
            is_guest: self.tier == Tier::Project,
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person's own file, or one that they said yes to"
)]
fn text(file: &Path) -> Result<String, String> {
    let size = std::fs::metadata(file)
        .map_err(|error| error.to_string())?
        .len();
    if size > LARGEST {
        return Err("it is too large".to_owned());
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
