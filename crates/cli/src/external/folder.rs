//! A folder of tools: Lua modules, and programs with a page beside them.

use super::command::Folders;
use super::lua_names as lua;
use super::page::{self, Page};
use crate::config::Settings;
use crate::config::plugins::Environment;
use crate::env;
use crate::trust::{Item, Pin};
use haft::ops::beneath;
use haft::ops::scope::real;
use haft::ops::text::decode::visible;
use haft::{Check, Definition, Executable, Plugin, Standing, Takes};
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
    /// The folder that a project's tools may not lead out of.
    root: PathBuf,
    kind: Kind,
    page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lua,
    Program,
}

impl Found {
    /// Why a tool of the person's is not used here: it is a link to something that the
    /// project or a command may have written.
    pub(super) fn leads_into(&self, folders: Folders<'_>) -> Option<String> {
        if self.tier == Tier::Project {
            return None;
        }
        let files = self.files();
        let place = files.iter().find_map(|file| folders.place(file));
        place.map(|place| {
            format!(
                "{} is left out: it leads to something that is {place}; put a copy of the file \
                 there to use it",
                visible(&self.shown)
            )
        })
    }
}

/// A tool that can be used.
pub(crate) enum Made {
    Lua(Box<Plugin>),
    Program(Box<Executable>),
}

/// What `tools` of a folder has, sorted by name, and what is wrong with some of it.
/// Nothing is run and nothing but names is looked at. Of a project nothing is taken that
/// lies elsewhere: what a link leads to may be secret, and is nobody's tool.
#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
pub(crate) fn look(root: &Path, tier: Tier) -> (Vec<Found>, Vec<String>) {
    let (mut found, mut problems): (Vec<Found>, Vec<String>) = (Vec::new(), Vec::new());
    let written = &root.join("tools");
    // The person's folder may be a link, for example into a repository of settings. The
    // sandbox does not contain the link, so programs are run from its target.
    let led = real(written).filter(|_| tier == Tier::Person);
    let folder = led.as_deref().unwrap_or(written);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return (found, problems);
    };
    let secrets = match tier {
        Tier::Project => Vec::new(),
        Tier::Person => secret_places(),
    };
    let leads_out = |path: &Path, shown: &str| -> Option<String> {
        let why = match tier {
            Tier::Project => beneath::real_within(root, path).err()?.to_string(),
            Tier::Person => {
                let led = real(path)?;
                let is_secret = secrets.iter().any(|secret| led.starts_with(secret));
                is_secret
                    .then(|| "it leads into a secret place, which no tool may read".to_owned())?
            }
        };
        Some(format!(
            "{shown} is left out: {why}; put a copy of the file there to use it"
        ))
    };
    let shown = match tier {
        Tier::Project => "tools".to_owned(),
        Tier::Person => visible(&written.to_string_lossy()),
    };
    if let Some(problem) = leads_out(folder, &shown) {
        problems.push(problem);
        return (found, problems);
    }
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
            Tier::Person => {
                let name = path.file_name().unwrap_or_default();
                written.join(name).display().to_string()
            }
        };
        let page = page_of(&path);
        let name_of = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            match tier {
                Tier::Project => format!("tools/{}", visible(&name.to_string_lossy())),
                Tier::Person => visible(&written.join(name).to_string_lossy()),
            }
        };
        let pages = page.iter().map(PathBuf::as_path);
        let mut all = std::iter::once(path.as_path()).chain(pages);
        if let Some(problem) = all.find_map(|path| leads_out(path, &name_of(path))) {
            problems.push(problem);
            continue;
        }
        let tool = Found {
            page,
            root: root.to_owned(),
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

/// Keys and credentials, and what haft keeps of its sessions.
fn secret_places() -> Vec<PathBuf> {
    let state = env::folders().state;
    let state = state.and_then(|state| real(&state));
    let keys = haft::ops::executor::sandbox::secrets(&env::homes());
    keys.into_iter().chain(state).collect()
}

/// The links that the person's tools are reached by, whether they lead to a tool now or
/// not: whoever writes where they lead decides what runs in other folders.
#[expect(
    clippy::disallowed_methods,
    reason = "only names are looked at, before there is a scope"
)]
pub(super) fn links(root: &Path) -> Vec<PathBuf> {
    let folder = root.join("tools");
    let entries = real(&folder).and_then(|real| std::fs::read_dir(real).ok());
    let entries = entries.into_iter().flatten().flatten().take(MOST_FILES);
    let inside = entries.map(|entry| entry.path());
    let is_link = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
    std::iter::once(folder)
        .chain(inside)
        .filter(is_link)
        .collect()
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
    /// The names under which it may replace another tool: that of its file and, for a Lua
    /// module, what its text declares. Nothing is run to find them, so that they can be
    /// shown before the module is trusted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone()];
        if self.kind == Kind::Lua
            && let Ok(source) = self.text(&self.path, &|_, _| true)
        {
            names.extend(lua::declared_names(&source));
        }
        names.dedup();
        names
    }

    /// The paths that the tool must be able to read: its folder, and the targets of links.
    pub(crate) fn read(&self) -> Vec<PathBuf> {
        let folder = self.path.parent().map(Path::to_owned);
        let led = self.files().into_iter().filter_map(|file| real(&file));
        folder.into_iter().chain(led).collect()
    }

    /// Whether both are the same file.
    pub(super) fn is_file_of(&self, other: &Self) -> bool {
        real(&self.path).is_some_and(|file| real(&other.path) == Some(file))
    }

    /// The files that it is.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files = [Some(self.path.clone()), self.page.clone()];
        files.into_iter().flatten().collect()
    }

    /// Whether it is a program, and not a Lua module.
    pub(super) fn is_program(&self) -> bool {
        self.kind == Kind::Program
    }

    /// What it would run, for who has to say yes.
    pub(crate) fn item(&self) -> Item {
        let mut files = self.files();
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
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
        settings: &Settings,
    ) -> Result<Made, String> {
        match self.kind {
            Kind::Lua => {
                let source = self
                    .text(&self.path, is_trusted)
                    .map_err(|error| format!("{}: {error}", self.shown))?;
                Ok(Made::Lua(Box::new(super::lua(
                    self, source, check, settings,
                ))))
            }
            Kind::Program => {
                let program = self.program(check, is_trusted, settings)?;
                Ok(Made::Program(Box::new(program)))
            }
        }
    }

    /// The text of one of its files, if that is what was trusted.
    fn text(
        &self,
        file: &Path,
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
    ) -> Result<String, String> {
        let opened = match self.tier {
            Tier::Project => beneath::open_within(&self.root, file),
            Tier::Person => beneath::open(file),
        };
        let bytes = opened
            .and_then(|mut opened| opened.read(LARGEST))
            .map_err(|error| error.to_string())?;
        if !is_trusted(file, &bytes) {
            return Err("it has just changed; it is not used".to_owned());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The page beside it for messages, also where there is none yet.
    fn page_shown(&self) -> String {
        let page = match &self.page {
            Some(page) => page.clone(),
            None => self.path.with_extension("md"),
        };
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        match self.tier {
            Tier::Project => format!("tools/{}", visible(&name)),
            Tier::Person => {
                let shown =
                    Path::new(&self.shown).with_file_name(page.file_name().unwrap_or_default());
                visible(&shown.to_string_lossy())
            }
        }
    }

    fn program(
        &self,
        check: Option<Check>,
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
        settings: &Settings,
    ) -> Result<Executable, String> {
        let page = match &self.page {
            Some(file) => {
                let read = self
                    .text(file, is_trusted)
                    .and_then(|text| page::read(&text));
                read.map_err(|error| format!("{}: {error}", file.display()))?
            }
            // It is asked for help when it is needed.
            None => Page {
                description: String::new(),
                parameters: None,
                guidance: None,
                timeout: None,
            },
        };
        let takes = match page.parameters {
            Some(_) => Takes::Json,
            None => Takes::Words,
        };
        // What needed trust is a guest, whoever wrote it.
        let standing = match check.is_some() {
            true => Standing::Guest,
            false => super::standing_of(self.tier, settings),
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
            environment: super::environment(&Environment::default(), settings),
            timeout: page.timeout,
            timeout_set_in: format!("the front matter of {}", self.page_shown()),
            check,
            standing,
            files: self.files(),
        })
    }
}
